"""Text to token ids and back for masked models: the frame of a row, its masks, and what is never drawn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordPiece

from evenhand.core.digests import digest
from evenhand.core.errors import ModelError
from evenhand.neural.pieces import joined
from evenhand.neural.tokens import clean, read_tokenizer

_UNTRAINED = re.compile(r"\[unused\d+\]|madeupword\d+")
_HALF_WRITTEN = "\ufffd"


@dataclass(frozen=True, slots=True)
class MaskedCodec:
    """A tokenizer as masked generation needs it."""

    tokenizer: Tokenizer
    before: int
    """The token that opens a row, as [CLS]."""
    after: int
    """The token that closes a row, as [SEP]."""
    mask: int
    barred: frozenset[int]
    """Tokens that are never drawn: special ones, those no text was trained on, those without a spelling."""
    digest: str

    @classmethod
    def of(cls, tokenizer: Tokenizer, *, before: int, after: int, mask: int, vocabulary: int) -> MaskedCodec:
        """The codec of a tokenizer whose model scores ``vocabulary`` tokens."""
        # The text is framed here, and padded in tensors.
        tokenizer.no_padding()
        tokenizer.no_truncation()
        special = {token for token, added in tokenizer.get_added_tokens_decoder().items() if added.special}
        untrained = {token for word, token in tokenizer.get_vocab().items() if _UNTRAINED.fullmatch(word)}
        beyond = set(range(tokenizer.get_vocab_size(), vocabulary))
        barred = frozenset(token for token in special | untrained | beyond if token < vocabulary)
        return cls(tokenizer, before, after, mask, barred | {mask}, digest(tokenizer.to_str()))

    @classmethod
    def read(cls, path: Path, *, vocabulary: int) -> MaskedCodec:
        """The codec of a ``tokenizer.json`` with BERT's names for its special tokens."""
        tokenizer = read_tokenizer(path)
        names = tokenizer.get_vocab()
        missing = [name for name in ("[CLS]", "[SEP]", "[MASK]") if name not in names]
        if missing:
            raise ModelError(
                f"the tokenizer {path} has no token {missing[0]}",
                accepted="a tokenizer with [CLS], [SEP] and [MASK]",
                todo="save the tokenizer of the model again, with its special tokens",
            )
        before, after, mask = names["[CLS]"], names["[SEP]"], names["[MASK]"]
        return cls.of(tokenizer, before=before, after=after, mask=mask, vocabulary=vocabulary)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without the tokens that frame it."""
        found = self.tokenizer.encode_batch_fast([clean(text) for text in texts], add_special_tokens=False)
        return [encoding.ids for encoding in found]

    def continuation(self, prompt: str, before: Sequence[int], tokens: Sequence[int]) -> str:
        """The clean text of tokens that follow a prompt, which was read as the tokens ``before``."""
        if isinstance(self.tokenizer.model, WordPiece):
            return joined(prompt, [self.tokenizer.id_to_token(token) or "" for token in tokens])
        # With the prompt: some tokenizers write a word differently at the start of a text.
        whole: str = self.tokenizer.decode([*before, *tokens])
        start: str = self.tokenizer.decode(list(before))
        return whole[len(start) :].replace(_HALF_WRITTEN, "")
