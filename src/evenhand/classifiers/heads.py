"""Heads of the embedded encoder: what each decides, and its labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

HeadKind = Literal["one-of", "each"]


@dataclass(frozen=True, slots=True)
class Head:
    """One question a classifier answers about a text."""

    name: str
    labels: tuple[str, ...]
    kind: HeadKind
    """``one-of``: the labels exclude each other (softmax); ``each``: a yes or no a label (sigmoid)."""


REGARD: Final = Head("regard", ("negative", "neutral", "positive", "other"), "one-of")


TOXICITY: Final = Head("toxicity", ("toxic", "identity_attack"), "each")


EMOTION: Final = Head("emotion", ("anger", "fear", "joy", "sadness", "neutral"), "one-of")


INTENSITY: Final = Head("intensity", ("anger", "fear", "joy", "sadness"), "each")


IDEOLOGY: Final = Head("ideology", ("conservative",), "each")


HEADS: Final = (REGARD, TOXICITY, EMOTION, INTENSITY, IDEOLOGY)
"""The heads of the embedded encoder, in the order of its logits."""


def count_logits(heads: tuple[Head, ...] = HEADS) -> int:
    """The number of logits of all heads together.

    >>> count_logits()
    16
    """
    return sum(len(head.labels) for head in heads)


def head_columns(name: str, heads: tuple[Head, ...] = HEADS) -> slice:
    """Where the logits of the head ``name`` stand.

    >>> head_columns("toxicity")
    slice(4, 6, None)
    """
    start = 0
    for head in heads:
        if head.name == name:
            return slice(start, start + len(head.labels))
        start += len(head.labels)
    raise KeyError(name)
