"""Whether the groups of an axis differ at all: the omnibus answers, in words."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.report.gaps import ALPHA
from evenhand.report.wording import finite, name, probability
from evenhand.store.run import Run

OverallKey = tuple[str, str, str, str, str]
"""suite, model, axis, metric, output."""


@dataclass(frozen=True, slots=True)
class Overall:
    """The one answer of an axis and output."""

    p: float | None
    groups: int
    reason: str

    @property
    def differs(self) -> bool:
        """Whether the groups differ more than chance would make them."""
        return self.p is not None and self.p <= ALPHA

    @property
    def short(self) -> str:
        """The answer for a table cell."""
        return "–" if self.p is None else f"p {probability(self.p)}"

    @property
    def sentence(self) -> str:
        """The answer in words."""
        if self.p is None:
            return f"Whether the groups differ at all could not be tested: {self.reason}."
        said = "differ" if self.differs else "are not told apart"
        more = " more than chance" if self.differs else " from chance"
        return f"Taken together, the {self.groups:,} groups {said}{more} (adjusted p {probability(self.p)})."


def overall(run: Run) -> dict[OverallKey, Overall]:
    """The omnibus answer of every axis and output that has one."""
    return {
        (row["suite"], row["model"], row["axis"], row["metric"], row["output"]): Overall(
            p=finite(row["p_adjusted"]), groups=row["n_groups"], reason=name(row["null_reason"] or "not said")
        )
        for row in run.table("omnibus").iter_rows(named=True)
        # Of two groups it says what their gap says.
        if row["n_groups"] > 2
    }
