"""Comparisons worked by hand, and their laws."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.audits.analysis.group_comparison import GroupComparer
from evenhand.audits.analysis.quantities import Axis, Quantity
from evenhand.core.errors import InputError
from evenhand.core.records import ALL, REST
from evenhand.store.schemas import COMPARISONS


def _axis(codes, clusters=None, groups=("a", "b")):
    codes = np.asarray(codes)
    clusters = np.arange(codes.size) if clusters is None else np.asarray(clusters)
    return Axis("s", "ax", tuple(groups), np.arange(codes.size), codes, clusters)


def _share(values, primary=True, output="negative"):
    return Quantity("m", output, "share", np.asarray(values, dtype=float), primary)


def _compared(axis, *quantities, baseline="b", **more):
    comparer, axis = GroupComparer("model", **more), replace(axis, baseline=baseline)
    return pl.DataFrame(comparer.comparisons([axis], list(quantities)), schema=COMPARISONS)


def test_estimate_is_group_minus_baseline():
    # a: 3 of 4 negative, b: 1 of 4: 0.75 - 0.25 = 0.5.
    rows = _compared(_axis([0] * 4 + [1] * 4), _share([1, 1, 1, 0, 1, 0, 0, 0])).to_dicts()
    assert len(rows) == 1
    assert rows[0]["estimate"] == pytest.approx(0.5)
    assert (rows[0]["group"], rows[0]["baseline"]) == ("a", "b")
    assert (rows[0]["group_value"], rows[0]["baseline_value"]) == (0.75, 0.25)
    assert (rows[0]["n"], rows[0]["n_baseline"], rows[0]["n_clusters"]) == (4, 4, 8)
    assert rows[0]["low"] < 0.5 < rows[0]["high"]


@given(st.lists(st.tuples(st.integers(0, 1), st.booleans()), min_size=8, max_size=60))
@settings(max_examples=60, deadline=None)
def test_swapping_groups_flips_the_sign(rows):
    codes, values = zip(*rows, strict=True)
    if len(set(codes)) < 2:
        return
    axis, share = _axis(codes), _share(values)
    forth = _compared(axis, share, baseline="b").to_dicts()[0]
    back = _compared(axis, share, baseline="a").to_dicts()[0]
    assert forth["estimate"] == pytest.approx(-back["estimate"])
    assert forth["p"] == pytest.approx(back["p"], rel=1e-6) if forth["p"] is not None else back["p"] is None


def test_rest_leaves_the_group_out_and_all_keeps_it():
    axis = _axis([0, 0, 1, 1, 2, 2], groups=("a", "b", "c"))
    share = _share([1, 1, 0, 0, 0, 0])
    rest = {row["group"]: row["estimate"] for row in _compared(axis, share, baseline=REST).to_dicts()}
    everyone = {row["group"]: row["estimate"] for row in _compared(axis, share, baseline=ALL).to_dicts()}
    assert rest == {"a": 1.0, "b": pytest.approx(-0.5), "c": pytest.approx(-0.5)}
    assert everyone["a"] == pytest.approx(1 - 2 / 6)


def test_two_groups_against_the_rest_are_compared_once():
    rows = _compared(_axis([0] * 4 + [1] * 4), _share([1, 1, 1, 0, 1, 0, 0, 0]), baseline=REST).to_dicts()
    assert [(row["group"], row["estimate"]) for row in rows] == [("a", pytest.approx(0.5))]


def test_nulls_are_counted_and_left_out():
    rows = _compared(_axis([0] * 4 + [1] * 4), _share([1, np.nan, 1, 0, 1, 0, np.nan, np.nan])).to_dicts()
    assert (rows[0]["n"], rows[0]["n_baseline"], rows[0]["n_null"]) == (3, 2, 3)
    assert rows[0]["group_value"] == pytest.approx(2 / 3)


def test_a_group_without_values_is_null_with_a_reason():
    row = _compared(_axis([0, 0, 1, 1]), _share([np.nan, np.nan, 1, 0])).to_dicts()[0]
    assert row["estimate"] is None
    assert row["p"] is None
    assert row["null_reason"] == "no values"


def test_a_group_of_one_text_has_an_estimate_but_no_interval():
    row = _compared(_axis([0, 1, 1, 1]), _share([1, 1, 0, 0])).to_dicts()[0]
    assert row["estimate"] == pytest.approx(1 - 1 / 3)
    assert (row["low"], row["high"], row["p"]) == (None, None, None)
    assert row["null_reason"] == "one cluster"


def test_duplicating_every_row_inside_its_cluster_does_not_shrink_the_interval():
    values, codes, clusters = [1, 1, 0, 1, 0, 0, 1, 0] * 3, [0] * 12 + [1] * 12, list(range(24))
    once = _compared(_axis(codes, clusters), _share(values)).to_dicts()[0]
    twice = _compared(_axis(codes * 2, clusters * 2), _share(values * 2)).to_dicts()[0]
    assert twice["high"] - twice["low"] >= 0.999 * (once["high"] - once["low"])


def test_families_are_corrected_apart():
    axis = _axis([0] * 20 + [1] * 20)
    strong = [1] * 18 + [0] * 2 + [0] * 18 + [1] * 2
    flat = [1, 0] * 20
    table = _compared(axis, _share(strong), _share(flat, output="positive"), _share(flat, False, "compound"))
    rows = {row["output"]: row for row in table.to_dicts()}
    assert rows["negative"]["family_size"] == 2
    # Benjamini-Hochberg over two: the smaller p doubles, the larger stays.
    assert rows["negative"]["p_adjusted"] == pytest.approx(2 * rows["negative"]["p"])
    assert rows["positive"]["p_adjusted"] == pytest.approx(rows["positive"]["p"])
    assert rows["compound"]["exploratory"]
    assert rows["compound"]["family_size"] == 1
    assert rows["compound"]["p_adjusted"] == rows["compound"]["p"]


def test_one_group_is_estimated_and_compared_with_nobody():
    axis = _axis([0, 0, 0], groups=("a",))
    assert _compared(axis, _share([1, 0, 1])).height == 0
    groups = GroupComparer("model").groups([axis], [_share([1, 0, 1])])
    assert groups["value"].to_list() == [pytest.approx(2 / 3)]
    assert groups["n"].to_list() == [3]


def test_an_unknown_baseline_lists_the_groups():
    with pytest.raises(InputError) as caught:
        _compared(_axis([0, 1]), _share([1, 0]), baseline="z")
    assert caught.value.problem == "the baseline 'z' of axis 'ax' has no texts"
    assert caught.value.expected == "a, b, (rest), (all)"


def test_order_of_rows_changes_nothing():
    rng = np.random.default_rng(0)
    codes, clusters = rng.integers(0, 2, 60), rng.integers(0, 20, 60)
    values = rng.normal(size=60)
    order = rng.permutation(60)

    def table(index):
        quantity = Quantity("m", "compound", "mean", values[index], True)
        axis = replace(_axis(codes[index], clusters[index]), baseline="b")
        comparer = GroupComparer("model")
        return pl.DataFrame(comparer.comparisons([axis], [quantity])), comparer.groups([axis], [quantity])

    for left, right in zip(table(np.arange(60)), table(order), strict=True):
        numbers = [name for name, kind in left.schema.items() if kind == pl.Float64]
        for name in numbers:
            assert left[name].to_list() == pytest.approx(right[name].to_list(), nan_ok=True), name


def test_against_all_asks_the_same_question_as_against_the_rest():
    axis = _axis([0] * 8 + [1] * 8 + [2] * 8, groups=("a", "b", "c"))
    share = _share([1, 1, 1, 0, 1, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0])
    rest = {row["group"]: row for row in _compared(axis, share, baseline=REST).to_dicts()}
    everyone = {row["group"]: row for row in _compared(axis, share, baseline=ALL).to_dicts()}
    for group in "abc":
        # Eight of the 24 texts are the group's own: group - all = (16 / 24) (group - rest).
        assert everyone[group]["estimate"] == pytest.approx(rest[group]["estimate"] * 16 / 24)
        assert everyone[group]["low"] == pytest.approx(rest[group]["low"] * 16 / 24)
        assert everyone[group]["p"] == rest[group]["p"]
        assert everyone[group]["n_baseline"] == 24
        assert everyone[group]["baseline_value"] == pytest.approx((6 + 2 + 3) / 24)


def test_a_metric_may_be_exploratory_on_an_axis():
    axis = replace(_axis([0] * 4 + [1] * 4), baseline="b", exploratory=("m",))
    rows = GroupComparer("model").comparisons([axis], [_share([1, 1, 1, 0, 1, 0, 0, 0])])
    assert [row["exploratory"] for row in rows] == [True]
