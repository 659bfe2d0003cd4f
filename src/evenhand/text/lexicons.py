"""Read and write lexicons: a table of words with one number a variable (``.tsv``, ``.csv``, with ``.xz``)."""

from __future__ import annotations

import csv
import io
import lzma
import math
from collections.abc import Mapping, Sequence
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


def read_lexicon(path: Path, *, scales: Mapping[str, tuple[float, float]] = NORMS) -> Lexicon:
    """The ratings of a table whose first column is the word; the columns are looked up by name.

    Args:
        path: ``.tsv``, ``.csv`` or ``.txt`` (tabs), packed with xz where the name ends in ``.xz``.
        scales: The variables to read, each with the lowest and the highest rating it may have.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}", expected="a .tsv or .csv lexicon", fix="check the path")
    rows = _table(path)
    columns = _columns(rows[0] if rows else [], scales, path)
    words: dict[str, list[float]] = {}
    for number, row in enumerate(rows[1:], start=2):
        words[_new_word(row, words, path, number)] = _ratings(row, columns, scales, path, number)
    values = np.array(list(words.values()), dtype=np.float32).reshape(len(words), len(scales))
    return Lexicon(tuple(words), values, tuple(scales), file_digest(path))


@cache
def load_norms() -> Lexicon:
    """The embedded lexicon: eight emotion variables for every embedded word, all predicted by our network."""
    return read_lexicon(asset_path("norms", "lexicon.tsv.xz"))


def write_lexicon(lexicon: Lexicon, path: Path) -> None:
    """Write a lexicon as a table with tabs, two decimals a rating, packed where the name ends in ``.xz``."""
    text = io.StringIO()
    text.write("\t".join(["word", *lexicon.variables]) + "\n")
    for word, ratings in zip(lexicon.words, lexicon.values.tolist(), strict=True):
        text.write("\t".join([word, *(f"{rating:.2f}" for rating in ratings)]) + "\n")
    data = text.getvalue().encode()
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


def _table(path: Path) -> list[list[str]]:
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


def _columns(header: Sequence[str], scales: Mapping[str, object], path: Path) -> list[int]:
    names = [name.strip().lower() for name in header]
    missing = [name for name in scales if name not in names]
    if missing:
        raise InputError(
            f"{path} has no column {missing[0]!r}",
            expected=f"a header with word, {', '.join(scales)}",
            fix="name the columns in the first line",
        )
    return [names.index(name) for name in scales]


def _new_word(row: Sequence[str], words: Mapping[str, object], path: Path, line: int) -> str:
    word = row[0].strip().lower() if row else ""
    if not word or word in words:
        came = f"the word {word!r} occurs again" if word else "the row has no word"
        raise InputError(f"{path}, line {line}: {came}", expected="one row a word", fix="correct the file")
    return word


def _ratings(
    row: Sequence[str],
    columns: Sequence[int],
    scales: Mapping[str, tuple[float, float]],
    path: Path,
    line: int,
) -> list[float]:
    ratings = []
    for column, (name, (low, high)) in zip(columns, scales.items(), strict=True):
        text = row[column] if column < len(row) else ""
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise InputError(
                f"{path}, line {line}: {name} is {text[:80]!r}",
                expected=f"a number from {low:g} to {high:g}",
                fix="correct the file",
            )
        ratings.append(value)
    return ratings
