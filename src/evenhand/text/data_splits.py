"""Divide labelled texts in training and held-out ones, texts that nearly repeat each other on one side."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from evenhand.core.errors import InputError

SHINGLE: Final = 3
"""Words a shingle holds."""
SIMILAR: Final = 0.5
"""Jaccard similarity of shingles at which two texts are near-duplicates."""

_WORD: Final = re.compile(r"\w+")


def split_shingles(text: str, *, size: int = SHINGLE) -> frozenset[tuple[str, ...]]:
    """The distinct runs of ``size`` words of a text, lower-cased; a shorter text is one run.

    >>> sorted(shingles("To be or not to be", size=4))
    [('be', 'or', 'not', 'to'), ('or', 'not', 'to', 'be'), ('to', 'be', 'or', 'not')]
    """
    words = _WORD.findall(text.lower())
    if len(words) <= size:
        return frozenset({tuple(words)})
    return frozenset(tuple(words[start : start + size]) for start in range(len(words) - size + 1))


def find_near_duplicates(
    texts: Sequence[str], known: Sequence[str], *, similar: float = SIMILAR, size: int = SHINGLE
) -> list[bool]:
    """Whether each text shares at least ``similar`` of its shingles (Jaccard, 0 to 1) with some known text.

    Exact: an inverted index counts the shared shingles of every pair that shares any.
    """
    sizes: list[int] = []
    index: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, text in enumerate(known):
        found = split_shingles(text, size=size)
        sizes.append(len(found))
        for shingle in found:
            index[shingle].append(number)
    return [_has_twin(split_shingles(text, size=size), index, sizes, similar) for text in texts]


def _has_twin(
    found: frozenset[tuple[str, ...]],
    index: dict[tuple[str, ...], list[int]],
    sizes: Sequence[int],
    similar: float,
) -> bool:
    shared = Counter(number for shingle in found for number in index.get(shingle, ()))
    return any(both >= similar * (len(found) + sizes[number] - both) for number, both in shared.items())


SHARE: Final = 0.2
"""The share of each label's texts that is held out."""

Shingles = frozenset[tuple[str, ...]]


class TextSplit(NamedTuple):
    """Places of the texts on each side, in order."""

    train: list[int]
    held_out: list[int]


def divide_texts(
    texts: Sequence[str], labels: Sequence[str], *, seed: int, share: float = SHARE
) -> TextSplit:
    """A seeded split that holds out about ``share`` of every label's texts, at least one.

    Families of near-identical texts stay on one side, so a family is held out only where the labels of all
    its members still have room.
    """
    room = {label: max(1, round(share * count)) for label, count in Counter(labels).items()}
    members: dict[int, list[int]] = defaultdict(list)
    for place, family in enumerate(group_near_duplicates(texts)):
        members[family].append(place)
    groups = list(members.values())
    held_out: list[int] = []
    for index in np.random.default_rng(seed).permutation(len(groups)):
        wanted = Counter(labels[place] for place in groups[index])
        if all(room[label] >= count for label, count in wanted.items()):
            held_out += groups[index]
            room = {label: left - wanted[label] for label, left in room.items()}
    found = TextSplit(sorted(set(range(len(texts))) - set(held_out)), sorted(held_out))
    _check_labels(found, labels)
    return found


def group_near_duplicates(texts: Sequence[str], *, similar: float = SIMILAR) -> list[int]:
    """For each text the number of its family: texts linked by a Jaccard similarity of ``similar`` or more.

    Exact. Similar sets share one of their rarest elements, so only those are compared (prefix filtering,
    Chaudhuri, Ganti and Kaushik 2006); common phrases cost nothing.
    """
    parents = list(range(len(texts)))
    for place, other in _pairs(texts, similar):
        parents[_root(parents, place)] = _root(parents, other)
    return [_root(parents, place) for place in range(len(texts))]


def count_repeated(texts: Sequence[str], known: Sequence[str], *, similar: float = SIMILAR) -> int:
    """The number of texts that have a Jaccard similarity of ``similar`` or more to some known text."""
    pairs = _pairs([*known, *texts], similar)
    return len({place for place, other in pairs if other < len(known) <= place})


def _pairs(texts: Sequence[str], similar: float) -> Iterator[tuple[int, int]]:
    """Every pair of similar texts, the later one first."""
    sets = [split_shingles(text) for text in texts]
    counts = Counter(shingle for found in sets for shingle in found)
    index: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, found in enumerate(sets):
        rarest = sorted(found, key=lambda shingle: (counts[shingle], shingle))
        prefix = rarest[: len(found) - math.ceil(similar * len(found)) + 1]
        for other in {other for shingle in prefix for other in index[shingle]}:
            if _are_similar(found, sets[other], similar):
                yield place, other
        for shingle in prefix:
            index[shingle].append(place)


def _are_similar(first: Shingles, second: Shingles, similar: float) -> bool:
    both = len(first & second)
    return both >= similar * (len(first) + len(second) - both)


def _root(parents: list[int], place: int) -> int:
    while parents[place] != place:
        parents[place] = parents[parents[place]]
        place = parents[place]
    return place


def _check_labels(split: TextSplit, labels: Sequence[str]) -> None:
    train = {labels[place] for place in split.train}
    held_out = {labels[place] for place in split.held_out}
    for label in dict.fromkeys(labels):
        if label not in train or label not in held_out:
            raise InputError(
                f"the texts of the label {label!r} are too few, or too much alike, to hold some of them out",
                expected="several different texts a label",
                fix="add texts, or name texts to test on with --valid",
            )
