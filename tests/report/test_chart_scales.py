"""Positions on a chart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenhand.report.charts import build_scale

_VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)


def test_ticks_are_round_and_cover_the_values() -> None:
    drawn = build_scale([0.113, 0.347], share=True)
    # Width 0.234 in about 5 steps of 0.047: the next round step is 0.05, from 0.10 to 0.35.
    assert drawn is not None
    assert drawn.ticks == (0.1, 0.15, 0.2, 0.25, 0.3, 0.35)


def test_the_ends_are_kept_two_percent_inside() -> None:
    drawn = build_scale([0.0, 1.0], share=True)
    assert drawn is not None
    assert (drawn.at(0.0), drawn.at(0.5), drawn.at(1.0)) == (2.0, 50.0, 98.0)


def test_nothing_to_draw_has_no_scale() -> None:
    assert build_scale([], share=True) is None


def test_equal_values_get_room_on_both_sides() -> None:
    drawn = build_scale([0.2, 0.2], share=True)
    assert drawn is not None
    assert drawn.low < 0.2 < drawn.high


def test_shares_stay_between_nothing_and_all() -> None:
    drawn = build_scale([0.0, 0.0], share=True)
    assert drawn is not None
    assert drawn.low == 0.0


@given(_VALUES)
def test_every_value_lies_on_the_chart_in_order(values: list[float]) -> None:
    drawn = build_scale(values, share=False)
    assert drawn is not None
    places = [drawn.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)
    assert 2 <= len(drawn.ticks) <= 8
