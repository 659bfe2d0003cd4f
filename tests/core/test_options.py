"""Options that are declared once: unknown, parsed, checked, and with their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal, TypedDict, Unpack

import pytest

import evenhand
from evenhand.core.errors import InputError, UnknownKeywordError
from evenhand.core.options import Option, checks_options, fields_of, keywords_of, pairs

FUNCTIONS = sorted(
    name
    for name in evenhand.__all__
    if not name.startswith("_") and not isinstance(getattr(evenhand, name), type)
)
MODULES = sorted({getattr(evenhand, name).__module__ for name in FUNCTIONS})


class Sizes(TypedDict, total=False):
    limit: Annotated[int | None, Option("Prompts at most.", ge=1, flag="most")]


class Options(Sizes, total=False):
    seed: Annotated[int, Option("Seed.", default=0)]
    kind: Annotated[Literal["a", "b"], Option("a or b.", default="a")]
    names: Annotated[
        Mapping[str, str], Option("NAME=VALUE.", default={}, parse=pairs("--names", "NAME=VALUE"))
    ]
    fresh: Annotated[bool, Option("Start again.")]


@checks_options
def measure(model: str, *paths: str, level: float = 0.95, **options: Unpack[Options]) -> object:
    return model, paths, level, options


def test_known_keywords_reach_the_function():
    assert keywords_of(measure) == ("model", "level", "limit", "seed", "kind", "names", "fresh")
    options = {"limit": None, "seed": 7, "kind": "a", "names": {}, "fresh": False}
    assert measure("m", "a", level=0.9, seed=7) == ("m", ("a",), 0.9, options)
    assert measure(model="m", limit=None, seed=7) == ("m", (), 0.95, options)


def test_values_are_parsed_and_checked():
    *_, options = measure("m", names=["one=1", "two=2=3"])
    assert options["names"] == {"one": "1", "two": "2=3"}
    for given, message in (
        ({"limit": 0}, "--most 0 is out of range. Expected: 1 or more. Fix: give --most a larger number."),
        ({"kind": "c"}, "--kind 'c'. Expected: a, b. Fix: use one of these."),
        (
            {"names": ["one"]},
            "--names 'one' is not of the form NAME=VALUE. "
            "Expected: NAME=VALUE. Fix: write --names NAME=VALUE.",
        ),
        ({"names": 3}, "--names 3. Expected: NAME=VALUE, or a mapping."),
    ):
        with pytest.raises(InputError) as error:
            measure("m", **given)
        assert str(error.value) == message


@pytest.mark.parametrize(
    ("option", "accepted"),
    [
        (Option("Share.", gt=0, le=1), "above 0 and at most 1"),
        (Option("Port.", ge=1, le=65535), "from 1 and at most 65535"),
        (Option("Size.", gt=0), "above 0"),
    ],
)
def test_bounds_are_said_in_words_and_hold_for_nan(option, accepted):
    with pytest.raises(InputError) as error:
        replace(option, name="share", kind=float).check(float("nan"))
    assert error.value.accepted == accepted


def test_the_help_ends_with_the_default():
    assert Option("Level.", default=0.95).text == "Level (default 0.95)."
    assert Option("Seed.", default=0).text == "Seed (default 0)."
    assert Option("Formats.", default=("html", "json")).text == "Formats (default html, json)."
    assert Option("Batch (default: all).").text == "Batch (default: all)."


def test_every_field_is_an_option():
    class Bare(TypedDict):
        bare: int

    with pytest.raises(TypeError, match=r"Bare\.bare is not Annotated"):
        fields_of(Bare)


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
    assert error.value.problem == f"measure() has no argument {next(iter(given))!r}"
    assert error.value.accepted == "model, level, limit, seed, kind, names, fresh"
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


def test_a_text_is_no_yes_or_no(tmp_path):
    """As Python reads it "no" is a yes, and would empty the run folder."""
    with pytest.raises(InputError, match=r"^fresh 'no'\. Expected: True or False"):
        evenhand.audit("stub", fresh="no", out=tmp_path)


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
