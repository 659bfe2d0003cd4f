from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from evenhand.text.normalise import composed, fold, normalise


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


def test_composed_is_what_a_reader_sees() -> None:
    assert composed("Jose\u0301") == composed("Jo\u00adse\u2060\u0301\ufeff") == "Jos\u00e9"


def test_composed_keeps_what_separates_or_joins() -> None:
    kept = "a\u200bb \u0645\u06cc\u200c\u0634\u0648\u062f \U0001f469\u200d\U0001f680 \u201cx\u201d\u00a0y"
    assert composed(kept) == kept


@given(st.text())
def test_composing_twice_changes_nothing_more(text: str) -> None:
    assert composed(composed(text)) == composed(text)
    assert unicodedata.is_normalized("NFC", composed(text))
