"""Tokenizers of causal and masked models, from the tokenizers library and from transformers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from tokenizers import Tokenizer
from tokenizers.models import WordPiece

from evenhand.core.digests import digest
from evenhand.core.errors import ModelError
from evenhand.core.regular_files import read_text
from evenhand.tensors.checkpoints import raise_model_errors
from evenhand.tensors.model_files import check_steps

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


_MOST_TOKENS: Final = 1 << 24
"""Many times the size of the largest published vocabulary."""
_INSIDE = "##"
_TIGHT_BEFORE = frozenset(",.;:?!)]}%…")
_TIGHT_AFTER = frozenset("([{$£€#@")
_JOINERS = frozenset("-/")
_CLITICS = frozenset({"s", "t", "re", "ve", "ll", "d", "m"})
_APOSTROPHES = frozenset("'’")
_INITIAL = re.compile(r"(?:\A|[\s.(\"])[A-Za-z]\.\Z")
_NUMBER_MARK = re.compile(r"\d[.,:]\Z")
_ELISION = re.compile(r"(?:\A|\s)[A-Za-z]['’]\Z")
_UNTRAINED = re.compile(r"\[unused\d+\]|madeupword\d+")
_HALF_WRITTEN = "\ufffd"


@dataclass(frozen=True, slots=True)
class PlainCodec:
    """A ``tokenizer.json`` loaded with the tokenizers library only."""

    tokenizer: Tokenizer
    start: int | None
    """The start token of an empty prompt, or None."""
    ends: frozenset[int]
    """The end-of-text tokens."""
    digest: str
    """Identifies the tokenizer."""

    @classmethod
    def read(cls, path: Path, *, end: int) -> PlainCodec:
        """Read a tokenizer; ``end`` is the token that ends a text and starts an empty one."""
        tokenizer = read_tokenizer(path)
        return cls(tokenizer, end, frozenset({end}), digest(read_text(path)))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text."""
        return [
            encoding.ids
            for encoding in self.tokenizer.encode_batch_fast([drop_surrogates(text) for text in texts])
        ]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens without special tokens."""
        text: str = self.tokenizer.decode(list(tokens))
        return text


@dataclass(frozen=True, slots=True)
class HubCodec:
    """A tokenizer loaded by transformers."""

    tokenizer: PreTrainedTokenizerBase
    start: int | None
    ends: frozenset[int]
    digest: str

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase, *, ends: frozenset[int]) -> HubCodec:
        """The codec of a tokenizer; an empty prompt begins with its BOS token, else with its EOS token."""
        start = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
        if tokenizer.is_fast:
            identity = digest(tokenizer.backend_tokenizer.to_str())
        else:
            identity = digest([type(tokenizer).__name__, tokenizer.get_vocab()])
        return cls(tokenizer, start, ends, identity)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, including the tokenizer's own prefix tokens."""
        if not texts:
            return []
        ids: list[list[int]] = self.tokenizer([drop_surrogates(text) for text in texts], verbose=False)[
            "input_ids"
        ]
        return ids

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens without special tokens."""
        text = self.tokenizer.decode(
            list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return cast(str, text)


TokenCodec: TypeAlias = PlainCodec | HubCodec


@dataclass(frozen=True, slots=True)
class MaskedTokenCodec:
    """A tokenizer for masked generation."""

    tokenizer: Tokenizer
    before: int
    """The first token of a row, such as [CLS]."""
    after: int
    """The last token of a row, such as [SEP]."""
    mask: int
    excluded_tokens: frozenset[int]
    """Tokens that are never sampled: special tokens, unused tokens, and tokens without a spelling."""
    digest: str

    @classmethod
    def of(
        cls, tokenizer: Tokenizer, *, before: int, after: int, mask: int, vocabulary: int
    ) -> MaskedTokenCodec:
        """The codec of a tokenizer whose model scores ``vocabulary`` tokens."""
        # Special tokens are added here, and padding in tensors.
        tokenizer.no_padding()
        tokenizer.no_truncation()
        special = {token for token, added in tokenizer.get_added_tokens_decoder().items() if added.special}
        untrained = {token for word, token in tokenizer.get_vocab().items() if _UNTRAINED.fullmatch(word)}
        beyond = set(range(tokenizer.get_vocab_size(), vocabulary))
        barred = frozenset(token for token in special | untrained | beyond if token < vocabulary)
        return cls(tokenizer, before, after, mask, barred | {mask}, digest(tokenizer.to_str()))

    @classmethod
    def read(cls, path: Path, *, vocabulary: int) -> MaskedTokenCodec:
        """The codec of a ``tokenizer.json`` with BERT's names for its special tokens."""
        tokenizer = read_tokenizer(path)
        names = tokenizer.get_vocab()
        missing = [name for name in ("[CLS]", "[SEP]", "[MASK]") if name not in names]
        if missing:
            raise ModelError(
                f"the tokenizer {path} has no token {missing[0]}",
                expected="a tokenizer with [CLS], [SEP] and [MASK]",
                fix="save the tokenizer of the model again, with its special tokens",
            )
        before, after, mask = names["[CLS]"], names["[SEP]"], names["[MASK]"]
        return cls.of(tokenizer, before=before, after=after, mask=mask, vocabulary=vocabulary)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without special tokens."""
        sound = [drop_surrogates(text) for text in texts]
        encodings = self.tokenizer.encode_batch_fast(sound, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def continuation(self, prompt: str, before: Sequence[int], tokens: Sequence[int]) -> str:
        """The clean text of tokens that follow a prompt, which was encoded as ``before``."""
        if isinstance(self.tokenizer.model, WordPiece):
            return join_pieces(prompt, [self.tokenizer.id_to_token(token) or "" for token in tokens])
        # Decoded with the prompt: some tokenizers decode a word differently at the start of a text.
        whole: str = self.tokenizer.decode([*before, *tokens])
        start: str = self.tokenizer.decode(list(before))
        return whole[len(start) :].replace(_HALF_WRITTEN, "")


def read_tokenizer(path: Path) -> Tokenizer:
    """Read a ``tokenizer.json``; for a damaged file the library raises various errors or panics."""
    with raise_model_errors(
        str(path),
        expected="a tokenizer.json from the tokenizers library",
        fix="download or save the tokenizer again",
    ):
        check_steps(path)
        tokenizer: Tokenizer = Tokenizer.from_str(read_text(path))
        check_ids(tokenizer.get_vocab())
        # Tested with a character outside any vocabulary: only then does a missing unknown token show.
        tokens = tokenizer.encode("a text \U000f0000", add_special_tokens=False).ids
        tokenizer.decode(tokens)
        return tokenizer


def check_ids(vocabulary: Mapping[str, int]) -> None:
    """Raise a ValueError for an absurdly large token id: the library loops up to it when saving."""
    largest = max(vocabulary.values(), default=0)
    if largest > _MOST_TOKENS:
        raise ValueError(f"a token has the id {largest:,}")


def drop_surrogates(text: str) -> str:
    """Replace lone surrogates, which no tokenizer accepts."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def join_pieces(before: str, pieces: Sequence[str]) -> str:
    """Join pieces to the text that continues ``before``, including the separating space.

    Rules restore the spaces: none before a closing mark or after an opening one; double quotes alternate;
    hyphens, slashes, clitics, initials and numbers are joined. Information lost by the tokenizer (the case in
    uncased models, spaces around a dash) is not restored.

    >>> join_pieces("The old", ["##est", "man", "'", "s", "well", "-", "known", "dog", "(", "3", ")", "."])
    "est man's well-known dog (3)."
    """
    text = before
    for piece, following in zip_longest(pieces, pieces[1:], fillvalue=""):
        if piece.startswith(_INSIDE) and len(piece) > len(_INSIDE):
            text += piece.removeprefix(_INSIDE)
        else:
            text += (" " if _is_spaced(text, piece, following) else "") + piece
    return text[len(before) :]


def _is_spaced(text: str, piece: str, following: str) -> bool:
    """Whether a space separates the text and its next piece."""
    last = text[-1:]
    if not last or last.isspace() or last in _TIGHT_AFTER:
        return False
    if piece in _TIGHT_BEFORE or piece in _APOSTROPHES:
        return False
    if piece == '"':
        return text.count('"') % 2 == 0
    if last == '"':
        return text.count('"') % 2 == 0
    if last in _APOSTROPHES:
        return piece.lower() not in _CLITICS and not _ELISION.search(text)
    if piece in _JOINERS or last in _JOINERS:
        return not _joins(text, piece, following)
    return not _goes_on(text, piece, following)


def _joins(text: str, piece: str, following: str) -> bool:
    """Whether a hyphen or slash connects two words or numbers."""
    if piece in _JOINERS:
        return text[-1].isalnum() and following[:1].isalnum()
    return text[-2:-1].isalnum() and piece[:1].isalnum()


def _goes_on(text: str, piece: str, following: str) -> bool:
    """Whether the piece continues a number (1,000; 3.5; 12:30) or initials (U.S.)."""
    if piece.isdigit() and _NUMBER_MARK.search(text):
        return text[-1] == "." or len(piece) == (3 if text[-1] == "," else 2)
    return len(piece) == 1 and piece.isalpha() and following == "." and bool(_INITIAL.search(text))
