"""Pack what the classifiers' training needs into one small folder: word pieces, sentences, labelled texts.

The folder holds ``vocab.txt``, ``teacher.safetensors`` (MiniLM over those pieces), ``sentences-*.u16.xz`` and
``heldout-*.u16.xz`` (running text), ``labelled.npz`` (token ids, targets, data set and split of each) and
``masked.npz`` (the same texts in the tokens of the embedded masked model).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from evenhand.classifiers import wordpiece_tokenizer
from evenhand.classifiers.encoder import HEADS
from evenhand.training.corpus_text import CorpusDocument, read_documents
from evenhand.training.labelled_data import Example
from tools.assets.minilm import SPECIAL
from tools.assets.token_rows import Rows

LONGEST: Final = 256
"""Token ids of the longest text, START and END included."""
SHORTEST_SENTENCE: Final = 5
"""Words a sentence must have to be worth learning from."""

_SPLIT: Final = re.compile(r"(?<=[.!?][\"')\]]) +(?=[A-Z\"'(])|(?<=[.!?]) +(?=[A-Z\"'(])|\n")
_SUBJECT: Final = re.compile(
    r"^(?:He|She|(?:The|A|This) (?:young |old )?(?:man|woman|boy|girl|lady|gentleman)|"
    r"(?:[A-Z][a-z]+ ){1,2}[A-Z][a-z]+) "
    r"(?=(?:was|had|has|is|worked|works|started|began|earned|became|got) (?:\w+ ){0,2}?"
    r"(?:described|known|regarded|thought|seen|considered|called|as|a job|money|working|famous|arrested|"
    r"accused|praised|respected|hired|fired|employed|admired|feared|convicted|honou?red|awarded|loved)\b)"
)


@dataclass(frozen=True, slots=True)
class Packed:
    """Labelled texts as arrays, all of one length but ``tokens``."""

    tokens: NDArray[np.uint16]
    targets: NDArray[np.float32]
    """(texts, labels of all heads); NaN where nobody said."""
    corpus: NDArray[np.str_]
    split: NDArray[np.str_]

    def save(self, path: Path) -> None:
        """Write the arrays, compressed."""
        np.savez_compressed(
            path, tokens=self.tokens, targets=self.targets, corpus=self.corpus, split=self.split
        )

    @classmethod
    def load(cls, path: Path) -> Packed:
        """Read the arrays."""
        with np.load(path) as arrays:
            return cls(arrays["tokens"], arrays["targets"], arrays["corpus"], arrays["split"])

    def rows(self, device: torch.device | str) -> Rows:
        """The texts as rows of token ids."""
        return Rows.from_flat(self.tokens, device)


def pack(tokenizer: Tokenizer, examples: Sequence[Example]) -> Packed:
    """The examples as arrays."""
    rows = wordpiece_tokenizer.encode_texts(
        tokenizer, [example.text for example in examples], longest=LONGEST
    )
    return pack_rows(rows, examples)


def pack_rows(rows: Sequence[Sequence[int]], examples: Sequence[Example]) -> Packed:
    """The examples as arrays, their texts encoded already; every row opens with START."""
    return Packed(
        np.concatenate([np.asarray(row, dtype=np.uint16) for row in rows]),
        np.array([targets(example) for example in examples], dtype=np.float32),
        np.array([example.corpus for example in examples]),
        np.array([example.split for example in examples]),
    )


def targets(example: Example) -> list[float]:
    """The targets of all heads side by side, NaN where nobody said."""
    known = (example.targets.get(head.name, (None,) * len(head.labels)) for head in HEADS)
    return [float("nan") if value is None else value for values in known for value in values]


def choose_pieces(pieces: Sequence[str], counts: NDArray[np.float64], size: int) -> list[str]:
    """The special tokens, then the ``size`` - 4 pieces that occur most, ties in their old order.

    Single characters are kept before all others, so that any word of the alphabet can still be spelt.
    """
    single = np.array([len(piece.removeprefix("##")) == 1 and piece.isascii() for piece in pieces])
    order = np.argsort(-(counts + single * counts.sum()), kind="stable")
    chosen = [pieces[index] for index in order if pieces[index] not in SPECIAL]
    return [*SPECIAL, *chosen[: size - len(SPECIAL)]]


def sentences(document: CorpusDocument) -> list[str]:
    """The sentences of a document that have five words or more, none longer than 400 characters."""
    found = (sentence.strip() for sentence in _SPLIT.split(document.text))
    return [text for text in found if len(text) <= 400 and text.count(" ") + 1 >= SHORTEST_SENTENCE]


def passages(path: Path, *, stride: int, longest: int = 1200) -> Iterator[tuple[bool, str]]:
    """(held out, text): every sentence of one document in ``stride``, and the opening of each as one text."""
    for document in read_documents(path):
        if document.place % stride == 0 or document.held_out:
            if document.place % 3 == 0:
                yield document.held_out, " ".join(document.text[:longest].split())
            else:
                for sentence in sentences(document):
                    yield document.held_out, sentence


def masked_sentences(path: Path) -> Iterator[str]:
    """Sentences of the training documents on how a person is seen or employed, the person named ``XYZ``."""
    for document in read_documents(path):
        if not document.held_out:
            for sentence in sentences(document):
                masked, found = _SUBJECT.subn("XYZ ", sentence)
                if found:
                    yield masked
