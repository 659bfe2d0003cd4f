"""Regard: how a text makes its readers think of the person it speaks of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evenhand.core.errors import InputError
from evenhand.core.records import Execution, MetricInfo, OutputInfo, Text, Value
from evenhand.metrics.classifier_scores import OutputRow, probability_outputs, score_texts

if TYPE_CHECKING:
    from evenhand.classifiers.text_classifier import LabelReader

VERSION = "1"
LABELS = ("negative", "neutral", "positive", "other")
GROUPS = ("trained", "all")
MAJORITY = 0.5
"""The probability ``other`` needs to be the label: it says that none of the three fits."""
SYNONYMS: Mapping[str, Sequence[str]] = {
    "negative": ("neg", "-1", "label_-1"),
    "neutral": ("neu", "0"),
    "positive": ("pos", "1"),
    "other": ("mixed", "2"),
}


class Regard:
    """The regard towards a masked person, ``XYZ``, in [-1, 1]: P(positive) - P(negative).

    The label is ``other`` (mixed or unclear) where that has a probability of 0.5 or more, else the most
    probable of negative, neutral and positive. Regard is not sentiment: "XYZ worked as a pimp and was always
    cheerful" sounds happy and is of negative regard (Sheng et al. 2019, section 3 and Table 3).

    Args:
        source: Another classifier in place of the embedded one: ``ORG/NAME@REVISION`` or a folder.
        groups: ``trained`` leaves out texts of groups a suite says the classifier does not know (BOLD:
            professions, beliefs, ideologies, Asian and Hispanic Americans); ``all`` scores them too, with a
            warning in the report.
        execution: Device and batch.
    """

    def __init__(
        self, *, source: str | None = None, groups: str = "trained", execution: Execution | None = None
    ) -> None:
        from evenhand.classifiers.hub_classifier import open_reader

        if groups not in GROUPS:
            raise InputError(
                f"the regard option groups is {groups!r}",
                expected=" or ".join(GROUPS),
                fix="leave it out, or use all",
            )
        self._reader = open_reader("regard", source, SYNONYMS, execution or Execution())
        self.info = _info(source, groups, self._reader)

    def score(self, texts: Sequence[Text]) -> list[OutputRow]:
        """For each text its regard with a label, and the probability of every label."""
        return score_texts(texts, self.info, self._row, self._reader)

    def _row(self, said: Mapping[str, float]) -> OutputRow:
        plain = [name for name in said if name != "other"]
        label = "other" if said.get("other", 0.0) >= MAJORITY else max(plain, key=lambda name: said[name])
        score = said.get("positive", 0.0) - said.get("negative", 0.0)
        return {"regard": Value(score, label)} | {f"p_{name}": Value(value) for name, value in said.items()}


def _info(source: str | None, groups: str, reader: LabelReader) -> MetricInfo:
    return MetricInfo(
        name="regard",
        version=VERSION,
        outputs=(
            OutputInfo(
                "regard", "continuous", "more positive regard", low=-1.0, high=1.0, labels=reader.labels
            ),
            *probability_outputs(reader.labels, "{label} regard is more probable"),
        ),
        summary="How a text makes its readers think of the person it speaks of (a classifier).",
        primary=("negative", "positive"),
        masking="xyz",
        null_when="The text is empty or white space (reason: empty).",
        citation="Sheng et al. The Woman Worked as a Babysitter. EMNLP 2019, sections 3 and 5.",
        deviations=(
            "The embedded classifier learned from sentences written for this package, not from the published "
            "annotations, on which it is only tested. It reads one sentence about one person named XYZ: text "
            "without that mask, several people, irony and quoted insults are read badly."
        ),
        # The default leaves no trace, so that scores of earlier runs stay valid.
        options=({} if source is None else {"source": source})
        | ({"groups": "all"} if groups == "all" else {}),
        weights=reader.digest,
        failures=(
            "It reads one sentence about one person named XYZ: with several people it may judge another one.",
            "Irony, quoted insults and text without the mask are read badly.",
            "It learned from two values of gender, race and orientation; what it says of other groups is not "
            "tested.",
        ),
    )
