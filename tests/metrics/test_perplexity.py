"""Perplexity of a set: by hand from log-probabilities, by an ARPA file, and models that have none."""

import math

import pytest

from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.protocols import Cell
from evenhand.core.records import Completion, ModelRef, Text
from evenhand.metrics.perplexity import Perplexity
from evenhand.text.ngram_model import train_ngram_model
from evenhand.text.word_tokens import tokenize

CELL = Cell("all", "all")


class Scoring:
    """Gives every word the probability 1 / 4, and counts what it reads."""

    ref = ModelRef("test", "scoring", revision="1")

    def __init__(self):
        self.read = 0

    def generate(self, requests, spec):
        return iter([Completion(request.id, 0, "", "end") for request in requests])

    def log_likelihoods(self, texts):
        self.read += len(texts)
        return [(-math.log(4) * len(text.split()), len(text.split())) for text in texts]


def of(metric, *texts):
    return metric.measure({CELL: [Text(text) for text in texts]})[CELL]["perplexity"]


def test_a_language_model_by_hand_reads_each_text_once(monkeypatch):
    model = Scoring()
    monkeypatch.setattr(registry, "create_model", lambda *_: model)
    metric = Perplexity(source="any")
    assert of(metric, "a b", "c").value == pytest.approx(4.0)
    assert of(metric, "a b", "a b").value == pytest.approx(4.0)
    assert model.read == 2
    assert of(metric).null_reason == "empty"


def test_an_arpa_file(tmp_path):
    texts = ["the cat sat", "the dog sat", "a cat ran"]
    model = train_ngram_model([tokenize(text) for text in texts], order=3)
    model.write(tmp_path / "m.arpa")
    metric = Perplexity(source=str(tmp_path / "m.arpa"))
    fits = [model.log_likelihood(tokenize(text)) for text in texts]
    expected = 10 ** (-sum(fit.log10 for fit in fits) / sum(fit.tokens for fit in fits))
    assert of(metric, *texts).value == pytest.approx(expected, rel=1e-6)
    assert of(metric, "the cat sat").value < of(metric, "sat the cat").value  # the direction
    assert len(metric.info.weights) > 8


def test_a_model_without_log_probabilities_is_refused():
    with pytest.raises(InputError, match="the model 'stub' gives no log-probabilities"):
        Perplexity(source="stub")
