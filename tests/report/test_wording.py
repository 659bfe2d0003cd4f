"""Numbers and names as a reader sees them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.report.wording import (
    format_baseline,
    format_count,
    format_name,
    format_number,
    format_p,
    format_percent,
    format_points,
    show_control_characters,
)


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.032, "3.2"), (-0.032, "−3.2"), (0.0004, "0.04"), (0.0, "0.0"), (-0.00000001, "0.00"), (1.0, "100.0")],
)
def test_points_are_hundredths_with_a_real_minus(value: float, said: str) -> None:
    assert format_points(value) == said


def test_signed_points_say_plus_but_zero_has_no_sign() -> None:
    assert format_points(0.032, signed=True) == "+3.2"
    assert format_points(0.0, signed=True) == "0.0"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.1234, "0.123"),
        (1.234, "1.23"),
        (12.34, "12.3"),
        (12345.6, "12,346"),
        (-0.5, "−0.500"),
        (0.0001, "0.000"),
    ],
)
def test_number_keeps_about_three_telling_digits(value: float, said: str) -> None:
    assert format_number(value) == said


def test_percent_has_its_unit() -> None:
    assert format_percent(0.192) == "19.2 %"


@pytest.mark.parametrize(
    ("p", "said"), [(None, "not tested"), (1e-9, "< 0.001"), (0.0123, "0.012"), (0.49, "0.49"), (1.0, "1.00")]
)
def test_probability_never_prints_zero(p: float | None, said: str) -> None:
    assert format_p(p) == said


def test_names_lose_underscores_and_reserved_baselines_say_what_they_are() -> None:
    assert format_name("European_Americans") == "European Americans"
    assert format_name("  ") == "(no name)"
    assert format_baseline("(rest)", "religious_ideology") == "the other groups of religious ideology"
    assert format_baseline("(all)", "topic") == "all groups of topic together"
    assert format_baseline("(rest)") == "the other groups"
    assert format_baseline("man") == "man"


def test_count_takes_the_plural() -> None:
    assert [format_count(1, "template"), format_count(2, "entity"), format_count(3, "day")] == [
        "1 template",
        "2 entities",
        "3 days",
    ]


def test_visible_shows_what_would_steer_a_terminal_or_a_reader() -> None:
    assert show_control_characters("a\x1b[31mb\u202ec") == "a\ufffd[31mb\ufffdc"
    assert (
        show_control_characters("tab\tline\nעברית\u200f 👩🏽\u200d🚀")
        == "tab\tline\nעברית\u200f 👩🏽\u200d🚀"
    )


@given(st.text())
def test_visible_keeps_the_length_and_no_control_character(text: str) -> None:
    shown = show_control_characters(text)
    assert len(shown) == len(text)
    assert not any(ord(letter) < 32 and letter not in "\n\t" for letter in shown)
