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
import torch
from safetensors.numpy import load_file, save_file
from torch import Tensor

from evenhand.core.errors import InputError
from evenhand.tensors.devices import single_thread
from evenhand.text.hard_debiasing import load_gender_words
from evenhand.text.word_vectors import WordVectors, save_vectors, word_form
from evenhand.training.corpus_text import split_documents

WINDOW_LENGTH: Final = 48
"""Words looked at together. Pairs across the edges are not met: 5 % of them, others in every epoch."""
SHARED_NEGATIVES: Final = 32
"""Random words a stretch is told apart from; weighted, so that each pair counts ``negatives`` of them."""
WINDOWS_PER_STEP: Final = 8
"""Stretches a step at most."""
MAX_STEP_WEIGHT: Final = 5.0
"""The most that a step may weigh for one word: learning rate times pairs. A step adds up a word's changes, so
in a large one frequent words overshoot: 64 stretches of 32 words lost half of the analogies that 16 found."""


@dataclass(frozen=True, slots=True)
class SkipGramConfig:
    """What decides a skip-gram epoch."""

    window: int = 5
    """The farthest neighbour. One at distance d weighs (window + 1 - d) / window, which is how often a word
    whose reach is drawn between 1 and ``window`` would meet it."""
    negatives: int = 5
    """Random words each word is told apart from."""
    rate: float = 0.025
    """The learning rate at the start; it falls in a line to nearly 0 at the end of the last epoch."""
    common: float = 1e-4
    """Share of the text above which a word is skipped now and then."""
    power: float = 0.75
    """Random words are drawn by their frequency to this power."""


class SkipGramBatch(NamedTuple):
    """Some stretches of text."""

    near: Tensor
    """(stretches, words): word numbers."""
    weights: Tensor
    """(stretches, words, words): how much each pair counts; 0 out of reach and across documents."""
    far: Tensor
    """(stretches, random words): word numbers."""


def run_epoch(
    ids: npt.NDArray[np.int32],
    counts: npt.NDArray[np.int64],
    words: npt.NDArray[np.float32],
    contexts: npt.NDArray[np.float32],
    *,
    settings: SkipGramConfig,
    seed: int,
    done: float,
    share: float,
) -> None:
    """Change ``words`` and ``contexts`` in place by one pass over the text.

    Args:
        ids: Word numbers; negative ones part documents.
        counts: How often each word occurs.
        words: The vectors, one row a word.
        contexts: The output vectors, one row a word.
        settings: Window, negatives, rates.
        seed: Decides every draw.
        done: Share of the whole training that lies behind.
        share: Share of it that this pass is.
    """
    rng = np.random.default_rng(seed)
    number, document = _subsample(ids, _keep_shares(counts, settings.common), rng)
    tables = torch.from_numpy(words), torch.from_numpy(contexts)
    edges = _draw_edges(counts, settings.power)
    stretches, highest = learning_schedule(edges, settings)
    with single_thread(), torch.inference_mode():
        for progress, step in _steps(number, document, edges, settings.window, stretches, rng):
            rate = highest * max(1 - done - share * progress, 1e-4)
            update_vectors(*tables, step, rate=rate, negatives=settings.negatives)


def learning_schedule(edges: npt.NDArray[np.float64], settings: SkipGramConfig) -> tuple[int, float]:
    """(stretches a step, learning rate at the start) for random words drawn by these edges.

    A word of a small vocabulary is met so often in a step that fewer stretches, or a lower rate, must do.

    >>> pace(np.linspace(0.001, 1, 1000), Settings()), pace(np.array([0.5, 1.0]), Settings(rate=0.1))[0]
    ((8, 0.025), 1)
    """
    most = float(np.diff(edges, prepend=0.0).max())
    heat = settings.rate * settings.negatives * (settings.window + 1) * WINDOW_LENGTH * most
    return max(1, min(WINDOWS_PER_STEP, int(MAX_STEP_WEIGHT / heat))), settings.rate * min(
        1.0, MAX_STEP_WEIGHT / heat
    )


def update_vectors(
    words: Tensor, contexts: Tensor, step: SkipGramBatch, *, rate: float, negatives: int
) -> None:
    """Move words towards their neighbours' output vectors and away from the random words', in place.

    The slope of a pair's log-likelihood: 1 - sigmoid(dot) for neighbours, -sigmoid(dot) for random words.
    """
    own, other, random = words[step.near], contexts[step.near], contexts[step.far]
    pull = step.weights * (1 - torch.bmm(own, other.mT).sigmoid_()) * rate
    push = torch.bmm(own, random.mT).sigmoid_() * step.weights.sum(-1, keepdim=True)
    push *= -rate * negatives / step.far.shape[1]
    change = torch.bmm(pull, other) + torch.bmm(push, random)
    words.index_add_(0, step.near.flatten(), change.flatten(0, 1))
    contexts.index_add_(0, step.near.flatten(), torch.bmm(pull.mT, own).flatten(0, 1))
    contexts.index_add_(0, step.far.flatten(), torch.bmm(push.mT, own).flatten(0, 1))


def reach_weights(length: int, window: int) -> Tensor:
    """How much the pair of two places counts in a stretch of this length; 0 on the diagonal.

    >>> reach_weights(3, 2).tolist()
    [[0.0, 1.0, 0.5], [1.0, 0.0, 1.0], [0.5, 1.0, 0.0]]
    """
    places = torch.arange(length)
    distance = (places[:, None] - places).abs()
    return ((window + 1 - distance).clamp(min=0) / window) * (distance > 0)


def _subsample(
    ids: npt.NDArray[np.int32], shares: npt.NDArray[np.float32], rng: np.random.Generator
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """The words that are not skipped this time, and the number of each one's document."""
    is_word = ids >= 0
    document = np.cumsum(~is_word, dtype=np.int32)
    kept = is_word & (rng.random(len(ids), dtype=np.float32) < shares[ids])
    # Stretches begin elsewhere in every epoch.
    first = int(rng.integers(WINDOW_LENGTH))
    return ids[kept][first:], document[kept][first:]


def _steps(
    number: npt.NDArray[np.int32],
    document: npt.NDArray[np.int32],
    edges: npt.NDArray[np.float64],
    window: int,
    stretches: int,
    rng: np.random.Generator,
) -> Iterator[tuple[float, SkipGramBatch]]:
    """(share of the pass that lies behind, step); the words of a last partial stretch are left out."""
    reach = reach_weights(WINDOW_LENGTH, window)
    whole = len(number) // WINDOW_LENGTH
    near, part = (
        torch.from_numpy(a[: whole * WINDOW_LENGTH]).view(-1, WINDOW_LENGTH) for a in (number, document)
    )
    for at in range(0, whole, stretches):
        some, where = near[at : at + stretches].long(), part[at : at + stretches]
        weights = reach * (where[:, :, None] == where[:, None, :])
        drawn = np.searchsorted(edges, rng.random((len(some), SHARED_NEGATIVES)))
        yield at / whole, SkipGramBatch(some, weights, torch.from_numpy(drawn))


def _keep_shares(counts: npt.NDArray[np.int64], common: float) -> npt.NDArray[np.float32]:
    """For each word the chance that an occurrence is kept: 1 unless its share of the text is above common."""
    relative = np.maximum(counts / counts.sum() / common, 1e-12)
    shares: npt.NDArray[np.float32] = np.minimum((np.sqrt(relative) + 1) / relative, 1.0).astype(np.float32)
    return shares


def _draw_edges(counts: npt.NDArray[np.int64], power: float) -> npt.NDArray[np.float64]:
    """The upper edges of the words' parts of [0, 1], each as wide as its frequency to ``power``."""
    weights = np.cumsum(counts.astype(np.float64) ** power)
    return np.asarray(weights / weights[-1])


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
class WordVectorConfig:
    """How word vectors are trained."""

    words: int = 41_000
    width: int = 100
    epochs: int = 6
    settings: SkipGramConfig = field(default_factory=SkipGramConfig)
    seed: int = 0


class WordVocabulary(NamedTuple):
    """The words that get a vector, most frequent first, and how often each occurs."""

    words: tuple[str, ...]
    counts: Counts


class _State(NamedTuple):
    words: Matrix
    contexts: Matrix
    epochs: int
    """Epochs done."""


def train_word_vectors(
    paths: Sequence[Path], out: Path, *, recipe: WordVectorConfig | None = None, limit: int | None = None
) -> WordVectors:
    """Word vectors of the texts' training documents, written to ``out/vectors.safetensors``.

    Args:
        paths: UTF-8 files, documents separated by an empty line; one document in a hundred is held out.
        out: Folder for the vectors and, between epochs, the checkpoint and the encoded text.
        recipe: How to train.
        limit: Read at most this many documents of each file.
    """
    recipe = recipe or WordVectorConfig()
    out.mkdir(parents=True, exist_ok=True)
    vocabulary, ids = _encode_corpus(paths, out, recipe, limit)
    matrix = fit_word_vectors(ids, vocabulary.counts, recipe, checkpoint=out / "checkpoint.safetensors")
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
) -> WordVocabulary:
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
    return WordVocabulary(tuple(words), np.array([total[word] for word in words], dtype=np.int64))


def encode_texts(texts: Iterable[str], words: Sequence[str]) -> Ids:
    """The texts as one row of word numbers; other words are left out, and -1 stands after each document."""
    index = {word: number for number, word in enumerate(words)}
    return np.concatenate([np.zeros(0, dtype=np.int32), *(_encode_text(text, index) for text in texts)])


def fit_word_vectors(
    ids: Ids, counts: Counts, recipe: WordVectorConfig, *, checkpoint: Path | None = None
) -> Matrix:
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
    return combine_vectors(state.words, state.contexts)


def combine_vectors(words: Matrix, contexts: Matrix) -> Matrix:
    """A word's own vector plus half of its vector as a context, with the mean of all words at 0.

    The context half parts words that are used alike but in different company, such as *she* and *he*; without
    the common mean, cosines use their whole range.
    """
    both = words + contexts / 2
    return np.asarray(both - both.mean(axis=0), dtype=np.float32)


def _encode_corpus(
    paths: Sequence[Path], out: Path, recipe: WordVectorConfig, limit: int | None
) -> tuple[WordVocabulary, Ids]:
    """The vocabulary and the encoded text, from ``out`` where an earlier call left them."""
    stored = out / "encoded.safetensors"
    if not stored.exists():
        counts = count_words(_texts(paths, limit))
        vocabulary = choose_vocabulary(counts, recipe.words, required=load_gender_words().specific)
        if not vocabulary.words:
            raise InputError(
                "the texts hold no word often enough", expected=f"words that occur {LEAST} times"
            )
        letters = np.frombuffer("\n".join(vocabulary.words).encode(), dtype=np.uint8)
        ids = encode_texts(_texts(paths, limit), vocabulary.words)
        _save({"letters": letters, "counts": vocabulary.counts, "ids": ids}, stored)
    tensors = load_file(stored)
    words = tuple(tensors["letters"].tobytes().decode().split("\n"))
    _LOG.info("%d words, %d running words kept", len(words), int((tensors["ids"] >= 0).sum()))
    return WordVocabulary(words, tensors["counts"]), tensors["ids"]


def _texts(paths: Sequence[Path], limit: int | None) -> Iterator[str]:
    for path in paths:
        for document in split_documents(path)[0][:limit]:
            yield document.text


def _encode_text(text: str, index: dict[str, int]) -> Ids:
    found = (index.get(word_form(word), BREAK) for word in _TOKEN.findall(text.lower()))
    kept = [number for number in found if number != BREAK]
    return np.array([*kept, BREAK], dtype=np.int32)


def _first_state(words: int, recipe: WordVectorConfig) -> _State:
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
    recipe = WordVectorConfig()
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
    train_word_vectors(
        args.texts, args.out, recipe=WordVectorConfig(words=args.words, epochs=args.epochs), limit=args.limit
    )


if __name__ == "__main__":
    main()
