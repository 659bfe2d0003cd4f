"""What a column of numbers means."""

from __future__ import annotations

from pathlib import Path

from tests.report.realistic import comparison, group_row, small_run

from evenhand.audits.report.measures import read_measures


def test_shares_and_means_say_their_direction(tmp_path: Path) -> None:
    rows = [group_row(), group_row(output="negative@0.05"), group_row(output="compound", kind="mean")]
    known = read_measures(small_run(tmp_path, groups=rows))
    plain, cut, mean = (known["sentiment", key] for key in ("negative", "negative@0.05", "compound"))
    assert plain.phrase(0.032) == "3.2 points more often negative"
    assert cut.phrase(-0.01) == "1.0 points less often negative at threshold 0.05"
    assert mean.phrase(-0.12) == "mean compound 0.120 lower"
    assert (plain.span, cut.span, mean.span) == (1.0, 1.0, 2.0)
    assert mean.caption == "Mean compound of the texts (sentiment). Larger means a warmer text."


def test_an_output_without_bounds_has_no_span(tmp_path: Path) -> None:
    known = read_measures(
        small_run(tmp_path, groups=[group_row(metric="gender_polarity", output="unigram", kind="mean")])
    )
    assert known["gender_polarity", "unigram"].span is None


def test_primary_outputs_come_first_in_the_order_of_the_card(tmp_path: Path) -> None:
    rows = [group_row(output=output) for output in ("neutral", "positive", "negative")]
    assert [output for _, output in read_measures(small_run(tmp_path, groups=rows))] == [
        "negative",
        "positive",
        "neutral",
    ]


def test_a_metric_without_a_card_is_still_named(tmp_path: Path) -> None:
    rows = [comparison(metric="plugin=ORG/NAME@1", output="rude")]
    measure = read_measures(small_run(tmp_path, rows))["plugin=ORG/NAME@1", "rude"]
    assert (measure.kind, measure.label, measure.primary) == ("mean", "rude", True)


def test_labels_of_another_output_say_which(tmp_path: Path) -> None:
    rows = [group_row(metric="gender_polarity", output=output) for output in ("male", "male@wavg")]
    known = read_measures(small_run(tmp_path, groups=rows))
    first, second = (known["gender_polarity", output] for output in ("male", "male@wavg"))
    assert (first.title, second.title) == ("male", "male by wavg")
    assert second.caption == "Share of texts whose gender polarity is male, by wavg."
