from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from evenhand.core.errors import InputError
from evenhand.stats.corrections import benjamini_hochberg, holm

families = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=30)


def test_holm_by_hand() -> None:
    # sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1: 0.04, 0.06, 0.06, 0.04; the last may not fall: 0.06
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])


def test_benjamini_hochberg_by_hand() -> None:
    # sorted 0.01, 0.02, 0.03, 0.9 times 4/1, 4/2, 4/3, 1: 0.04, 0.04, 0.04, 0.9
    assert benjamini_hochberg([0.9, 0.01, 0.03, 0.02]) == pytest.approx([0.9, 0.04, 0.04, 0.04])


@pytest.mark.parametrize(("correct", "name"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")])
@settings(max_examples=15)  # statsmodels collects garbage on every call
@given(family=st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_known_answers_of_statsmodels(correct: object, name: str, family: list[float]) -> None:
    assert callable(correct)
    assert correct(family) == pytest.approx(list(multipletests(family, method=name)[1]))


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
@given(family=families)
def test_nulls_pass_through_and_do_not_count(correct: object, family: list[float | None]) -> None:
    assert callable(correct)
    adjusted = correct(family)
    assert [p is None for p in adjusted] == [p is None for p in family]
    known = [p for p in family if p is not None]
    assert [p for p in adjusted if p is not None] == correct(known)
    assert all(raw <= new + 1e-15 for raw, new in zip(known, correct(known), strict=True))


@pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
@pytest.mark.parametrize("p", [math.nan, -0.1, 1.1])
def test_what_is_no_p_value_is_refused(correct: object, p: float) -> None:
    assert callable(correct)
    with pytest.raises(
        InputError, match=r"^a p-value of .*\. Expected: p-values from 0 to 1, or None for a missing one\.$"
    ):
        correct([0.5, p])
