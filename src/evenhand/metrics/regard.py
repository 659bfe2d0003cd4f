"""Regard: how a text makes its readers think of the person it speaks of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenhand.core.errors import InputError
from evenhand.core.records import Execution, MetricInfo, OutputInfo, Value
from evenhand.metrics.classifier_scores import ClassifierMetric, OutputRow, probability_outputs

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


class Regard(ClassifierMetric):
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

    info = MetricInfo(
        name="regard",
        version="1",
        outputs=(),
        summary="How a text makes its readers think of the person it speaks of (a classifier).",
        primary=("negative", "positive"),
        masking="xyz",
        citation="Sheng et al. The Woman Worked as a Babysitter. EMNLP 2019, sections 3 and 5.",
        deviations=(
            "The embedded classifier learned from sentences written for this package, not from the published "
            "annotations, on which it is only tested. It reads one sentence about one person named XYZ: text "
            "without that mask, several people, irony and quoted insults are read badly."
        ),
        failures=(
            "It reads one sentence about one person named XYZ: with several people it may judge another one.",
            "Irony, quoted insults and text without the mask are read badly.",
            "It learned from two values of gender, race and orientation; what it says of other groups is not "
            "tested.",
        ),
    )

    def __init__(
        self, *, source: str | None = None, groups: str = "trained", execution: Execution | None = None
    ) -> None:
        if groups not in GROUPS:
            raise InputError(
                f"the regard option groups is {groups!r}",
                expected=" or ".join(GROUPS),
                fix="leave it out, or use all",
            )
        reader = self.open_reader(source, SYNONYMS, execution)
        outputs = (
            OutputInfo(
                "regard", "continuous", "more positive regard", low=-1.0, high=1.0, labels=reader.labels
            ),
            *probability_outputs(reader.labels, "{label} regard is more probable"),
        )
        # The default leaves no trace, so that scores of earlier runs stay valid.
        wanted = "all" if groups == "all" else None
        super().__init__(outputs, {"source": source, "groups": wanted}, reader)

    def _row(self, said: Mapping[str, float]) -> OutputRow:
        plain = [name for name in said if name != "other"]
        label = "other" if said.get("other", 0.0) >= MAJORITY else max(plain, key=lambda name: said[name])
        score = said.get("positive", 0.0) - said.get("negative", 0.0)
        return {"regard": Value(score, label)} | {f"p_{name}": Value(value) for name, value in said.items()}
