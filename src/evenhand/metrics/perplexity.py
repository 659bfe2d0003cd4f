"""Perplexity of a set of texts: under a language model, or under an n-gram model of an ARPA file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

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
            read: LikelihoodFunction = partial(_read_by_ngrams, read_arpa(path))
            weights = file_digest(path)
        else:
            model = registry.create_model(source, {}, execution or Execution())
            if not isinstance(model, ScoringModel):
                raise InputError(
                    f"the model {source!r} gives no log-probabilities",
                    expected="a causal model, or an .arpa file",
                    fix="use perplexity=builtin",
                )
            read, weights = model.log_likelihoods, model.ref.revision
        self._read = read
        # The sets of a jackknife share nearly all of their texts.
        self._known: dict[str, tuple[float, int]] = {}
        self.info = replace(self.info, options={"source": source}, weights=weights)

    def measure(self, cells: Mapping[Cell, Sequence[Text]]) -> Mapping[Cell, Mapping[str, Value]]:
        """For each cell its perplexity."""
        values = {}
        for cell, texts in cells.items():
            new = list(dict.fromkeys(text.text for text in texts if text.text not in self._known))
            self._known.update(zip(new, self._read(new), strict=True))
            fits = [self._known[text.text] for text in texts]
            tokens, log = sum(count for _, count in fits), math.fsum(log for log, _ in fits)
            value = Value(math.exp(-log / tokens)) if tokens else Value(None, null_reason="empty")
            values[cell] = {"perplexity": value}
        return values


def _read_by_ngrams(model: NgramModel, texts: Sequence[str]) -> list[tuple[float, int]]:
    fits = (model.log_likelihood(tokenize(text)) for text in texts)
    return [(fit.log10 * math.log(10), fit.tokens) for fit in fits]
