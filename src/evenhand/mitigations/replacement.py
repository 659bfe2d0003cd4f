"""The baselines of the paper's Table 5: replace words of a side in a model's text.

``naive`` replaces a random share of the words by their nearest neighbours among word vectors; ``in-glove``
replaces each by one of its ten nearest among ideology-neutral vectors (section 6.3). Both work on any text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from evenhand.core.errors import InputError
from evenhand.core.files import user_path
from evenhand.core.protocols import MaxBatch, Model, ResolvesSpec
from evenhand.core.records import Completion, GenerationSpec, MitigationInfo, ModelRef, Request
from evenhand.core.seeds import make_generator
from evenhand.mitigations.word_lists import WordLists, read_word_lists
from evenhand.text.word_tokens import find_tokens
from evenhand.text.word_vectors import WordVectors, load_embedded_vectors, read_vectors, unit_rows

VERSION: Final = "1"
Kind = Literal["naive", "in-glove"]
NEAREST: Final[Mapping[Kind, int]] = {"naive": 1, "in-glove": 10}
"""Number of candidate replacements of a word."""
SHARE: Final[Mapping[Kind, float]] = {"naive": 0.5, "in-glove": 1.0}
"""The share of words to replace; for naive the paper says "randomly" without a share."""


class Replacement:
    """Replaces words of two sides in a model's text by words with similar usage.

    Args:
        mode: ``naive`` (half of the words, by the nearest word) or ``in-glove`` (all, by one of the ten
            nearest neutral ones).
        words: ``ideology``, ``gender``, or a JSON file with two lists.
        vectors: A file of word vectors; the embedded ones for ``naive``. ``in-glove`` needs neutral ones:
            ``python -m evenhand.training.neutral_vectors``.
        share: The share of these words to replace.
    """

    def __init__(
        self,
        *,
        mode: Kind = "naive",
        words: str = "ideology",
        vectors: str | None = None,
        share: float | None = None,
    ) -> None:
        _check(mode, vectors, share)
        self._mode, self._sides = mode, read_word_lists(str(words))
        self._vectors = read_vectors(user_path(str(vectors))) if vectors else load_embedded_vectors()
        self._share = SHARE[mode] if share is None else share
        self._neighbours = nearest_neighbours(self._sides, self._vectors, count=NEAREST[mode])
        self.info = MitigationInfo(
            name="replacement",
            version=VERSION,
            summary="Replaces words of two sides in generated text by words with similar usage.",
            requires="Model",
            options={
                "version": VERSION,
                "mode": mode,
                "words": self._sides.digest,
                "vectors": self._vectors.digest,
                "share": f"{self._share}",
                "replaceable": str(len(self._neighbours)),
            },
            citation="Liu et al. Mitigating Political Bias in Language Models. AAAI 2021, section 6.3.",
        )

    def apply(self, model: Model) -> Model:
        """The model with rewritten texts."""
        marks = {f"mitigation.{key}": value for key, value in self.info.options.items()}
        options = {**model.ref.options, "mitigation": f"replacement:{self._mode}", **marks}
        return RewrittenModel(
            replace(model.ref, options=options), model, Rewriter(self._neighbours, self._share)
        )


@dataclass(frozen=True, slots=True)
class Rewriter:
    """Replaces words in a text; each draw depends only on the key of the text."""

    neighbours: Mapping[str, tuple[str, ...]]
    share: float

    def __call__(self, text: str, *, seed: int, request_id: str, sample: int) -> str:
        """The text with some of the words replaced; case and all other text stay the same."""
        draw = make_generator(seed, "replacement", request_id, sample)
        parts, end = [], 0
        for word, start, stop in find_tokens(text):
            options = self.neighbours.get(word)
            if options is None or draw.random() >= self.share:
                continue
            neighbour = options[int(draw.integers(len(options)))]
            parts += [text[end:start], _match_case(neighbour, like=text[start:stop])]
            end = stop
        return "".join([*parts, text[end:]])


@dataclass(frozen=True, slots=True)
class RewrittenModel:
    """A model whose texts are rewritten before they are returned."""

    ref: ModelRef
    inner: Model
    rewriter: Rewriter

    @property
    def at_once(self) -> int:
        """The batch size of the underlying model."""
        return self.inner.at_once if isinstance(self.inner, MaxBatch) else 1

    def resolved(self, spec: GenerationSpec) -> GenerationSpec:
        """The spec as resolved by the underlying model."""
        return self.inner.resolved(spec) if isinstance(self.inner, ResolvesSpec) else spec

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        """The model's completions, rewritten; failures are unchanged."""
        for item in self.inner.generate(requests, spec):
            if item.text is None:
                yield item
                continue
            text = self.rewriter(item.text, seed=spec.seed, request_id=item.request_id, sample=item.sample)
            yield replace(item, text=text)


def nearest_neighbours(sides: WordLists, vectors: WordVectors, *, count: int) -> dict[str, tuple[str, ...]]:
    """The nearest unlisted words of each listed word with a vector, nearest first."""
    listed = {word.lower() for words in sides.words for word in words}
    known = sorted(word for word in listed if vectors.find(word) >= 0)
    if not known:
        raise InputError(
            f"{vectors.source} has no vector for any of the {len(listed)} words",
            expected="vectors of the words' language, in lower case",
            fix="check the word lists and the vectors",
        )
    unit = unit_rows(vectors.matrix)
    cosines = unit[[vectors.find(word) for word in known]] @ unit.T
    neighbours = {}
    for word, row in zip(known, cosines, strict=True):
        nearest = _largest(row, count + len(listed) + 1)
        near = [vectors.words[place] for place in nearest if vectors.words[place] not in listed]
        neighbours[word] = tuple(near[:count])
    return neighbours


def _largest(values: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """The indices of the largest values, largest first, ties in order; only these values are sorted."""
    if count >= len(values):
        return (-values).argsort(kind="stable")
    least = np.partition(values, -count)[-count]
    places = np.flatnonzero(values >= least)
    return places[(-values[places]).argsort(kind="stable")][:count]


def _match_case(word: str, *, like: str) -> str:
    if like.isupper() and len(like) > 1:
        return word.upper()
    return word.capitalize() if like[:1].isupper() else word


def _check(mode: str, vectors: str | None, share: float | None) -> None:
    if mode not in get_args(Kind):
        raise InputError(
            f"mode is {mode!r}", expected=", ".join(get_args(Kind)), fix="for example replacement:naive"
        )
    if mode == "in-glove" and vectors is None:
        raise InputError(
            "the mode in-glove needs vectors",
            expected="a file of ideology-neutral word vectors",
            fix="train them: python -m evenhand.training.neutral_vectors ARTICLES.jsonl --out DIR",
        )
    if share is not None and not (isinstance(share, int | float) and 0 <= share <= 1):
        raise InputError(f"share is {share!r}", expected="0 to 1", fix="change the mitigation's option share")
