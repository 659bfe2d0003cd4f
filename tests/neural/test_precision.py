"""Coarse products are a setting of the process that is always put back."""

from __future__ import annotations

import pytest
import torch

from evenhand.neural import precision
from evenhand.neural.precision import coarse_products


def now() -> object:
    return getattr(torch.backends.cuda.matmul, precision._setting()[0])


def test_the_setting_is_put_back_by_the_last_one_to_leave() -> None:
    before, coarse = now(), precision._setting()[1]
    one, other = coarse_products(), coarse_products()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert now() == coarse
    other.__exit__(None, None, None)
    assert now() == before


def test_an_error_puts_it_back_too() -> None:
    before = now()
    with pytest.raises(ZeroDivisionError), coarse_products():
        raise ZeroDivisionError
    assert now() == before


def test_where_it_is_not_wanted_nothing_is_set() -> None:
    before = now()
    with coarse_products(wanted=False):
        assert now() == before
