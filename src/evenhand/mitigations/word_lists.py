"""The words of two sides, and one vector per side in a model's output space."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import torch
from torch import Tensor

from evenhand.core.digests import digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path, user_path
from evenhand.core.protocols import LMHead
from evenhand.core.regular_files import read_text
from evenhand.mitigations.calibration import PiecePolicy

EMBEDDED: Final[Mapping[str, tuple[tuple[str, str], tuple[str, str]]]] = {
    "ideology": (("ideology", "words.json"), ("liberal", "conservative")),
    "gender": (("embeddings", "gender_words.json"), ("female", "male")),
}
"""The embedded file and its two lists, by name."""
_ACCEPTED: Final = "ideology, gender, or a JSON file with two named lists of words"

_EXAMPLE: Final = '{"liberal": ["climate"], "conservative": ["border"]}'


@dataclass(frozen=True, slots=True)
class WordLists:
    """Two lists of words that represent the two sides of an attribute."""

    names: tuple[str, str]
    words: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def digest(self) -> str:
        """A digest that identifies the lists."""
        return digest([self.names, self.words])


class WordListVectors(NamedTuple):
    """Vectors of two word lists in a model: the distance to a list needs one vector, not all its words."""

    first: Tensor
    """The mean output vector of the first side's words."""
    second: Tensor
    offsets: tuple[float, float]
    """The mean output bias of each side's words."""
    split: int
    """Number of words that the tokenizer splits into several tokens."""
    centre: float = 0.0
    """The typical gap between the first and the second side in the model's everyday text, in nats."""


def read_word_lists(source: str) -> WordLists:
    """Read two word lists by embedded name or from a JSON file."""
    embedded = EMBEDDED.get(source)
    path = asset_path(*embedded[0]) if embedded else user_path(source)
    try:
        lists = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        file_exists = path.exists()
        raise InputError(
            f"the word lists {source} cannot be read: {error if file_exists else 'it does not exist'}",
            expected=_ACCEPTED,
            fix=f"write JSON, such as {_EXAMPLE}" if file_exists else "check the path",
        ) from error
    names = embedded[1] if embedded else tuple(lists if isinstance(lists, dict) else ())
    invalid = sum(not _is_list(lists[name]) for name in names)
    if len(names) != 2 or invalid:
        raise InputError(
            f"{source} has {len(names) - invalid} lists of words"
            + (f", and {invalid} other values" if invalid else ""),
            expected=f"two lists of words, such as {_EXAMPLE}",
            fix="write one list for each side",
        )
    first, second = (tuple(dict.fromkeys(filter(None, map(str.strip, lists[name])))) for name in names)
    return _check_word_lists(WordLists((names[0], names[1]), (first, second)), source)


def word_list_vectors(sides: WordLists, lm_head: LMHead, *, pieces: PiecePolicy) -> WordListVectors:
    """One vector per side: the mean of its words' vectors in the output matrix.

    With dist(w) = -log pi(w), the mean distance to n words is lse(z) - mean(z_w), and the mean of the logits
    is one product with the mean of their vectors. A multi-token word is represented by the mean of its
    tokens' vectors or by its first token, and is counted in ``split``.
    """
    coded = [lm_head.encode([f" {word}" for word in words]) for words in sides.words]
    _check_tokens(sides, coded)
    vectors, offsets = zip(*(_mean(rows, lm_head, pieces) for rows in coded), strict=True)
    split = sum(len(row) > 1 for rows in coded for row in rows)
    return WordListVectors(vectors[0], vectors[1], (offsets[0], offsets[1]), split)


def _mean(rows: Sequence[Sequence[int]], lm_head: LMHead, pieces: PiecePolicy) -> tuple[Tensor, float]:
    used = [row[:1] if pieces == "first" else row for row in rows]
    device = lm_head.table.device
    tokens = torch.tensor([token for row in used for token in row], device=device)
    weights = torch.tensor([1 / len(row) for row in used for _ in row], device=device) / len(used)
    vector = weights @ lm_head.table[tokens].float()
    offset = 0.0 if lm_head.bias is None else float(weights @ lm_head.bias[tokens].float())
    return vector, offset


def _check_tokens(sides: WordLists, coded: Sequence[Sequence[Sequence[int]]]) -> None:
    """Raise an error if the tokenizer has no token for a word, instead of silently dropping the word."""
    for name, words, rows in zip(sides.names, sides.words, coded, strict=True):
        lost = [word for word, row in zip(words, rows, strict=True) if not row]
        if lost:
            raise InputError(
                f"the model's tokenizer has no token for {len(lost)} of the words {name!r}, such as "
                f"{lost[0]!r}",
                expected="words that the tokenizer can encode",
                fix="remove them, or choose words in the model's language",
            )


def _is_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _check_word_lists(sides: WordLists, source: str) -> WordLists:
    for name, words in zip(sides.names, sides.words, strict=True):
        if not words:
            raise InputError(
                f"the list {name!r} of {source} is empty",
                expected="at least one word per side",
                fix="add words, or extract them from labelled texts (evenhand.training.ideology_words)",
            )
    shared = sorted(set(sides.words[0]) & set(sides.words[1]))
    if shared:
        raise InputError(
            f"{shared[0]!r} is in both lists of {source}",
            expected="words of one side only",
            fix=f"take {'it' if len(shared) == 1 else f'the {len(shared)} shared words'} out",
        )
    return sides
