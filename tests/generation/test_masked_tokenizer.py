from __future__ import annotations

from tests.models import tiny_masked

from evenhand.core.files import asset_path
from evenhand.generation.tokenizer import MaskedTokenCodec


def wordpiece() -> MaskedTokenCodec:
    tokenizer = tiny_masked.wordpiece().backend_tokenizer
    return MaskedTokenCodec.of(tokenizer, before=2, after=3, mask=4, vocabulary=len(tiny_masked.PIECES) + 2)


def test_special_untrained_and_unspelt_tokens_are_never_drawn() -> None:
    size = len(tiny_masked.PIECES)
    # Five special ones, [unused0], which is the last piece, and two the model has but the tokenizer lacks.
    assert wordpiece().excluded_tokens == {0, 1, 2, 3, 4, size - 1, size, size + 1}


def test_a_prompt_is_read_without_its_frame() -> None:
    codec = wordpiece()
    words = tiny_masked.PIECES
    assert codec.encode(["The man", ""]) == [[words.index("the"), words.index("man")], []]


def test_word_pieces_become_clean_text() -> None:
    codec = wordpiece()
    tokens = [tiny_masked.PIECES.index(piece) for piece in ("##s", "sang", ",", "well", "-", "known", ".")]
    assert codec.continuation("The man", codec.encode(["The man"])[0], tokens) == "s sang, well-known."


def test_bytes_become_text_and_broken_characters_go() -> None:
    plain = tiny_masked.bytewise()
    codec = MaskedTokenCodec.of(plain.backend_tokenizer, before=0, after=2, mask=4, vocabulary=261)
    prompt, written = codec.encode(["A café"])[0], codec.encode([" in Köln"])[0]
    assert codec.continuation("A café", prompt, written) == " in Köln"
    # The last byte of ö missing: the character cannot be read.
    broken = codec.encode([" Kö"])[0][:-1]
    assert codec.continuation("A café", prompt, broken) == " K"


def test_the_embedded_tokenizer() -> None:
    codec = MaskedTokenCodec.read(asset_path("builtin", "tokenizer.json"), vocabulary=16_384)
    assert (codec.before, codec.after, codec.mask) == (2, 3, 4)
    assert codec.excluded_tokens == {0, 1, 2, 3, 4}
    prompt = codec.encode(["The woman was"])[0]
    assert (
        codec.continuation("The woman was", prompt, codec.encode([" known for it."])[0]) == " known for it."
    )
