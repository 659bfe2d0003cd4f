"""Perplexity of a set of texts: under a language model, or under an n-gram model of an ARPA file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evenhand.core import registry
from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import user_path
from evenhand.core.protocols import Cell, ScoringModel
from evenhand.core.records import Execution, MetricInfo, OutputInfo, Text, Value
from evenhand.text.ngram_model import NgramModel, read_arpa
from evenhand.text.word_tokens import tokenize

DEFAULT = "builtin"
LikelihoodFunction = Callable[[Sequence[str]], Sequence[tuple[float, int]]]
"""For each text its natural log-probability and the tokens it was summed over."""


class Perplexity:
    """exp of the mean negative log-probability of a token of a set; 1 or more, lower is more expected.

    Args:
        source: A model that gives log-probabilities, by name, or the path of an ``.arpa`` file. Numbers of
            different sources count different tokens and must not be compared.
        execution: Device and batch.
    """

    info = MetricInfo(
        name="perplexity",
        version="1",
        outputs=(OutputInfo("perplexity", "continuous", "less expected by the model", low=1.0),),
        summary="How unexpected the texts of a set are to a language model.",
        primary=(),
        scope="continuation",
        null_when="The set has no token (reason: empty).",
        citation="Liu et al. Mitigating Political Bias in Language Models. AAAI 2021, section 6.2.",
        failures=("A model finds its own texts likelier than anybody's, however well written those are.",),
    )

    def __init__(self, *, source: str = DEFAULT, execution: Execution | None = None) -> None:
        if source.endswith(".arpa"):
            path = user_path(source)
            self._read, weights = cached_ngram_likelihoods(read_arpa(path)), file_digest(path)
        else:
            model = registry.create_model(source, {}, execution or Execution())
            if not isinstance(model, ScoringModel):
                raise InputError(
                    f"the model {source!r} gives no log-probabilities",
                    expected="a causal model, or an .arpa file",
                    fix="use perplexity=builtin",
                )
            self._read, weights = CachedLikelihoods(model.log_likelihoods), model.ref.revision
        self.info = replace(self.info, options={"source": source}, weights=weights)

    def measure(self, cells: Mapping[Cell, Sequence[Text]]) -> Mapping[Cell, Mapping[str, Value]]:
        """For each cell its perplexity."""
        return {
            cell: {"perplexity": _value(self._read([text.text for text in texts]))}
            for cell, texts in cells.items()
        }


@dataclass(frozen=True, slots=True)
class CachedLikelihoods:
    """Reads every text once: the sets of a jackknife share nearly all of theirs."""

    read: LikelihoodFunction
    cache: dict[str, tuple[float, int]] = field(default_factory=dict)

    def __call__(self, texts: Sequence[str]) -> Sequence[tuple[float, int]]:
        """For each text its log-probability and tokens."""
        new = [text for text in dict.fromkeys(texts) if text not in self.cache]
        self.cache.update(zip(new, self.read(new), strict=True))
        return [self.cache[text] for text in texts]


def cached_ngram_likelihoods(model: NgramModel) -> CachedLikelihoods:
    """A reader by an n-gram model."""

    def read(texts: Sequence[str]) -> list[tuple[float, int]]:
        fits = (model.log_likelihood(tokenize(text)) for text in texts)
        return [(fit.log10 * math.log(10), fit.tokens) for fit in fits]

    return CachedLikelihoods(read)


def _value(fits: Sequence[tuple[float, int]]) -> Value:
    tokens = sum(count for _, count in fits)
    if not tokens:
        return Value(None, null_reason="empty")
    return Value(math.exp(-math.fsum(log for log, _ in fits) / tokens))
