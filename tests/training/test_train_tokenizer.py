"""The byte-level BPE and what it says of sentences."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tools.assets import train_tokenizer

from evenhand.models import hub_layout
from evenhand.training.corpus_text import FOLDS


def test_special_tokens_have_the_first_ids(bpe: Tokenizer) -> None:
    assert [bpe.id_to_token(index) for index in range(5)] == list(hub_layout.SPECIAL_TOKENS)
    assert (
        hub_layout.END,
        hub_layout.PAD,
        hub_layout.CLS,
        hub_layout.SEP,
        hub_layout.MASK,
    ) == (0, 1, 2, 3, 4)
    assert bpe.get_vocab_size() == 330


def test_typography_is_folded_at_use(bpe: Tokenizer) -> None:
    assert bpe.encode("\u201cno\u201d \u2014 can\u2019t").ids == bpe.encode('"no" -- can\'t').ids


def test_a_mask_takes_its_leading_space(bpe: Tokenizer) -> None:
    expected = [*bpe.encode("The").ids, hub_layout.MASK, *bpe.encode(" sat").ids]
    assert bpe.encode("The [MASK] sat").ids == expected


_FOLDED = {char for chars, _ in FOLDS for char in chars}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=30))
def test_any_text_without_folded_characters_comes_back(bpe: Tokenizer, text: str) -> None:
    if _FOLDED & set(text) or "[" in text or "<" in text:
        return
    assert bpe.decode(bpe.encode(text).ids, skip_special_tokens=False) == text


def test_encode_keeps_order_over_batches(bpe: Tokenizer) -> None:
    texts = ["The cat", "sat", "", "on the mat."]
    whole = [encoded.tolist() for encoded in train_tokenizer.encode(bpe, texts, batch=3)]
    assert whole == [bpe.encode(text).ids for text in texts]


def test_frame_puts_cls_and_sep_around_a_text(bpe: Tokenizer) -> None:
    framed = Tokenizer.from_str(bpe.to_str())
    hub_layout.frame_texts(framed)
    assert framed.encode("The cat").ids == [
        hub_layout.CLS,
        *bpe.encode("The cat").ids,
        hub_layout.SEP,
    ]


def test_sentence_tables_read_the_spelling(bpe: Tokenizer) -> None:
    tables = train_tokenizer.sentence_tables(bpe)
    ids = bpe.get_vocab()
    assert tables.breaks[hub_layout.END]
    assert tables.breaks[ids["\u010a"]]  # the newline
    assert [bool(tables.stops[ids[char]]) for char in ".!?,"] == [True, True, True, False]
    assert tables.capital[ids["T"]]
    assert not tables.capital[ids["t"]]
    spaced = ids["\u0120The"]
    assert tables.spaced[spaced]
    assert tables.bare[spaced] == ids["The"]
    assert tables.bare[ids["The"]] == ids["The"]
    assert not tables.capital[: len(hub_layout.SPECIAL_TOKENS)].any()
    assert len(tables.bare) == 330
    assert tables.bare.dtype == np.int64
