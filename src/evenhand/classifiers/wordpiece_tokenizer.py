"""The classifiers' tokenizer: BERT's lower-casing WordPiece with our own vocabulary."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from evenhand.classifiers.encoder import END, START
from evenhand.core.errors import ModelError
from evenhand.core.regular_files import read_text

_FIRST = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
_EMOJI = re.compile("[\u2600-\u27bf\U0001f300-\U0001faff]")


def build_tokenizer(pieces: Sequence[str]) -> Tokenizer:
    """A tokenizer with these pieces; the first four are [PAD], [UNK], [CLS] and [SEP]."""
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer


def load_tokenizer(path: Path, *, most: int | None = None) -> Tokenizer:
    """The tokenizer of a vocabulary file, one piece per line; at most as many as the model has rows."""
    pieces = read_text(path).splitlines()
    if tuple(pieces[: len(_FIRST)]) != _FIRST or len(pieces) > (most or len(pieces)):
        raise ModelError(
            f"{path} has {len(pieces)} pieces that begin with {', '.join(map(repr, pieces[:4])) or 'none'}"[
                :400
            ],
            expected=f"{', '.join(_FIRST)} and then other pieces" + (f", {most} at most" if most else ""),
            fix="train, export or download the model again",
        )
    return build_tokenizer(pieces)


def encode_texts(tokenizer: Tokenizer, texts: Sequence[str], *, longest: int) -> list[list[int]]:
    """The ids of each text between START and END, truncated to ``longest`` in total."""
    encodings = tokenizer.encode_batch_fast([spell_emoji(text) for text in texts], add_special_tokens=False)
    return [[START, *encoding.ids[: longest - 2], END] for encoding in encodings]


def spell_emoji(text: str) -> str:
    """The text with every emoji replaced by its Unicode name, since the vocabulary has no emoji.

    >>> spell_emoji("late again \U0001f621")
    'late again  pouting face '
    """
    if text.isascii():
        return text
    # Lone surrogates, which no tokenizer accepts, become question marks.
    sound = text.encode("utf-8", "replace").decode("utf-8")
    return _EMOJI.sub(lambda match: f" {unicodedata.name(match[0], '').lower()} ", sound)
