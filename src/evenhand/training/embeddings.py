"""Train word vectors on running text: count words, choose a vocabulary, encode, skip-gram, store, evaluate.

Skip-gram with negative sampling (Mikolov et al. 2013) in one thread, so that the same text and seed give the
same vectors. Each epoch ends with a checkpoint, from which an interrupted run resumes.
"""

from __future__ import annotations

import json
import logging
import math
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, permutations
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import torch
from safetensors.numpy import load_file
from scipy.stats import spearmanr
from torch import Tensor

from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.protocols import Progress
from evenhand.core.regular_files import read_text
from evenhand.store.atomic_writes import replace_file, storage_errors
from evenhand.tensors.devices import single_thread
from evenhand.text.hard_debiasing import load_gender_words
from evenhand.text.word_vectors import WordVectors, save_vectors, unit_rows, word_form
from evenhand.training import job_folder
from evenhand.training.corpus_text import split_documents
from evenhand.training.finetuning import write_whole

Ids = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.float32]
Pairs = Sequence[Sequence[str]]

_LOG = logging.getLogger(__name__)
_TOKEN: Final = re.compile(r"\w+(?:'\w+)?")
_NOT_A_WORD: Final = re.compile(r"[\d_]")
_WORD_CLAIM: Final = 4
"""The weight of a lower-case occurrence: to get a vector, a name must be four times as common as a word."""
LEAST: Final = 10
"""Minimum occurrences for a word to get a vector."""
VECTORS: Final = "vectors.safetensors"
BREAK: Final = -1
"""Separates documents among the encoded words."""
WINDOW_LENGTH: Final = 48
"""Words per window. Pairs across window edges are dropped: 5 % of them, different ones in every epoch."""
SHARED_NEGATIVES: Final = 32
"""Negative samples per window; weighted, so that each pair counts ``negatives`` of them."""
WINDOWS_PER_STEP: Final = 8
"""Maximum windows per step."""
MAX_STEP_WEIGHT: Final = 5.0
"""Maximum weight of a step for one word: learning rate times pairs. A step sums a word's changes, so with
large steps frequent words overshoot: 64 windows of 32 words lost half of the analogies that 16 solved."""


@dataclass(frozen=True, slots=True)
class SkipGramConfig:
    """The settings of a skip-gram epoch."""

    window: int = 5
    """The farthest neighbour. One at distance d weighs (window + 1 - d) / window: how often it is within
    reach of a word whose reach is drawn uniformly from 1 to ``window``."""
    negatives: int = 5
    """Negative samples per word."""
    rate: float = 0.025
    """The initial learning rate; it falls linearly to nearly 0 at the end of the last epoch."""
    common: float = 1e-4
    """Share of the text above which occurrences of a word are subsampled."""
    power: float = 0.75
    """Negative samples are drawn by frequency to this power."""


class SkipGramBatch(NamedTuple):
    """Windows of text: the numbers of their words, and of their negative samples (windows x words)."""

    near: Tensor
    weights: Tensor
    """The weight of each pair of words of a window; 0 out of reach and across documents."""
    far: Tensor


def run_epoch(
    ids: Ids, counts: Counts, words: Matrix, contexts: Matrix, *, recipe: WordVectorConfig, epoch: int
) -> None:
    """Update ``words`` and ``contexts``, the vectors and output vectors, in one pass over the text.

    ``ids`` are word numbers, with negative ones between documents.
    """
    settings, seed, done = recipe.settings, recipe.seed * 1000 + epoch, epoch / recipe.epochs
    rng = np.random.default_rng(seed)
    number, document = subsample(ids, keep_shares(counts, settings.common), rng)
    tables = torch.from_numpy(words), torch.from_numpy(contexts)
    edges = draw_edges(counts, settings.power)
    stretches, highest = learning_schedule(edges, settings)
    reach = reach_weights(WINDOW_LENGTH, settings.window)
    windows = len(number) // WINDOW_LENGTH
    near, part = (
        torch.from_numpy(a[: windows * WINDOW_LENGTH]).view(-1, WINDOW_LENGTH) for a in (number, document)
    )
    with single_thread(), torch.inference_mode():
        for at in range(0, windows, stretches):
            center, where = near[at : at + stretches].long(), part[at : at + stretches]
            weights = reach * (where[:, :, None] == where[:, None, :])
            drawn = np.searchsorted(edges, rng.random((len(center), SHARED_NEGATIVES)))
            rate = highest * max(1 - done - 1 / recipe.epochs * (at / windows), 1e-4)
            step = SkipGramBatch(center, weights, torch.from_numpy(drawn))
            update_vectors(*tables, step, rate=rate, negatives=settings.negatives)


def learning_schedule(edges: npt.NDArray[np.float64], settings: SkipGramConfig) -> tuple[int, float]:
    """(windows per step, initial learning rate) for negative samples drawn with these edges.

    A word of a small vocabulary occurs so often in a step that fewer windows or a lower rate are needed.

    >>> learning_schedule(np.linspace(0.001, 1, 1000), SkipGramConfig())
    (8, 0.025)
    """
    most = float(np.diff(edges, prepend=0.0).max())
    heat = settings.rate * settings.negatives * (settings.window + 1) * WINDOW_LENGTH * most
    limit = MAX_STEP_WEIGHT / heat
    return max(1, min(WINDOWS_PER_STEP, int(limit))), settings.rate * min(1.0, limit)


def update_vectors(
    words: Tensor, contexts: Tensor, step: SkipGramBatch, *, rate: float, negatives: int
) -> None:
    """Move words towards their neighbours' output vectors and away from the negative samples', in place.

    The gradient of a pair's log-likelihood: 1 - sigmoid(dot) for neighbours, -sigmoid(dot) for negatives.
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
    """The weight of each pair of positions in a window of this length; 0 on the diagonal.

    >>> reach_weights(3, 2).tolist()
    [[0.0, 1.0, 0.5], [1.0, 0.0, 1.0], [0.5, 1.0, 0.0]]
    """
    places = torch.arange(length)
    distance = (places[:, None] - places).abs()
    return ((window + 1 - distance).clamp(min=0) / window) * (distance > 0)


def subsample(ids: Ids, shares: Matrix, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """The words kept by subsampling, and the document number of each."""
    is_word = ids >= 0
    document = np.cumsum(~is_word, dtype=np.int32)
    is_used = is_word & (rng.random(len(ids), dtype=np.float32) < shares[ids])
    # Windows begin at a different offset in every epoch.
    first = int(rng.integers(WINDOW_LENGTH))
    return ids[is_used][first:], document[is_used][first:]


def keep_shares(counts: Counts, common: float) -> Matrix:
    """The probability to keep an occurrence of each word: 1 unless its share is above ``common``."""
    relative = np.maximum(counts / counts.sum() / common, 1e-12)
    shares: Matrix = np.minimum((np.sqrt(relative) + 1) / relative, 1.0).astype(np.float32)
    return shares


def draw_edges(counts: Counts, power: float) -> npt.NDArray[np.float64]:
    """The upper edges of the words' intervals in [0, 1], each as wide as its frequency to ``power``."""
    weights = np.cumsum(counts.astype(np.float64) ** power)
    return np.asarray(weights / weights[-1])


@dataclass(frozen=True, slots=True)
class WordVectorConfig:
    """How word vectors are trained."""

    words: int = 41_000
    width: int = 100
    epochs: int = 6
    settings: SkipGramConfig = field(default_factory=SkipGramConfig)
    seed: int = 0


class WordVocabulary(NamedTuple):
    """The words that get a vector, most frequent first, and the number of occurrences of each."""

    words: tuple[str, ...]
    counts: Counts


def train_word_vectors(paths: Sequence[Path], out: Path, *, recipe: WordVectorConfig) -> WordVectors:
    """Train word vectors on the texts' training documents and write them to ``out/vectors.safetensors``.

    The paths are UTF-8 files, documents separated by an empty line; one document in a hundred is held out.
    Between epochs ``out`` also has the checkpoint.
    """
    out.mkdir(parents=True, exist_ok=True)
    required = load_gender_words().specific
    vocabulary = choose_vocabulary(count_words(_texts(paths)), recipe.words, required=required)
    if not vocabulary.words:
        expected = f"words that occur {LEAST} times"
        raise InputError("no word is frequent enough in the texts", expected=expected)
    ids = encode_texts(_texts(paths), vocabulary.words)
    _LOG.info("%d words, %d running words", len(vocabulary.words), int((ids >= 0).sum()))
    matrix = fit_word_vectors(ids, vocabulary.counts, recipe, checkpoint=out / job_folder.CHECKPOINT)
    path = out / VECTORS
    with replace_file(path) as part:
        save_vectors(vocabulary.words, matrix, part)
    return WordVectors.create(vocabulary.words, matrix, source=str(path))


def count_words(texts: Iterable[str]) -> Counter[str]:
    """The number of occurrences of each word, case-sensitive."""
    return Counter(chain.from_iterable(map(_TOKEN.findall, texts)))


def choose_vocabulary(counts: Counter[str], size: int, *, required: Iterable[str] = ()) -> WordVocabulary:
    """The ``size`` words with the highest rank, most frequent first.

    A word's rank is four times its lower-case occurrences plus the capitalised ones, so that common words
    precede names; ``required`` words come first. Words with digits or rarer than ``LEAST`` are left out.
    """
    total: Counter[str] = Counter()
    claim: Counter[str] = Counter()
    for written, count in counts.items():
        word = word_form(written.lower())
        if not _NOT_A_WORD.search(word):
            total[word] += count
            claim[word] += count * (_WORD_CLAIM if written[0].islower() else 1)
    first = frozenset(required)
    able = [word for word, count in total.items() if count >= LEAST]
    able.sort(key=lambda word: (word not in first, -claim[word], word))
    words = sorted(able[:size], key=lambda word: (-total[word], word))
    return WordVocabulary(tuple(words), np.array([total[word] for word in words], dtype=np.int64))


def encode_texts(texts: Iterable[str], words: Sequence[str]) -> Ids:
    """The texts as one array of word numbers; other words are left out, and -1 follows each document."""
    index = {word: number for number, word in enumerate(words)}
    ids: list[Ids] = [np.zeros(0, dtype=np.int32)]
    for text in texts:
        forms = map(word_form, _TOKEN.findall(text.lower()))
        ids.append(np.array([*(index[form] for form in forms if form in index), BREAK], dtype=np.int32))
    return np.concatenate(ids)


def fit_word_vectors(
    ids: Ids, counts: Counts, recipe: WordVectorConfig, *, checkpoint: Path | None = None
) -> Matrix:
    """The vectors of the encoded words, one row per word; resumes from the checkpoint if there is one."""
    if checkpoint and checkpoint.exists():
        state = {name: np.array(values) for name, values in load_file(checkpoint).items()}
        words, contexts, first = state["words"], state["contexts"], int(state["epochs"][0])
    else:
        draws = np.random.default_rng(recipe.seed).random((len(counts), recipe.width))
        words, first = ((draws - 0.5) / recipe.width).astype(np.float32), 0
        contexts = np.zeros_like(words)
    for epoch in range(first, recipe.epochs):
        start = time.monotonic()
        run_epoch(ids, counts, words, contexts, recipe=recipe, epoch=epoch)
        if checkpoint:
            state = {"words": words, "contexts": contexts, "epochs": np.array([epoch + 1])}
            write_whole(checkpoint, {name: torch.from_numpy(values) for name, values in state.items()})
        _LOG.info("epoch %d of %d: %.0f s", epoch + 1, recipe.epochs, time.monotonic() - start)
    # Adding context vectors separates words with similar usage but different company, such as *she* and *he*;
    # with the mean over all words at 0, cosines use their whole range.
    both = words + contexts / 2
    return np.asarray(both - both.mean(axis=0), dtype=np.float32)


def _texts(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        yield from (document.text for document in split_documents(path)[0])


@dataclass(frozen=True, slots=True)
class WordVectorTraining:
    """Trains word vectors on running text."""

    data: tuple[Path, ...]
    recipe: WordVectorConfig

    def identity(self) -> dict[str, Json]:
        """Everything that determines the result."""
        digests: list[Json] = [file_digest(path) for path in self.data]
        return {"task": "embeddings", "data": digests, **asdict(self.recipe)}

    def lines(self) -> tuple[str, ...]:
        """The planned steps."""
        recipe, names = self.recipe, ", ".join(path.name for path in self.data)
        vectors = f"vectors at most {recipe.words:,} words x {recipe.width}, {recipe.epochs} epochs"
        return (f"texts   {names}", vectors)

    def run(self, folder: job_folder.TrainingFolder, progress: Progress) -> Mapping[str, float]:
        """Train, write the vectors and evaluate them on our own questions."""
        try:
            with progress.step("word vectors", None), storage_errors(folder.path):
                vectors = train_word_vectors(self.data, folder.path, recipe=self.recipe)
        except UnicodeDecodeError as error:
            raise InputError(
                f"the texts are not UTF-8: {error}", expected="UTF-8 text", fix="convert the file"
            ) from error
        measures, rows = _evaluate(vectors)
        notes = ["The questions are few and easy: they show that training worked, but not how well."]
        if missing := [word for word in ("she", "he") if word not in vectors.index]:
            notes.insert(0, f"No vector for {' and '.join(missing)}: gender_polarity cannot use these.")
        settings = job_folder.describe_settings(asdict(self.recipe))
        card = job_folder.write_card(
            title="Word vectors",
            settings={
                "data": job_folder.describe_files(*self.data),
                "training": f"skip-gram with negative sampling; {settings}",
                "words": f"{len(vectors.words):,} x {vectors.matrix.shape[1]}",
            },
            results=[job_folder.markdown_table(("question", "result"), *rows)],
            notes=notes,
            use=job_folder.score_command(f"gender_polarity={folder.path / VECTORS}"),
        )
        return folder.finish(measures, card=card)


def _evaluate(vectors: WordVectors) -> tuple[dict[str, float], list[tuple[str, str]]]:
    questions = load_questions()
    right, total = map(sum, zip(*analogy_shares(vectors, questions["analogies"]).values(), strict=True))
    measures = {"words": float(len(vectors.words))}
    rows = [("analogies", f"{right:,} of {total:,} correct")]
    if total:
        measures["analogies"] = right / total
    correlation, pairs = similarity_correlation(vectors, questions["similarity"])
    if pairs >= 3:
        measures["similarity"] = correlation
        rows.append(("word similarity, Spearman", f"{correlation:.3f} over {pairs} pairs"))
    return measures, rows


def load_questions() -> Mapping[str, Any]:
    """Our evaluation questions: ``analogies`` (pairs by kind), ``similarity`` (0 to 10), ``occupations``."""
    return cast("Mapping[str, Any]", json.loads(read_text(asset_path("embeddings", "checks.json"))))


def analogy_shares(vectors: WordVectors, analogies: Mapping[str, Pairs]) -> dict[str, tuple[int, int]]:
    """For each kind the number of correct answers, and of all: the nearest word to b - a + c is d.

    a, b and c are excluded as answers; questions with a word that has no vector are skipped.
    """
    unit, index, shares = unit_rows(vectors.matrix), vectors.index, {}
    for kind, pairs in analogies.items():
        usable = [(index[a], index[b]) for a, b in pairs if a in index and b in index]
        questions = [(*first, *second) for first, second in permutations(usable, 2) if first[0] != second[0]]
        a, b, c, d = np.array(questions, dtype=np.int64).reshape(-1, 4).T
        cosines = (unit[b] - unit[a] + unit[c]) @ unit.T
        cosines[np.arange(len(questions)), [a, b, c]] = -np.inf
        shares[kind] = int((cosines.argmax(axis=1) == d).sum()), len(questions)
    return shares


def similarity_correlation(
    vectors: WordVectors, pairs: Sequence[tuple[str, str, float]]
) -> tuple[float, int]:
    """Spearman's correlation of cosines with the ratings, in [-1, 1], and the number of known pairs.

    NaN with fewer than three known pairs.
    """
    unit, index = unit_rows(vectors.matrix), vectors.index
    usable = [(index[a], index[b], rating) for a, b, rating in pairs if a in index and b in index]
    if len(usable) < 3:
        return math.nan, len(usable)
    cosines = [unit[a] @ unit[b] for a, b, _ in usable]
    return float(spearmanr(cosines, [rating for _, _, rating in usable]).statistic), len(usable)
