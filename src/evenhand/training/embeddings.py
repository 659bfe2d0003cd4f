"""Train word vectors on running text: count words, choose a vocabulary, encode, skip-gram, store as int8.

Skip-gram with negative sampling (Mikolov et al. 2013) in one thread, so that the same text and seed give the
same vectors. Each epoch ends with a checkpoint, and a run that was stopped goes on from it.
"""

from __future__ import annotations

import argparse
import logging
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file, save_file

from evenhand.core.errors import InputError
from evenhand.text.debiasing import embedded_gender_words
from evenhand.text.vectors import WordVectors, save_vectors, word_form
from evenhand.training.corpus_text import split
from evenhand.training.skipgram import Settings, run_epoch

_LOG = logging.getLogger(__name__)
_TOKEN: Final = re.compile(r"\w+(?:'\w+)?")
_NOT_A_WORD: Final = re.compile(r"[\d_]")
_WORD_CLAIM: Final = 4
"""What a lower-case occurrence counts for: to get a vector, a name must be four times as common as a word."""
LEAST: Final = 10
"""Occurrences below which no word gets a vector."""
BREAK: Final = -1
"""What stands between two documents among the encoded words."""

Ids = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How word vectors are trained."""

    words: int = 41_000
    width: int = 100
    epochs: int = 6
    settings: Settings = field(default_factory=Settings)
    seed: int = 0


class Vocabulary(NamedTuple):
    """The words that get a vector, most frequent first, and how often each occurs."""

    words: tuple[str, ...]
    counts: Counts


class _State(NamedTuple):
    words: Matrix
    contexts: Matrix
    epochs: int
    """Epochs done."""


def train(
    paths: Sequence[Path], out: Path, *, recipe: Recipe | None = None, limit: int | None = None
) -> WordVectors:
    """Word vectors of the texts' training documents, written to ``out/vectors.safetensors``.

    Args:
        paths: UTF-8 files, documents separated by an empty line; one document in a hundred is held out.
        out: Folder for the vectors and, between epochs, the checkpoint and the encoded text.
        recipe: How to train.
        limit: Read at most this many documents of each file.
    """
    recipe = recipe or Recipe()
    out.mkdir(parents=True, exist_ok=True)
    vocabulary, ids = _encoded(paths, out, recipe, limit)
    matrix = fit(ids, vocabulary.counts, recipe, checkpoint=out / "checkpoint.safetensors")
    path = out / "vectors.safetensors"
    part = _part(path)
    save_vectors(vocabulary.words, matrix, part)
    part.replace(path)
    return WordVectors.create(vocabulary.words, matrix, source=str(path))


def count_words(texts: Iterable[str]) -> Counter[str]:
    """How often each word occurs, as written (upper and lower case apart)."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(_TOKEN.findall(text))
    return counts


def choose_vocabulary(
    counts: Counter[str], size: int, *, required: Iterable[str] = (), least: int = LEAST
) -> Vocabulary:
    """The ``size`` words with the best claim to a vector, most frequent first.

    A word's claim is four times its lower-case occurrences plus the capitalised ones, so that common words
    go before names; ``required`` words come first. Words with digits and words rarer than ``least`` get none.
    """
    total: Counter[str] = Counter()
    claim: Counter[str] = Counter()
    for written, count in counts.items():
        word = word_form(written.lower())
        if not _NOT_A_WORD.search(word):
            total[word] += count
            claim[word] += count * (_WORD_CLAIM if written[0].islower() else 1)
    wanted = frozenset(required)
    able = [word for word, count in total.items() if count >= least]
    able.sort(key=lambda word: (word not in wanted, -claim[word], word))
    words = sorted(able[:size], key=lambda word: (-total[word], word))
    return Vocabulary(tuple(words), np.array([total[word] for word in words], dtype=np.int64))


def encode(texts: Iterable[str], words: Sequence[str]) -> Ids:
    """The texts as one row of word numbers; other words are left out, and -1 stands after each document."""
    index = {word: number for number, word in enumerate(words)}
    return np.concatenate([np.zeros(0, dtype=np.int32), *(_encode_text(text, index) for text in texts)])


def fit(ids: Ids, counts: Counts, recipe: Recipe, *, checkpoint: Path | None = None) -> Matrix:
    """The vectors of the encoded words, one row a word; goes on from the checkpoint where there is one."""
    state = (
        _read_state(checkpoint) if checkpoint and checkpoint.exists() else _first_state(len(counts), recipe)
    )
    for epoch in range(state.epochs, recipe.epochs):
        start = time.monotonic()
        schedule = {"done": epoch / recipe.epochs, "share": 1 / recipe.epochs}
        seed = recipe.seed * 1000 + epoch
        run_epoch(ids, counts, state.words, state.contexts, settings=recipe.settings, seed=seed, **schedule)
        if checkpoint:
            _write_state(state._replace(epochs=epoch + 1), checkpoint)
        _LOG.info("epoch %d of %d: %.0f s", epoch + 1, recipe.epochs, time.monotonic() - start)
    return combined(state.words, state.contexts)


def combined(words: Matrix, contexts: Matrix) -> Matrix:
    """A word's own vector plus half of its vector as a context, with the mean of all words at 0.

    The context half parts words that are used alike but in different company, such as *she* and *he*; without
    the common mean, cosines use their whole range.
    """
    both = words + contexts / 2
    return np.asarray(both - both.mean(axis=0), dtype=np.float32)


def _encoded(paths: Sequence[Path], out: Path, recipe: Recipe, limit: int | None) -> tuple[Vocabulary, Ids]:
    """The vocabulary and the encoded text, from ``out`` where an earlier call left them."""
    stored = out / "encoded.safetensors"
    if not stored.exists():
        counts = count_words(_texts(paths, limit))
        vocabulary = choose_vocabulary(counts, recipe.words, required=embedded_gender_words().specific)
        if not vocabulary.words:
            raise InputError(
                "the texts hold no word often enough", accepted=f"words that occur {LEAST} times"
            )
        letters = np.frombuffer("\n".join(vocabulary.words).encode(), dtype=np.uint8)
        ids = encode(_texts(paths, limit), vocabulary.words)
        _save({"letters": letters, "counts": vocabulary.counts, "ids": ids}, stored)
    tensors = load_file(stored)
    words = tuple(tensors["letters"].tobytes().decode().split("\n"))
    _LOG.info("%d words, %d running words kept", len(words), int((tensors["ids"] >= 0).sum()))
    return Vocabulary(words, tensors["counts"]), tensors["ids"]


def _texts(paths: Sequence[Path], limit: int | None) -> Iterator[str]:
    for path in paths:
        for document in split(path)[0][:limit]:
            yield document.text


def _encode_text(text: str, index: dict[str, int]) -> Ids:
    found = (index.get(word_form(word), BREAK) for word in _TOKEN.findall(text.lower()))
    kept = [number for number in found if number != BREAK]
    return np.array([*kept, BREAK], dtype=np.int32)


def _first_state(words: int, recipe: Recipe) -> _State:
    draws = np.random.default_rng(recipe.seed).random((words, recipe.width))
    first = ((draws - 0.5) / recipe.width).astype(np.float32)
    return _State(first, np.zeros_like(first), 0)


def _write_state(state: _State, checkpoint: Path) -> None:
    tensors = {"words": state.words, "contexts": state.contexts, "epochs": np.array([state.epochs])}
    _save(tensors, checkpoint)


def _save(tensors: dict[str, npt.NDArray[np.generic]], path: Path) -> None:
    """Write a file whole or not at all: a kill leaves a part, which the next call writes again."""
    part = _part(path)
    save_file(tensors, part)
    part.replace(path)


def _part(path: Path) -> Path:
    # Not `store.atomic`: it needs Polars, which a GPU machine may lack.
    return path.with_suffix(".part")


def _read_state(checkpoint: Path) -> _State:
    tensors = load_file(checkpoint)
    return _State(np.array(tensors["words"]), np.array(tensors["contexts"]), int(tensors["epochs"][0]))


def main(argv: list[str] | None = None) -> None:
    """Train word vectors from the command line."""
    recipe = Recipe()
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "texts", type=Path, nargs="+", help="UTF-8 files, documents separated by an empty line"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--words", type=int, default=recipe.words)
    parser.add_argument("--epochs", type=int, default=recipe.epochs)
    parser.add_argument("--limit", type=int, help="documents of each file")
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    train(args.texts, args.out, recipe=Recipe(words=args.words, epochs=args.epochs), limit=args.limit)


if __name__ == "__main__":
    main()
