"""Readers of tables, corpora and terms."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import polars as pl
from tests.fuzz.contents import as_csv, as_json, as_json_lines, as_parquet, as_toml, as_tsv
from tests.fuzz.harness import Reader, Tree, of_trees

from evenhand.audits.score import prepare as prepare_score
from evenhand.classifiers.http_classifier import ReplayClassifier
from evenhand.collection.page_streams import plain_text, read_pages
from evenhand.corpus.readers import read_blocks
from evenhand.corpus.term_lists import find_unmatchable, load_terms
from evenhand.models.replay import ReplayModel
from evenhand.store.table_files import read_lines, read_table
from evenhand.store.text_sources import ReadProblem, find_sources

ROWS: list[dict[str, Tree]] = [
    {"id": "a", "text": "The nurse was kind.", "group": "women", "prompt": "The nurse", "score": 0.5},
    {"id": "b", "text": 'He said, "no".\nAnd left.', "group": "men", "prompt": "He said", "score": None},
    {"id": "c", "text": "Ünïcode – 漢字 \U0001f600", "group": "men", "prompt": "Ün", "score": 2},
]
COLUMNS: list[Tree] = [list(ROWS[0]), *([*row.values()] for row in ROWS)]
TERMS: Tree = {
    "emotions": {"anger": ["angry", "furious"], "joy": ["happy", "over the moon"]},
    "groups": {"gender": {"female": ["she", "woman"], "male": ["he", "brother-in-law"]}},
}
FLAT: Tree = {"joy": ["happy", "glad"], "female": ["she"], "male": ["he"]}
PREDICTED: Tree = [["text", "anger", "joy"], ["The nurse was kind.", "0.1", "0.9"], ["b", "", "1"]]
LABELS: Tree = [
    {"text": "a", "prediction": "joy", "score": 0.5},
    {"text": "b", "prediction": 0, "score": 1},
]
DUMP = b"""<mediawiki><page><title>Ada</title><ns>0</ns><revision><text>{{Infobox|a=b}} '''Ada''' was a
[[writer|author]].<ref>note</ref> {| class="t" |} [http://a.b c]</text></revision></page>
<page><title>B</title><ns>0</ns><redirect title="Ada"/><revision><text>x</text></revision></page></mediawiki>
"""
TEXT = "She was happy.\n\nHe was furious! He left.\r\n\r\nThe end – 漢字.\n".encode()


def _odd_types() -> list[bytes]:
    """Tables with columns of every type Parquet has."""
    moment = datetime(2024, 2, 29, 12, tzinfo=UTC)
    columns = {
        "decimal": pl.Series([Decimal("1.50"), None], dtype=pl.Decimal(38, 2)),
        "moment": pl.Series([moment, None]),
        "day": pl.Series([date(1, 1, 1), None]),
        "time": pl.Series([time(23, 59), None]),
        "span": pl.Series([timedelta(days=-1), None]),
        "bytes": pl.Series([b"\xff\0", None]),
        "kind": pl.Series(["a", None], dtype=pl.Categorical),
        "nothing": pl.Series([None, None], dtype=pl.Null),
        "list": pl.Series([[1, None], None]),
        "array": pl.Series([[1, 2], None], dtype=pl.Array(pl.Int8, 2)),
        "struct": pl.Series([{"a": {"b": [b"x"]}}, None]),
        "large": pl.Series([2**64 - 1, None], dtype=pl.UInt64),
        "flag": pl.Series([True, None]),
        "nan": pl.Series([float("nan"), float("inf")]),
    }
    found = [_parquet(pl.DataFrame({**columns, "text": ["She left.", None], "group": ["a", "b"]}))]
    for column in columns.values():
        found.append(_parquet(pl.DataFrame({"text": column, "group": column, "id": ["a", "b"]})))
    empty = pl.DataFrame(schema={"text": pl.String, "group": pl.String})
    return [as_parquet(_by_column()), *found, _parquet(empty), _parquet(pl.DataFrame())]


def _parquet(table: pl.DataFrame) -> bytes:
    sink = BytesIO()
    table.write_parquet(sink)
    return sink.getvalue()


def _zstd(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


def _scored(path: Path) -> object:
    """The whole way of `evenhand score` up to the work."""
    prepared = prepare_score(
        path,
        text="text",
        group={"group": "group"},
        prompt="prompt",
        metrics="sentiment",
        out=path.parent / "run",
    )
    return prepared.plan()


def _replayed(path: Path) -> object:
    return ReplayModel(str(path))


def _predictions(path: Path) -> object:
    names = {"anger": ("furious",), "joy": ("happiness",)}
    return ReplayClassifier(path, names).read(["The nurse was kind.", ""])


def _corpus(path: Path) -> Iterator[object]:
    problems: list[ReadProblem] = []
    sources, lost = find_sources([path])
    for source in sources:
        yield from read_blocks(source, problems.append)
    yield from (*map(str, problems), *map(str, lost))


def _pages(path: Path) -> Iterator[object]:
    problems: list[ReadProblem] = []
    for source in find_sources([path])[0]:
        yield from (plain_text(page) for page in read_pages(source, problems.append))
    yield from map(str, problems)


def _terms(path: Path) -> object:
    return find_unmatchable(load_terms([path], needs_both=False), "paper")


Read = Callable[[Path], object]


def _formats(name: str, read: Read) -> Iterator[Reader]:
    yield Reader(
        f"{name} .jsonl", "t.jsonl", read, lambda: [as_json_lines(ROWS)], lambda: [ROWS], as_json_lines
    )
    yield Reader(f"{name} .csv", "t.csv", read, lambda: [as_csv(COLUMNS)], lambda: [COLUMNS], as_csv)
    yield Reader(f"{name} .tsv", "t.tsv", read, lambda: [as_tsv(COLUMNS)], lambda: [COLUMNS], as_tsv)
    yield Reader(f"{name} .parquet", "t.parquet", read, _odd_types, lambda: [_by_column()], as_parquet)


def _by_column() -> Tree:
    return {name: [row[name] for row in ROWS] for name in ROWS[0]}


def _packed(name: str, file: str, read: Read, plain_bytes: bytes) -> Iterator[Reader]:
    packers: Sequence[tuple[str, Callable[[bytes], bytes]]] = (
        *((".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", _zstd)),
    )
    for ending, pack in packers:
        yield Reader(
            f"{name} {ending}", file + ending, read, lambda pack=pack: [pack(plain_bytes)], pack=pack
        )


READERS: tuple[Reader, ...] = (
    *_formats("table", read_table),
    Reader(
        "table .jsonl.gz",
        "t.jsonl.gz",
        read_table,
        lambda: [gzip.compress(as_json_lines(ROWS))],
        pack=gzip.compress,
    ),
    Reader("lines of text", "t.txt", read_lines, lambda: [TEXT]),
    *_formats("score", _scored),
    *_formats("replay", _replayed),
    Reader("replay lines", "t.txt", _replayed, lambda: [b"0\tThe woman worked as a nurse.\n" * 3]),
    of_trees("predictions .csv", "t.csv", _predictions, as_csv, PREDICTED),
    of_trees("predictions .jsonl", "t.jsonl", _predictions, as_json_lines, LABELS),
    Reader("corpus text", "c.txt", _corpus, lambda: [TEXT]),
    *_packed("corpus text", "c.txt", _corpus, TEXT),
    *_formats("corpus", _corpus),
    of_trees("corpus .json", "c.json", _corpus, as_json, ROWS),
    *_packed("corpus .jsonl", "c.jsonl", _corpus, as_json_lines(ROWS)),
    Reader("corpus dump", "c.xml", _corpus, lambda: [DUMP]),
    Reader(
        "pages of text",
        "p.txt",
        _pages,
        lambda: [TEXT, b'<doc id="1" title="Ada">\nAda\n\nAda wrote.\n</doc>\n' * 2],
    ),
    of_trees("pages .jsonl", "p.jsonl", _pages, as_json_lines, [{"title": "Ada", "text": "Ada wrote."}]),
    Reader("pages of a dump", "p.xml", _pages, lambda: [DUMP]),
    of_trees("terms .json", "t.json", _terms, as_json, TERMS, FLAT),
    of_trees("terms .toml", "t.toml", _terms, as_toml, TERMS, FLAT),
    Reader("terms .txt", "joy.txt", _terms, lambda: [b"happy\nglad # a note\n#metoo\nover the moon\n"]),
)
