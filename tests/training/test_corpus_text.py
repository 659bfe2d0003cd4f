"""Cleaning and splitting of corpus text."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.training.corpus_text import clean_text, is_held_out, read_documents, split_documents


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("\u201cI can\u2019t,\u201d she said\u2026", '"I can\'t," she said...'),
        ("1914\u20131918\u2014a war", "1914-1918--a war"),
        ("ten\u00a0miles\u200b away", "ten miles away"),
        ("They do n't know ; it 's late .", "They don't know; it's late."),
        ("\u2588\u2588\u2588 Menu \u25ba Home", "Menu Home"),
        ("Chen Zhili (; born 1942) of the kilometre ()", "Chen Zhili (born 1942) of the kilometre"),
        ("  one \n\n two  ", "one\ntwo"),
        ("Caf\u00e9 \u0424\u0451\u0434\u043e\u0440", "Caf\u00e9 \u0424\u0451\u0434\u043e\u0440"),
    ],
)
def test_clean_gives_the_text_a_reader_would_type(raw: str, expected: str) -> None:
    assert clean_text(raw) == expected


def test_a_treebank_clitic_is_left_alone_where_nothing_says_the_text_was_tokenised() -> None:
    assert clean_text("the '90s and the 's of it") == "the '90s and the 's of it"


@given(
    st.text(alphabet=st.sampled_from("ab .,'()\n\t\u2019\u201c\u2014\u00a0\u2588\u200b\u00e9;"), max_size=40)
)
def test_cleaning_leaves_no_double_space_and_no_empty_line(text: str) -> None:
    cleaned = clean_text(text)
    assert "  " not in cleaned
    assert "\n\n" not in cleaned
    assert cleaned == cleaned.strip()


def test_held_out_is_one_in_a_hundred_by_place() -> None:
    assert [index for index in range(300) if is_held_out(index)] == [37, 137, 237]


def _corpus(folder: Path) -> Path:
    texts = [f"Document {index} is about {index * 7}." for index in range(140)]
    texts[50] = texts[37] + " More."  # opens otherwise: kept
    texts[60] = texts[37]  # a copy of a held-out document: dropped
    texts[70] = texts[1]  # a copy of a training document: dropped
    texts[80] = ""
    path = folder / "wiki.txt"
    path.write_text("\n\n".join(texts), encoding="utf-8")
    return path


def test_split_keeps_held_out_documents_and_drops_their_copies_from_training(tmp_path: Path) -> None:
    training, held_out = split_documents(_corpus(tmp_path))
    assert [document.place for document in held_out] == [37, 137]
    # 140 places - 2 held out - 2 copies - 1 empty = 135
    assert len(training) == 135
    assert {50, 1} <= {document.place for document in training}
    assert not {60, 70, 80} & {document.place for document in training}


def test_bytes_are_counted_before_folding_and_xz_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "news.txt"
    path.write_text("\u2019twas", encoding="utf-8")
    packed = tmp_path / "news.txt.xz"
    packed.write_bytes(lzma.compress(path.read_bytes()))
    (plain,) = read_documents(path)
    # U+2019 is three bytes in UTF-8, "twas" four.
    assert (plain.place, plain.text, plain.raw_bytes) == (0, "'twas", 7)
    assert list(read_documents(packed)) == [plain]
