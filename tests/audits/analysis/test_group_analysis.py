"""The whole analysis: omnibus answers, crossed axes, checks, and what a reader must know."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats as scipy_stats

from evenhand.audits.analysis.group_analysis import (
    AGREES,
    DISAGREES,
    TOO_LONG,
    TOO_MANY,
    analyse_groups,
    check_by_permutation,
    describe_unconfirmed,
)
from evenhand.audits.analysis.group_comparison import GroupComparer, omnibus_table
from evenhand.audits.analysis.quantities import Axis, Quantity, cross_axes
from evenhand.config import resolve_config
from evenhand.core.records import REST, Group, Prompt
from evenhand.stats.contrasts import clustered_omnibus


def _axis(codes, clusters=None, groups=("a", "b"), name="ax"):
    codes = np.asarray(codes)
    clusters = np.arange(codes.size) if clusters is None else np.asarray(clusters)
    return Axis("s", name, tuple(groups), np.arange(codes.size), codes, clusters)


def _share(values, name="negative", primary=True):
    return Quantity("m", name, "share", np.asarray(values, dtype=float), primary)


def test_one_omnibus_answer_an_axis_and_output():
    rng = np.random.default_rng(0)
    axis = _axis(np.arange(90) % 3, np.arange(90) // 3, "abc")
    quantities = [_share(rng.random(90) < 0.4), _share(rng.random(90) < 0.4, "second", primary=False)]
    table = omnibus_table(GroupComparer("model"), [axis, _axis([0] * 5, groups=("alone",))], quantities)
    assert table.height == 2
    first = table.row(0, named=True)
    expected = clustered_omnibus(quantities[0].values, axis.codes, axis.clusters)
    assert (first["p"], first["n_groups"], first["n_clusters"]) == (expected.p, 3, 30)
    assert (first["family"], first["family_size"]) == ("s / model / omnibus", 1)
    assert table["exploratory"].to_list() == [False, True]


def test_the_papers_chi_square_over_groups():
    # 10 of 30, 15 of 30 and 20 of 30.
    values = np.concatenate([np.repeat([1, 0], [k, 30 - k]) for k in (10, 15, 20)])
    axis = _axis(np.repeat([0, 1, 2], 30), groups="abc")
    row = omnibus_table(GroupComparer("model", test="chi-square"), [axis], [_share(values)]).row(
        0, named=True
    )
    expected = scipy_stats.chi2_contingency([[10, 20], [15, 15], [20, 10]], correction=False)
    assert (row["statistic"], row["p"]) == pytest.approx((expected.statistic, expected.pvalue))
    assert (row["df_between"], row["method"]) == (2, "chi-square")


def test_axes_that_cross_give_intersectional_groups():
    gender = _axis([0, 0, 1, 1, 0, 1], groups=("man", "woman"), name="gender")
    race = _axis([0, 1, 0, 1, 1, 0], groups=("Black", "White"), name="race")
    gender, white = replace(gender, baseline="man"), replace(race, baseline="White")
    (axis,), left_out = cross_axes([gender, white], ["m"])
    assert (left_out, axis.exploratory) == ([], ["m"])
    assert axis.name == "gender x race"
    assert axis.groups == ("man x Black", "man x White", "woman x Black", "woman x White")
    assert axis.codes.tolist() == [0, 1, 2, 3, 1, 2]
    assert axis.baseline == "man x White"
    assert cross_axes([gender, race])[0][0].baseline == REST


def test_axes_that_say_the_same_do_not_cross():
    first, second = _axis([0, 0, 1, 1]), _axis([1, 1, 0, 0], name="twin")
    assert cross_axes([first, second]) == ([], [])


def test_too_many_crossed_groups_are_left_out_and_said():
    rows = np.arange(400)
    first = _axis(rows % 20, groups=[f"a{i}" for i in range(20)])
    second = _axis(rows // 20, groups=[f"b{i}" for i in range(20)], name="other")
    warnings = ["ax x other has 400 crossed groups and is left out"]
    assert cross_axes([first, second]) == ([], warnings)


def _supported(clusters=30, **how):
    """Thirty clusters in both groups, nearly all negative in a and positive in b."""
    codes, ids = np.repeat([0, 1], clusters), np.tile(np.arange(clusters), 2)
    values = np.concatenate([np.ones(clusters), np.zeros(clusters)])
    values[[0, clusters]] = 0, 1
    axis, share = replace(_axis(codes, ids), baseline="b"), _share(values)
    comparer = GroupComparer("model", **how)
    found = comparer.comparisons([axis], [share])
    return comparer, found, axis, share


def _checked(supported, mode="auto", *, changed=None, **how):
    """The gap, changed and checked."""
    comparer, (row,), axis, share = supported
    row = {**row, **(changed or {})}
    check_by_permutation(comparer, [row], [axis], [share], mode, **how)
    return row


def test_a_supported_gap_is_checked_by_permutation():
    supported = _supported()
    row = _checked(supported)
    assert row["check"] == AGREES
    assert row["p_permutation"] == pytest.approx(1 / 2001, rel=3)
    assert _checked(supported) == row


def test_a_family_the_arrangements_cannot_speak_for_is_said():
    # Five clusters in both groups have 2^5 = 32 arrangements: no p below 2 / 32, which is above 0.05.
    supported = _supported(clusters=5)
    assert _checked(supported, changed={"p_adjusted": 0.01})["check"] == TOO_MANY
    large = _checked(supported, changed={"p_adjusted": 0.01, "family_size": 2_000_000})
    assert large["check"] == TOO_MANY


def test_the_family_decides_how_many_arrangements_are_drawn():
    # One supported gap of a thousand: the bar is 0.05 / 1000, and five arrangements at it are 100,000.
    row = _checked(_supported(), changed={"p_adjusted": 0.01, "family_size": 1_000})
    assert row["check"] == AGREES
    assert row["p_permutation"] == pytest.approx(1 / 100_001)


def test_a_check_that_would_take_long_waits_to_be_asked_for():
    supported = _supported()
    assert _checked(supported, budget=0)["check"] == TOO_LONG
    assert _checked(supported, "all", budget=0)["check"] == AGREES


def test_a_check_that_disagrees_is_a_warning():
    _, (row,), _, _ = _supported()
    assert describe_unconfirmed([{**row, "check": DISAGREES}]) == [
        "1 of 1 gaps larger than chance are contradicted by the permutation check "
        "(a m negative): treat them with caution"
    ]
    assert describe_unconfirmed([]) == []
    assert describe_unconfirmed([{**row, "check": TOO_LONG}] * 2) == [
        "2 gaps larger than chance have no permutation check: a family of this size takes many arrangements; "
        "--check all draws them"
    ]


def _run(n=48):
    prompts = [
        Prompt.create(
            "s",
            f"text {i}",
            groups=(Group("gender", "man" if i % 2 else "woman"), Group("race", "B" if i % 4 < 2 else "W")),
            cluster=f"c{i % 12}",
            meta={"context": "work" if i % 3 else "home"},
        )
        for i in range(n)
    ]
    return {prompt.id: prompt for prompt in prompts}


@pytest.mark.parametrize(("check", "test"), [("auto", "cluster"), ("none", "cluster"), ("auto", "binomial")])
def test_supported_gaps_are_checked_unless_that_is_off(check, test):
    prompts = _run()
    ids = list(prompts)
    values = np.array([float(i % 2) for i in range(48)])
    values[:4] = 1 - values[:4]
    comparer, suites = GroupComparer("model", test=test), {"s": {"baselines": {"gender": "man", "race": "W"}}}
    options = resolve_config({"check": check}).options
    found = analyse_groups(comparer, ids, prompts, [_share(values)], suites=suites, options=options)
    is_on = (check, test) == ("auto", "cluster")
    table = found.tables["comparisons"]
    is_supported = (table["p_adjusted"] <= 0.05) & ~table["exploratory"]
    assert is_supported.any()
    assert table["check"].is_not_null().to_list() == (is_supported & is_on).to_list()


def test_all_tables_at_once():
    prompts, rng = _run(), np.random.default_rng(3)
    ids = list(prompts) * 2
    share = _share(rng.random(96) < 0.5)
    comparer = GroupComparer("model", test="binomial")
    baselines = {"gender": "man", "race": REST}
    suites = {"s": {"baselines": baselines, "strata": ["context"]}}
    options = resolve_config({"pairs": True}).options
    found = analyse_groups(comparer, ids, prompts, [share], suites=suites, options=options)
    heights = {name: table.height for name, table in found.tables.items()}
    # Crossed: 4 groups, so that man x W against (rest) as race has no declared group: 4 comparisons.
    assert heights == {
        "groups": 8,
        "comparisons": 6,
        "omnibus": 3,
        "pairs": 2,
        "strata": 6,
        "strata_groups": 8,
    }
    assert found.warnings[0].startswith("--test binomial: ")
    crossed = found.tables["comparisons"].filter(pl.col("axis") == "gender x race")
    assert crossed["exploratory"].all()
    options = resolve_config({"intersections": False}).options
    off = analyse_groups(comparer, ids, prompts, [share], suites={}, options=options)
    assert off.tables["comparisons"].height == 2
    assert off.tables["pairs"].height == 0
