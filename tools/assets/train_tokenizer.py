"""Train and read the byte-level BPE both language models share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

from evenhand.models.hub_layout import END, MASK, SPECIAL_TOKENS
from evenhand.training.corpus_text import FOLDS

VOCABULARY: Final = 16_384
SAMPLE_STRIDE: Final = 5
"""The tokenizer learns from one document in five; 37 modulo 100 is never a multiple of 5."""

_SPACE: Final = "\u0120"
_NEWLINE: Final = "\u010a"


class SentenceTables(NamedTuple):
    """What each token id says about sentence boundaries; each array has one entry a token."""

    breaks: NDArray[np.bool_]
    """A line ends with this token: a newline or end-of-text."""
    stops: NDArray[np.bool_]
    """A sentence can end with this token: it closes with . ! or ?, perhaps followed by a quote or bracket."""
    capital: NDArray[np.bool_]
    """The token opens with a capital letter, after a space or not."""
    spaced: NDArray[np.bool_]
    """The token opens with a space."""
    bare: NDArray[np.int64]
    """The same word without its leading space, where the vocabulary has it; else the token itself."""


def train(texts: Iterable[str], *, vocabulary: int = VOCABULARY) -> Tokenizer:
    """Return a byte-level BPE learnt from cleaned texts; ids 0-4 are end-of-text, PAD, CLS, SEP and MASK."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    # [MASK] stands for a word and its leading space: "a [MASK] at" has no lone space before the mask.
    special = [AddedToken(word, lstrip=at == MASK, special=True) for at, word in enumerate(SPECIAL_TOKENS)]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer=trainer)
    # The corpus's character folds: curly quotes are met at use as in training.
    folds = [normalizers.Replace(Regex(f"[{chars}]"), to) for chars, to in FOLDS]
    tokenizer.normalizer = normalizers.Sequence(folds)
    return tokenizer


def load(path: Path) -> Tokenizer:
    """Return the tokenizer stored at `path`."""
    return Tokenizer.from_file(str(path))


def encode(tokenizer: Tokenizer, texts: Iterable[str], *, batch: int = 512) -> Iterator[NDArray[np.uint16]]:
    """Yield the ids of each text, in order, without special tokens; texts are encoded `batch` at a time."""
    for group in batches(texts, batch):
        for encoding in tokenizer.encode_batch_fast(group, add_special_tokens=False):
            yield np.asarray(encoding.ids, dtype=np.uint16)


def sentence_tables(tokenizer: Tokenizer) -> SentenceTables:
    """Return which tokens end and start sentences, judged by their spelling alone (abbreviations fool it)."""
    vocabulary = tokenizer.get_vocab()
    words = sorted(vocabulary, key=vocabulary.__getitem__)
    ids = {word: index for index, word in enumerate(words)}
    naked = [word.removeprefix(_SPACE) for word in words]
    return SentenceTables(
        breaks=np.array([index == END or word.endswith(_NEWLINE) for index, word in enumerate(words)]),
        stops=np.array([word.rstrip("\"')")[-1:] in {".", "!", "?"} for word in words]),
        capital=np.array([word[:1].isascii() and word[:1].isupper() for word in naked]),
        spaced=np.array([word.startswith(_SPACE) for word in words]),
        bare=np.array([ids.get(word, index) for index, word in enumerate(naked)], dtype=np.int64),
    )


def batches(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """The texts in lists of ``size``, the last one shorter."""
    group: list[str] = []
    for text in texts:
        group.append(text)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group
