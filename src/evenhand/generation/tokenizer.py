"""Tokenizers from the tokenizers library and from transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

from tokenizers import Tokenizer

from evenhand.core.digests import digest
from evenhand.core.regular_files import read_text
from evenhand.tensors.checkpoints import raise_model_errors
from evenhand.tensors.model_files import check_steps

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


_MOST_TOKENS: Final = 1 << 24
"""Many times the size of the largest published vocabulary."""


class TokenCodec(Protocol):
    """The tokenizer interface of the models."""

    @property
    def start(self) -> int | None:
        """The start token of an empty prompt, or None."""
        ...

    @property
    def ends(self) -> frozenset[int]:
        """The end-of-text tokens."""
        ...

    @property
    def digest(self) -> str:
        """A digest that identifies the tokenizer."""
        ...

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, including the tokenizer's own prefix tokens."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens without special tokens."""
        ...


@dataclass(frozen=True, slots=True)
class PlainCodec:
    """A ``tokenizer.json`` loaded with the tokenizers library only."""

    tokenizer: Tokenizer
    start: int | None
    ends: frozenset[int]
    digest: str

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
        return cls(tokenizer, start, ends, _digest(tokenizer))

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


def _digest(tokenizer: PreTrainedTokenizerBase) -> str:
    if tokenizer.is_fast:
        return digest(tokenizer.backend_tokenizer.to_str())
    return digest([type(tokenizer).__name__, tokenizer.get_vocab()])
