"""Unknown keyword arguments of public functions."""

from __future__ import annotations

from typing import TypedDict, Unpack

import pytest

import evenhand
from evenhand.core.errors import InputError, UnknownKeywordError
from evenhand.core.keywords import checks_keywords, keywords_of

FUNCTIONS = sorted(
    name
    for name in evenhand.__all__
    if not name.startswith("_") and not isinstance(getattr(evenhand, name), type)
)
MODULES = sorted({getattr(evenhand, name).__module__ for name in FUNCTIONS})


class Sizes(TypedDict, total=False):
    limit: int | None


class Options(Sizes, total=False):
    seed: int | None


@checks_keywords
def measure(model: str, *paths: str, level: float = 0.95, **options: Unpack[Options]) -> object:
    return model, paths, level, options


def test_known_keywords_reach_the_function():
    assert keywords_of(measure) == ("model", "level", "limit", "seed")
    assert measure("m", "a", level=0.9, seed=7) == ("m", ("a",), 0.9, {"seed": 7})
    assert measure(model="m", limit=None) == ("m", (), 0.95, {"limit": None})


@pytest.mark.parametrize(
    ("given", "todo"),
    [
        ({"limt": 3, "sed": 7}, "did you mean 'limit'?"),
        ({"seeds": 7}, "did you mean 'seed'?"),
        ({"zzz": 1}, "use one of these"),
    ],
)
def test_an_unknown_keyword_names_the_nearest_one(given, todo):
    with pytest.raises(InputError) as error:
        measure("m", **given)
    assert isinstance(error.value, TypeError)
    assert error.value.came == f"measure() has no argument {next(iter(given))!r}"
    assert error.value.accepted == "model, level, limit, seed"
    assert error.value.todo == todo


@pytest.mark.parametrize(
    ("call", "near"),
    [
        (lambda: evenhand.debias("builtin", sigmaa=5.0), "sigma"),
        (lambda: evenhand.audit("stub", limt=3, sed=7), "limit"),
        (lambda: evenhand.score("texts.csv", baselin={"job": "nurse"}), "baseline"),
        (lambda: evenhand.audit("stub", stratum="template"), "strata"),
        (lambda: evenhand.power(gapp=0.1), "gap"),
    ],
)
def test_a_misspelt_option_does_not_run_with_defaults(call, near):
    with pytest.raises(UnknownKeywordError, match=f"did you mean '{near}'"):
        call()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_refuses_unknown_keywords(name):
    with pytest.raises(UnknownKeywordError, match="has no argument 'frsh'"):
        getattr(evenhand, name)(frsh=True)


@pytest.mark.parametrize("module", MODULES)
def test_so_does_every_prepare(module):
    import importlib

    prepare = getattr(importlib.import_module(module), "prepare", None)
    if prepare is not None:
        with pytest.raises(UnknownKeywordError, match="has no argument 'frsh'"):
            prepare(frsh=True)
