from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenhand.text.normalise import fold, normalise


def test_quotes_and_spaces_become_plain() -> None:
    assert normalise("\u201cShe\u2019s\u00a0\u2009here\u201d") == '"She\'s here"'


def test_composed_and_decomposed_letters_meet() -> None:
    assert normalise("cafe\u0301") == normalise("caf\u00e9") == "caf\u00e9"


def test_invisible_characters_go_and_line_ends_stay() -> None:
    assert normalise("\ufeffco\u00adop\u200b\t a\r\nb\n\nc") == "coop a\r\nb\n\nc"


def test_fold_ignores_case_and_spacing() -> None:
    assert fold("  New\u00a0\n YORK ") == "new york"
    assert fold("Stra\u00dfe") == fold("STRASSE")


@given(st.text())
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once
