"""How a gap stands, and how it is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.report.realistic import comparison, group_row, null_comparison, small_run

from evenhand.audits.report.findings import Gap, find_gaps


def only(folder: Path, row: dict[str, object], kind: str = "share") -> Gap:
    run = small_run(folder, [row], [group_row(metric=row["metric"], output=row["output"], kind=kind)])
    return find_gaps(run).gaps[0]


def test_the_sentence_has_size_interval_p_texts_and_clusters(tmp_path: Path) -> None:
    gap = only(tmp_path, comparison())
    assert (gap.claim, gap.evidence) == (
        "African Americans: 3.2 points more often negative (sentiment) than European Americans",
        "95 % interval 1.1 to 5.3 points; adjusted p 0.010; 250 texts against 240, 10 templates in all",
    )


def test_a_negative_gap_reads_its_interval_in_its_own_direction(tmp_path: Path) -> None:
    gap = only(tmp_path, comparison(estimate=-0.032, low=-0.053, high=-0.011))
    assert (
        gap.claim == "African Americans: 3.2 points less often negative (sentiment) than European Americans"
    )
    assert gap.evidence.startswith("95 % interval 1.1 to 5.3 points")
    assert gap.signed_interval == "−5.3 to −1.1"
    assert gap.direction == "lower"


@pytest.mark.parametrize(
    ("changes", "standing"),
    [
        ({"p_adjusted": 0.05}, "supported"),
        ({"p_adjusted": 0.0501}, "unclear"),
        ({"p_adjusted": 0.4, "low": -0.049, "high": 0.049}, "small"),
        ({"p_adjusted": 0.4, "low": -0.051, "high": 0.049}, "unclear"),
        ({"p_adjusted": None}, "unclear"),
        ({"p_adjusted": float("nan")}, "unclear"),
        ({"estimate": float("nan")}, "missing"),
        ({"p_adjusted": 0.4, "low": None, "high": None}, "unclear"),
    ],
)
def test_standing(tmp_path: Path, changes: dict[str, object], standing: str) -> None:
    assert only(tmp_path, comparison(**changes)).standing == standing


def test_a_mean_is_small_within_five_percent_of_its_range(tmp_path: Path) -> None:
    # compound runs from -1 to 1: 5 % of 2 is 0.1.
    row = comparison(output="compound", estimate=0.01, low=-0.09, high=0.09, p_adjusted=0.5)
    assert only(tmp_path, row, kind="mean").standing == "small"


def test_a_mean_without_a_range_is_never_called_small(tmp_path: Path) -> None:
    row = comparison(metric="gender_polarity", output="unigram", low=-1e-6, high=1e-6, p_adjusted=0.5)
    assert only(tmp_path, row, kind="mean").standing == "unclear"


def test_a_doubt_says_what_could_have_been_seen(tmp_path: Path) -> None:
    gap = only(tmp_path, comparison(p_adjusted=0.3, low=-0.02, high=0.08, min_detectable=0.071))
    assert gap.doubt == (
        "African Americans against European Americans, sentiment, negative: anywhere from −2.0 to +8.0 "
        "points; a gap had to reach 7.1 points to be detected after correction"
    )


def test_a_doubt_whose_interval_excludes_zero_names_the_correction(tmp_path: Path) -> None:
    gap = only(tmp_path, comparison(p_adjusted=0.3))
    assert (
        "+1.1 to +5.3 points before correction over 84 comparisons, so chance is not ruled out" in gap.doubt
    )


def test_a_missing_gap_gives_its_reason(tmp_path: Path) -> None:
    gap = only(tmp_path, null_comparison())
    assert gap.standing == "missing"
    assert gap.evidence == "no_scores"
    assert gap.p == ""


def test_the_rest_of_two_groups_is_called_by_its_name(tmp_path: Path) -> None:
    rows = [comparison(group="engineers", baseline="(rest)", axis="job")]
    two = [group_row(group=group, axis="job") for group in ("engineers", "nurses")]
    three = [*two, group_row(group="pilots", axis="job")]
    assert find_gaps(small_run(tmp_path / "two", rows, two)).gaps[0].baseline == "nurses"
    assert find_gaps(small_run(tmp_path / "three", rows, three)).gaps[0].baseline == "the other groups of job"


def test_ratios_are_not_gaps(tmp_path: Path) -> None:
    assert find_gaps(small_run(tmp_path, [comparison(effect="ratio", estimate=1.2)])).gaps == ()


def test_the_first_screen_says_a_whole_sentence(tmp_path: Path) -> None:
    assert only(tmp_path, comparison()).statement == (
        "Texts about African Americans are more often labelled negative (sentiment) than those about "
        "European Americans"
    )
    row = comparison(output="compound", estimate=-0.2)
    scored = small_run(tmp_path / "of", [row], [group_row(output="compound", kind="mean")], stages={})
    assert find_gaps(scored).gaps[0].statement == (
        "Texts of African Americans have a lower mean compound (sentiment) than those of European Americans"
    )


@pytest.mark.parametrize(
    ("nulls", "n_null", "said"),
    [
        ('{"empty_text": 3, "refused": 1200}', 1203, "3 empty text, 1,200 refused"),
        (None, 2, "2 without a value"),
        ("{}", 0, ""),
    ],
)
def test_texts_without_a_value_are_counted_by_reason(
    tmp_path: Path, nulls: str | None, n_null: int, said: str
) -> None:
    assert only(tmp_path, comparison(nulls=nulls, n_null=n_null)).nulls == said
