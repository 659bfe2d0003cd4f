from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from evenhand.text.word_tokens import compose_unicode


def test_composed_is_what_a_reader_sees() -> None:
    assert compose_unicode("Jose\u0301") == compose_unicode("Jo\u00adse\u2060\u0301\ufeff") == "Jos\u00e9"


def test_composed_keeps_what_separates_or_joins() -> None:
    kept = "a\u200bb \u0645\u06cc\u200c\u0634\u0648\u062f \U0001f469\u200d\U0001f680 \u201cx\u201d\u00a0y"
    assert compose_unicode(kept) == kept


@given(st.text())
def test_composing_twice_changes_nothing_more(text: str) -> None:
    assert compose_unicode(compose_unicode(text)) == compose_unicode(text)
    assert unicodedata.is_normalized("NFC", compose_unicode(text))
