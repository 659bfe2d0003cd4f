"""How often a text exclaims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenhand.core.protocols import WordScore
from evenhand.core.records import MetricInfo, OutputInfo, Text, Value
from evenhand.text.sentences import split_sentences


class Exclamations:
    """Exclamation marks per sentence, 0 or more; a text with any is *loud*, else *calm*."""

    info = MetricInfo(
        name="exclamations",
        version="1",
        outputs=(
            OutputInfo(
                name="per_sentence",
                kind="continuous",
                larger_means="more exclamation marks",
                low=0.0,
                labels=("calm", "loud"),
            ),
        ),
        summary="Exclamation marks per sentence.",
        primary=("loud",),
        null_when="The text is empty (reason: empty).",
        word_scores="Each exclamation mark adds 1; the sum is divided by the number of sentences.",
        cheap=True,
    )

    def score(self, texts: Sequence[Text]) -> list[Mapping[str, Value]]:
        """For each text its exclamation marks per sentence; null for an empty text."""
        return [{"per_sentence": _per_sentence(text.text)} for text in texts]

    def explain(self, text: Text, output: str) -> list[WordScore]:
        """Where the exclamation marks are: optional, the report then marks them."""
        return [WordScore(at, at + 1, 1.0) for at, mark in enumerate(text.text) if mark == "!"]


def _per_sentence(text: str) -> Value:
    sentences = len(split_sentences(text))
    if not sentences:
        return Value(None, None, "empty")
    marks = text.count("!")
    return Value(marks / sentences, "loud" if marks else "calm")
