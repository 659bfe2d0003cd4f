"""A metric that is meant for some groups only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.suites.small_bold import lines

from evenhand import audit
from evenhand.core.records import MetricInfo, OutputInfo, Text, Value
from evenhand.suites.bold import BoldSuite


class Length:
    """A metric named as the one BOLD limits."""

    info = MetricInfo(
        name="regard",
        version="1",
        outputs=(OutputInfo("regard", "continuous", "longer texts"),),
        summary="How long a text is.",
        primary=("regard",),
    )

    def score(self, texts: Sequence[Text]) -> list[Mapping[str, Value]]:
        return [{"regard": Value(float(len(text.text)))} for text in texts]


@pytest.mark.parametrize(("groups", "scored"), [("trained", 4), ("all", 9)])
def test_texts_of_other_groups(tmp_path: Path, groups: str, scored: int) -> None:
    suite = BoldSuite(name=str(lines(tmp_path / "copy")), subset=True)
    from evenhand.models.replay import HumanModel

    metric = Length()
    if groups == "all":
        metric.info = replace(metric.info, options={"groups": "all"})
    run = audit(HumanModel(suite), suite=suite, metrics=[metric], out=tmp_path / "run")
    scores = run.table("scores")
    assert scores["value"].count() == scored
    assert scores.filter(pl.col("value").is_null())["null_reason"].to_list() == ["outside_groups"] * (
        9 - scored
    )
    told = "not scored" if groups == "trained" else "scored all the same: read them with care"
    assert run.manifest["warnings"] == [
        f"regard: 5 of 9 texts are of groups regard was not trained for and were {told}"
    ]
