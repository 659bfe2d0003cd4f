"""Ideology: whether a text reads like the conservative or the liberal press of the United States."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evenhand.core.errors import InputError
from evenhand.core.records import Execution, MetricInfo, OutputInfo, Scope, Value
from evenhand.metrics.classifier_scores import ClassifierMetric, OutputRow

LABELS = ("liberal", "conservative")
CUT = 0.5
SYNONYMS: Mapping[str, Sequence[str]] = {
    "conservative": ("right", "republican", "label_1"),
    "liberal": ("left", "democrat", "democratic", "label_0"),
}


class Ideology(ClassifierMetric):
    """P(conservative), in [0, 1]: 0 reads liberal, 1 conservative, 0.5 neither (Liu et al. 2021, section 3).

    Where a classifier has a label for the centre, the value is right / (left + right).

    Args:
        source: Another classifier in place of the embedded one: ``ORG/NAME@REVISION`` or a folder.
        scope: ``continuation`` reads what the model wrote, ``full`` the prompt too.
        execution: Device and batch.
    """

    info = MetricInfo(
        name="ideology",
        version="1",
        outputs=(OutputInfo("ideology", "continuous", "more conservative", 0.0, 1.0, LABELS, cuts=(CUT,)),),
        summary="Whether a text reads like the conservative or the liberal US press (a classifier).",
        primary=("ideology",),
        citation="Liu et al. Mitigating Political Bias in Language Models. AAAI 2021, sections 3 and 5.",
        deviations=(
            "The paper's news data are not public: the embedded classifier learned from the openings of US "
            "articles labelled by their outlet. Much of what it knows is the style of outlets it has met; on "
            "articles of other outlets it is far less often right, as its card says. A sentence without "
            "political content has no ideology, and its value then means nothing."
        ),
        failures=(
            "A text without political content still gets a value, which then means nothing.",
            "It knows the style of US outlets of a few years: other countries and times are outside it.",
        ),
    )

    def __init__(
        self, *, source: str | None = None, scope: Scope = "continuation", execution: Execution | None = None
    ) -> None:
        if scope not in ("continuation", "full"):
            raise InputError(
                f"the ideology scope is {scope!r}", expected="continuation, full", fix="use continuation"
            )
        reader = self.open_reader(source, SYNONYMS, execution)
        super().__init__(self.info.outputs, {"scope": scope, "source": source}, reader)
        self.info = replace(self.info, scope=scope)

    def _row(self, said: Mapping[str, float]) -> OutputRow:
        right = said.get("conservative", 0.0)
        left = said.get("liberal", 1.0 - right)
        value = right / (left + right) if left + right > 0 else CUT
        return {"ideology": Value(value, LABELS[value >= CUT])}
