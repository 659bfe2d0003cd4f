from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from evenhand.text.word_tokens import compose_unicode, fold_term, normalise_text


def test_quotes_and_spaces_become_plain() -> None:
    assert normalise_text("\u201cShe\u2019s\u00a0\u2009here\u201d") == '"She\'s here"'


def test_composed_and_decomposed_letters_meet() -> None:
    assert normalise_text("cafe\u0301") == normalise_text("caf\u00e9") == "caf\u00e9"


def test_invisible_characters_go_and_line_ends_stay() -> None:
    assert normalise_text("\ufeffco\u00adop\u200b\t a\r\nb\n\nc") == "coop a\r\nb\n\nc"


def test_fold_ignores_case_and_spacing() -> None:
    assert fold_term("  New\u00a0\n YORK ") == "new york"
    assert fold_term("Stra\u00dfe") == fold_term("STRASSE")


@given(st.text())
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalise_text(text)
    assert normalise_text(once) == once


def test_composed_is_what_a_reader_sees() -> None:
    assert compose_unicode("Jose\u0301") == compose_unicode("Jo\u00adse\u2060\u0301\ufeff") == "Jos\u00e9"


def test_composed_keeps_what_separates_or_joins() -> None:
    kept = "a\u200bb \u0645\u06cc\u200c\u0634\u0648\u062f \U0001f469\u200d\U0001f680 \u201cx\u201d\u00a0y"
    assert compose_unicode(kept) == kept


@given(st.text())
def test_composing_twice_changes_nothing_more(text: str) -> None:
    assert compose_unicode(compose_unicode(text)) == compose_unicode(text)
    assert unicodedata.is_normalized("NFC", compose_unicode(text))
