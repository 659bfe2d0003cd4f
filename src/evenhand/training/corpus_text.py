"""Read the running text that language models are trained on: documents, cleaned and split for hold-out.

A source is one UTF-8 file, plain or compressed with xz, whose documents are separated by an empty line. A
document's *index* is its position in that file, counted from 0 before any are dropped; every document whose
index is 37 modulo 100 is held out.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

HELD_OUT_MODULUS: Final = 100
HELD_OUT_REMAINDER: Final = 37

OPENING_LENGTH: Final = 200
"""Number of identical leading characters for which two documents count as the same."""

FOLDS: Final[tuple[tuple[str, str], ...]] = (
    ("\u2018\u2019\u201a\u201b\u2032\u00b4", "'"),
    ("\u201c\u201d\u201e\u201f\u2033", '"'),
    ("\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\t", " "),
    ("\u2010\u2011\u2012\u2013\u2212", "-"),
    ("\u2014\u2015", "--"),
    ("\u2026", "..."),
    ("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2066\u2067\u2068\u2069\ufeff\ufe0f", ""),
)
"""Characters and their ASCII replacements. The tokenizer applies the same table to its input."""

_FOLD_TABLE: Final = str.maketrans({char: to for chars, to in FOLDS for char in chars})
# Box drawing, blocks, shapes, dingbats, arrows, private use, C1 controls, the replacement character.
_BLOCKS: Final = re.compile("[\u2500-\u27bf\u2b00-\u2bff\ue000-\uf8ff\u0080-\u009f\ufffd]+")
_SPACES: Final = re.compile(" {2,}")
_LINE_EDGES: Final = re.compile(" *\n[ \n]*")
# Wikipedia extracts lose the content of templates: "Chen Zhili (; born 1942)", "the kilometre ()".
_EMPTY_OPENING: Final = re.compile(r"\([;,] ?")
_EMPTY_BRACKETS: Final = re.compile(r" ?\( ?\)")
_SPLIT_NEGATION: Final = re.compile(r"\b(\w+) n't\b")
_SPLIT_CLITIC: Final = re.compile(r"(?<=\w) ('(?:s|re|ve|ll|d|m))\b")
_SPLIT_STOP: Final = re.compile(r" ([,.;:?!])(?=\s|$)")


class CorpusDocument(NamedTuple):
    """One cleaned document of a source."""

    place: int
    """Its index in the file."""
    text: str
    """The cleaned text, one paragraph per line."""
    raw_bytes: int
    """UTF-8 bytes before cleaning: the denominator of bits per byte."""

    @property
    def held_out(self) -> bool:
        """Return whether the document is held out from training."""
        return is_held_out(self.place)


def is_held_out(index: int) -> bool:
    """Return whether the document with this index is held out: one in a hundred."""
    return index % HELD_OUT_MODULUS == HELD_OUT_REMAINDER


def clean_text(text: str) -> str:
    """Return the text with typography folded to ASCII, tokenised news repaired and block characters removed.

    Accented letters and other scripts are kept. Paragraphs are single lines.
    """
    if not text.isascii():
        text = _BLOCKS.sub(" ", text.translate(_FOLD_TABLE))
    if "\t" in text:
        text = text.replace("\t", " ")
    if " n't" in text:
        # Words that a treebank tokenizer split ("do n't", "it 's") are joined again.
        text = _SPLIT_CLITIC.sub(r"\1", _SPLIT_NEGATION.sub(r"\1n't", text))
        text = _SPLIT_STOP.sub(r"\1", text.replace("`` ", '"').replace(" ''", '"'))
    if "(" in text:
        text = _EMPTY_BRACKETS.sub("", _EMPTY_OPENING.sub("(", text))
    return _LINE_EDGES.sub("\n", _SPACES.sub(" ", text)).strip()


def read_documents(path: Path) -> Iterator[CorpusDocument]:
    """Yield the cleaned documents of a source in order, including held-out ones, without empty ones."""
    is_packed = path.suffix == ".xz"
    whole = lzma.decompress(path.read_bytes()).decode() if is_packed else path.read_text(encoding="utf-8")
    for index, raw in enumerate(whole.split("\n\n")):
        text = clean_text(raw)
        if text:
            yield CorpusDocument(index, text, len(raw.encode("utf-8")))


def split_documents(path: Path) -> tuple[list[CorpusDocument], list[CorpusDocument]]:
    """Return (training, held-out) documents of a source.

    Every held-out document is kept. A training document is dropped if it begins like a held-out one or like
    an earlier training one, so no copy at another index is trained on and no template is memorised.
    """
    first: dict[str, CorpusDocument] = {}
    held_out: list[CorpusDocument] = []
    for document in read_documents(path):
        if document.held_out:
            held_out.append(document)
        else:
            first.setdefault(document.text[:OPENING_LENGTH], document)
    for document in held_out:
        first.pop(document.text[:OPENING_LENGTH], None)
    return list(first.values()), held_out
