"""Cut a small copy of what the embedded models are rebuilt from, to try the whole rebuilding in minutes.

``python -m tools.assets.rehearsal_data --shared FOLDER --out FOLDER`` writes ``corpus/`` and ``data/`` with
the openings of some documents and some rows of every labelled table. What is trained on it is worth nothing.
"""

from __future__ import annotations

import argparse
import csv
import lzma
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

DOCUMENTS: Final = 300
"""Documents of a source: three of them are held out."""
OPENING: Final = 2_500
"""Characters of a document."""
ROWS: Final = 60
"""Rows of a table of texts; articles to learn from count eight times, since outlets must meet."""
_T = TypeVar("_T")
SOURCES: Final = ("wiki", "news", "books")
_CSV: Final = {"toxicity/jigsaw_slice.csv": 0, "toxicity/davidson.csv": 1}
_LINES: Final = {
    "ideology/train.jsonl": 0,
    "ideology/valid.jsonl": 0,
    **{f"emotion/goemotions_{part}.tsv": 0 for part in ("train", "dev", "test")},
    **{
        f"emotion/semeval_EI-oc_{kind}_{part}.txt": 1
        for kind in ("anger", "fear", "joy", "sadness")
        for part in ("train", "dev")
    },
}
"""Tables cut to some of their rows, and how many lines of each are its header."""
_WHOLE: Final = (
    "emotion/goemotions_emotions.txt",
    *(f"regard/regard_{part}.tsv" for part in ("train", "dev", "test")),
    "norms/vad_glasgow.csv",
    "norms/be5_emomap.tsv",
)


def cut(shared: Path, out: Path, *, documents: int = DOCUMENTS, rows: int = ROWS) -> None:
    """Write the small copy, replacing an earlier one."""
    for name in SOURCES:
        text = "\n\n".join(_openings(shared / "corpus" / f"{name}.txt.xz", documents))
        _place(out / "corpus" / f"{name}.txt.xz").write_bytes(lzma.compress(text.encode("utf-8"), preset=1))
    for name, header in _CSV.items():
        with (shared / "data" / name).open(encoding="utf-8", newline="") as file:
            table = list(csv.reader(file))
        with _place(out / "data" / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([*table[:header], *spread(table[header:], rows)])
    for name, header in _LINES.items():
        lines = (shared / "data" / name).read_text(encoding="utf-8").splitlines()
        kept = [
            *lines[:header],
            *spread(
                lines[header:],
                rows * 8 if "ideology/train" in name else rows * 2 if "ideology" in name else rows,
            ),
        ]
        _place(out / "data" / name).write_text("\n".join(kept) + "\n", encoding="utf-8")
    for name in _WHOLE:
        shutil.copyfile(shared / "data" / name, _place(out / "data" / name))


def spread(items: Sequence[_T], count: int) -> list[_T]:
    """``count`` of the items at even distances, the first among them; all where there are no more.

    >>> spread("abcdefg", 3)
    ['a', 'c', 'e']
    """
    return list(items[:: max(1, len(items) // count)][:count])


def main(argv: list[str] | None = None) -> None:
    """Cut the copy from the command line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--shared", type=Path, required=True, help="folder with corpus/ and data/")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(argv)
    cut(args.shared, args.out)


def _openings(path: Path, count: int) -> Iterator[str]:
    """The openings of the first documents, reading no more of the file than they need."""
    found, rest = 0, ""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        while found < count and (piece := file.read(1 << 20)):
            *whole, rest = (rest + piece).split("\n\n")
            for document in whole[: count - found]:
                yield document[:OPENING]
            found += len(whole)


def _place(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


if __name__ == "__main__":
    main()
