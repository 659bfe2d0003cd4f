"""Read and write lexicons: a table of words with one number a variable (``.tsv``, ``.csv``, with ``.xz``)."""

from __future__ import annotations

import csv
import io
import lzma
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path, max_decompressed_size
from evenhand.core.regular_files import open_regular, read_bytes, read_text

NORMS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("valence", "arousal", "dominance"), (1.0, 9.0)),
    **dict.fromkeys(("joy", "anger", "sadness", "fear", "disgust"), (1.0, 5.0)),
}
"""The eight variables of emotion and the scale each is rated on."""

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """Words and their ratings, one row a word, one column a variable."""

    words: tuple[str, ...]
    values: Matrix
    variables: tuple[str, ...]
    digest: str = ""
    """Digest of the file; empty for a lexicon that was never stored."""


def read_lexicon(path: Path) -> Lexicon:
    """The ratings of a table whose first column is the word; the columns of `NORMS` are looked up by name.

    The path ends in ``.tsv``, ``.csv`` or ``.txt`` (tabs), and in ``.xz`` where it is packed.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}", expected="a .tsv or .csv lexicon", fix="check the path")
    header, *rows = _read_table(path) or [[]]
    names = [name.strip().lower() for name in header]
    if missing := [name for name in NORMS if name not in names]:
        raise InputError(
            f"{path} has no column {missing[0]!r}",
            expected=f"a header with word, {', '.join(NORMS)}",
            fix="name the columns in the first line",
        )
    columns = {name: names.index(name) for name in NORMS}
    words: dict[str, list[float]] = {}
    for number, row in enumerate(rows, start=2):
        word, where = row[0].strip().lower() if row else "", f"{path}, line {number}"
        if not word or word in words:
            came = f"the word {word!r} occurs again" if word else "the row has no word"
            raise InputError(f"{where}: {came}", expected="one row a word", fix="correct the file")
        words[word] = [_rating("".join(row[at : at + 1]), name, where) for name, at in columns.items()]
    values = np.array(list(words.values()), dtype=np.float32).reshape(len(words), len(NORMS))
    return Lexicon(tuple(words), values, tuple(NORMS), file_digest(path))


def _rating(text: str, name: str, where: str) -> float:
    low, high = NORMS[name]
    with suppress(ValueError):
        if low <= float(text) <= high:
            return float(text)
    came, accepted = f"{name} is {text[:80]!r}", f"a number from {low:g} to {high:g}"
    raise InputError(f"{where}: {came}", expected=accepted, fix="correct the file")


@cache
def load_norms() -> Lexicon:
    """The embedded lexicon: eight emotion variables for every embedded word, all predicted by our network."""
    return read_lexicon(asset_path("norms", "lexicon.tsv.xz"))


def write_lexicon(lexicon: Lexicon, path: Path) -> None:
    """Write a lexicon as a table with tabs, two decimals a rating, packed where the name ends in ``.xz``."""
    rows = zip(lexicon.words, lexicon.values.tolist(), strict=True)
    lines = [[word, *(f"{rating:.2f}" for rating in ratings)] for word, ratings in rows]
    data = "".join("\t".join(line) + "\n" for line in [["word", *lexicon.variables], *lines]).encode()
    path.write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME) if path.suffix == ".xz" else data)


def read_closed_class(path: Path | None = None) -> frozenset[str]:
    """The words of closed classes (pronouns, prepositions, conjunctions ...), ours or a file's.

    A file holds words between spaces or line ends; lines that begin with ``#`` are headings.
    """
    source = path or asset_path("norms", "closed_class.txt")
    try:
        lines = read_text(source, encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{source} cannot be read: {error}", expected="words in UTF-8", fix="check the file"
        ) from error
    return frozenset(word.lower() for line in lines if not line.startswith("#") for word in line.split())


def _read_table(path: Path) -> list[list[str]]:
    try:
        lines = io.StringIO(_read_unpacked(path).decode("utf-8-sig"), newline="")
        if ".csv" in path.suffixes:
            return list(csv.reader(lines))
        # Without quoting: a word may be a lone quotation mark.
        return list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{path} cannot be read: {error}",
            expected="a .tsv or .csv lexicon in UTF-8, or one packed as .xz",
            fix="get the file again",
        ) from error


def _read_unpacked(path: Path) -> bytes:
    if path.suffix != ".xz":
        return read_bytes(path)
    most = max_decompressed_size(path.stat().st_size)
    with open_regular(path) as raw, lzma.open(raw) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise lzma.LZMAError(f"it unpacks to more than {most >> 20:,} MiB")
    return data
