"""Text from data that a CI runner would obey, and text it would not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.printable import escape_commands


def is_obeyed(text: str) -> bool:
    """As the runner reads: lines without white space at their ends, and ``##[`` anywhere.

    It may compare by the rules of a language, for which soft hyphens and joiners are not there.
    """
    lines = re.split(r"[\r\n]", re.sub("[\u00ad\u034f\u200d\u3164\ufe0f]", "", text))
    return any(line.strip().startswith("::") or "##[" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("::add-mask::secret", r"\::add-mask::secret"),
        ("  \t::error::x\n", "  \t\\::error::x\n"),
        ("a\n\u00a0::stop-commands::t", "a\n\u00a0\\::stop-commands::t"),
        ("a\r::group::x", "a\r\\::group::x"),
        ("\x1b[1m::group::x", "\x1b[1m\\::group::x"),
        ("\ufeff::group::x", "\ufeff\\::group::x"),
        ("\u00ad::group::x", "\u00ad\\::group::x"),
        ("\u3164 \u034f::group::x", "\u3164 \u034f\\::group::x"),
        (":\u00ad:group::x", "\\:\u00ad:group::x"),
        ("#\u200d#[group]x", "#\\\u200d#[group]x"),
        ("named ##[group]x", r"named #\#[group]x"),
        ("###[error]x ##vso[task.complete]", r"##\#[error]x #\#vso[task.complete]"),
    ],
)
def test_what_a_runner_would_obey_is_escaped(text: str, escaped: str) -> None:
    assert escape_commands(text) == escaped


@pytest.mark.parametrize("text", ["", "a::b", "std::vector", "# title", "## title", "100 %"])
def test_other_text_stays(text: str) -> None:
    assert escape_commands(text) == text


def test_empty_lines_are_read_once() -> None:
    """From each line end anew, a million of them would take hours."""
    assert escape_commands("\n " * 1_000_000 + "::x") == "\n " * 1_000_000 + "\\::x"


@given(st.text(alphabet=":#[]ab \t\r\n\u00a0\u2028\ufeff\x1b\x0b\x85\u00ad\u034f\u3164", max_size=40))
def test_nothing_that_is_escaped_is_obeyed(text: str) -> None:
    escaped = escape_commands(text)
    assert not is_obeyed(escaped)
    assert escape_commands(escaped) == escaped
