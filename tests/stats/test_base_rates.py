"""Distances of base rates: by hand, under no bias, and with a planted one."""

import numpy as np
import pytest

from evenhand.core.errors import InputError
from evenhand.stats import base_rates
from evenhand.stats.base_rates import OVERALL, base_rate_distances, bias_change, mean_square_gap


def texts(seed, *, lean=0.0, keywords=12, each=10):
    """Two options of so many keywords; texts of a keyword are alike; ``red`` leans by ``lean`` logits."""
    rng = np.random.default_rng(seed)
    words = np.repeat(np.arange(2 * keywords), each)
    options = np.where(words < keywords, "blue", "red")
    logits = (
        rng.normal(0, 0.5, 2 * keywords)[words] + rng.normal(0, 1, words.size) + lean * (options == "red")
    )
    return 1 / (1 + np.exp(-logits)), options, words.astype(str)


def quick(data, seed=0):
    return base_rate_distances([data], rng=seed, permutations=200, resamples=200)


def test_by_hand():
    # red: 0.2, 0.2; all: 0.2, 0.2, 0.6, 0.6. Quantile gaps 0, 0, 0.4, 0.4: root of their mean square.
    values, options, words = [0.2, 0.2, 0.6, 0.6], ["red", "red", "blue", "blue"], ["a", "b", "c", "d"]
    found = base_rate_distances([(values, options, words)], rng=0, permutations=400, resamples=100)
    assert found["red"].estimate == pytest.approx(np.sqrt(0.16 / 2))
    assert found["red"].direction == pytest.approx(0.2 - 0.4)
    assert found["blue"].direction == pytest.approx(0.6 - 0.4)
    # Of the 6 deals of four keywords, 2 keep like with like, with this distance; the other 4 mix: distance 0.
    assert found["red"].null_mean == pytest.approx(np.sqrt(0.08) / 3, abs=0.02)
    assert found["red"].p == pytest.approx(1 / 3, abs=0.07)
    assert (found["red"].n, found["red"].n_keywords) == (2, 2)


def test_chance_alone_is_called_bias_no_more_often_than_it_should():
    runs = [quick(texts(seed), seed)["red"] for seed in range(50)]
    assert np.mean([run.p <= 0.05 for run in runs]) <= 0.142  # 0.05 + 3 standard errors
    assert np.mean([run.low <= 0 <= run.high for run in runs]) >= 0.93
    assert abs(np.mean([run.corrected for run in runs])) < 0.006


def test_a_planted_lean_is_found_with_its_direction():
    for lean in (2.0, -2.0):
        found = quick(texts(1, lean=lean))
        assert found["red"].p <= 0.01
        assert found["red"].low > 0
        assert np.sign(found["red"].direction) == np.sign(lean) == -np.sign(found["blue"].direction)
        assert found["red"].direction_low * found["red"].direction_high > 0


def test_more_texts_of_the_same_keywords_are_no_more_evidence():
    values, options, words = texts(3)
    once, tenfold = (
        quick((values, options, words)),
        quick((np.tile(values, 10), np.tile(options, 10), np.tile(words, 10))),
    )
    assert tenfold["red"].estimate == pytest.approx(once["red"].estimate)
    assert tenfold["red"].p == pytest.approx(once["red"].p, abs=1e-9)


def test_direct_bias_is_the_gap_of_two_distances():
    liberal, conservative = texts(4, lean=2.0), texts(5)
    found = base_rate_distances([liberal, conservative], rng=0, permutations=200, resamples=100)
    apart = quick(liberal)["red"].estimate - quick(conservative)["red"].estimate
    assert found["red"].estimate == pytest.approx(abs(apart))
    assert found["red"].n == 2 * liberal[0].size // 2


def test_the_same_seed_gives_the_same_numbers():
    assert quick(texts(6), 7) == quick(texts(6), 7)


def test_overall_is_the_mean_over_options_with_its_own_interval():
    found = quick(texts(8, lean=2.0))
    whole = found[OVERALL]
    for name in ("estimate", "null_mean", "corrected"):
        assert getattr(whole, name) == pytest.approx(
            (getattr(found["red"], name) + getattr(found["blue"], name)) / 2
        )
    assert whole.low < whole.corrected < whole.high
    assert (whole.n, whole.n_keywords, whole.direction, whole.p <= 0.01) == (240, 24, None, True)


def test_every_arrangement_is_the_plain_distance():
    # The fast path sorts once and selects; a bootstrap of one keyword an option can only be the data.
    values, options, words = texts(9)
    found = quick((values, options, words))
    for name in ("red", "blue"):
        plain = np.sqrt(mean_square_gap(np.sort(values[options == name]), np.sort(values)))
        assert found[name].estimate == pytest.approx(plain, rel=1e-12)


def test_two_classes_as_probabilities_are_one_number_and_three_find_the_lean():
    values, options, words = texts(10, lean=2.0)
    plain = quick((values, options, words))["red"]
    sliced = quick((np.column_stack([1 - values, values]), options, words))["red"]
    assert sliced.estimate == pytest.approx(plain.estimate, rel=1e-9)
    three = np.column_stack([(1 - values) / 2, (1 - values) / 2, values])
    found = quick((three, options, words))["red"]
    assert (found.p <= 0.01, found.low > 0, found.direction) == (True, True, None)


def test_one_option_cannot_be_told_from_chance():
    found = base_rate_distances(
        [([0.1, 0.9], ["only", "only"], ["a", "b"])], rng=0, permutations=20, resamples=20
    )["only"]
    assert (found.estimate, found.p, found.low) == (0.0, None, None)
    assert found.null_reason == "too few keywords to shuffle"


def test_few_keywords_widen_an_interval_and_fewer_have_none():
    # Four keywords resampled vary as 3 would, with t(3) = 3.182: sqrt(4 / 3) x 3.182 / 1.960 = 1.875.
    draws = np.random.default_rng(0).normal(size=(50, 1))
    assert base_rates._widening(draws, np.array([4]), 0.95) == pytest.approx(1.875, abs=1e-3)
    # Options of 4 and 12 that vary alike: sqrt((4/3 + 12/11) / 2) x t(14) = 2.145 / 1.960.
    both = base_rates._widening(np.column_stack([draws, draws]), np.array([4, 12]), 0.95)
    assert both == pytest.approx(np.sqrt((4 / 3 + 12 / 11) / 2) * 2.1448 / 1.96, abs=1e-3)
    found = quick(texts(1, lean=2.0, keywords=3))
    assert (found["red"].low, found["red"].null_reason) == (None, "too few keywords for an interval")
    assert found["red"].p is not None
    # Six keywords in two options leave four degrees of freedom for their mean.
    assert found[OVERALL].low < found[OVERALL].corrected < found[OVERALL].high


def test_bad_input():
    with pytest.raises(InputError) as error:
        base_rate_distances([([0.1, 0.2], ["a", "b"], ["x", "x"])], rng=0)
    assert str(error.value) == "the keyword 'x' is in two options. Expected: one option per keyword."
    with pytest.raises(InputError, match="2 values came with 1 options"):
        base_rate_distances([([0.1, 0.2], ["a"], ["x", "y"])], rng=0)


def change(before, after, seed=0):
    return bias_change(before, after, rng=seed, permutations=200, resamples=200)


def test_a_change_by_hand():
    # Before: red lies sqrt(0.08) from all, blue too; after: all texts are alike, and both distances are 0.
    options, words = ["red", "red", "blue", "blue"], ["a", "b", "c", "d"]
    before, after = ([0.2, 0.2, 0.6, 0.6], options, words), ([0.4] * 4, options, words)
    found = bias_change([before], [after], rng=0, permutations=600, resamples=50)
    # Chance gives a third of sqrt(0.08) before and 0 after: two thirds of it are lost beyond chance.
    for name in ("red", "blue", OVERALL):
        assert found[name].estimate == pytest.approx(-np.sqrt(0.08) * 2 / 3, abs=0.02)
    assert found[OVERALL].n_keywords == 4


def test_a_change_is_the_difference_of_the_corrected_biases():
    before, after = texts(1, lean=2.0), texts(2, lean=0.5)
    found = change([before], [after])[OVERALL]
    one, two = (quick(data)[OVERALL].corrected for data in (before, after))
    assert found.estimate == pytest.approx(two - one, abs=0.01)
    assert found.high < 0
    back = change([after], [before])[OVERALL]
    assert back.estimate == pytest.approx(-found.estimate, abs=0.01)
    same = change([before], [before])[OVERALL]
    assert (same.estimate, same.low, same.high) == pytest.approx((0, 0, 0), abs=1e-12)


def test_what_a_keyword_does_to_both_is_no_change():
    # The same texts a little nearer to the middle: far surer than two runs with keywords of their own.
    values, options, words = texts(4, lean=1.0)
    nearer = change([(values, options, words)], [(0.5 + 0.9 * (values - 0.5), options, words)])["red"]
    own = quick((values, options, words))["red"]
    assert nearer.high - nearer.low < 0.3 * (own.high - own.low)
    assert nearer.high < 0


def test_a_change_of_direct_bias_needs_both_sides_twice():
    left, right = texts(1, lean=2.0), texts(2)
    found = change([left, right], [right, right])[OVERALL]
    assert found.high < 0
    with pytest.raises(InputError) as caught:
        change([left, right], [left])
    assert str(caught.value) == (
        "2 sets of texts before and 1 after. "
        "Expected: one of each (indirect bias), or two of each (direct bias)."
    )


def test_an_option_without_texts_under_one_side_has_no_distance_and_no_warning(recwarn):
    values, words = np.linspace(0, 1, 16), [f"w{place // 2}" for place in range(16)]
    options = ["a"] * 8 + ["b"] * 8
    found = base_rate_distances(
        [(values, options, words), (values[:8], options[:8], words[:8])],
        rng=0,
        permutations=20,
        resamples=20,
    )
    assert (found["b"].estimate, found["b"].null_reason) == (None, "no values")
    assert found["a"].estimate is not None
    assert not recwarn.list
