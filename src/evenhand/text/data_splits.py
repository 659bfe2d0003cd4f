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

Shingles = frozenset[tuple[str, ...]]
_WORD: Final = re.compile(r"\w+")


def split_shingles(text: str) -> Shingles:
    """The distinct runs of three words of a text, lower-cased; a shorter text is one run.

    >>> sorted(split_shingles("To be or not"))
    [('be', 'or', 'not'), ('to', 'be', 'or')]
    """
    words = _WORD.findall(text.lower())
    starts = range(max(1, len(words) - SHINGLE + 1))
    return frozenset(tuple(words[start : start + SHINGLE]) for start in starts)


SHARE: Final = 0.2
"""The share of each label's texts that is held out."""


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
    split = TextSplit(sorted(set(range(len(texts))) - set(held_out)), sorted(held_out))
    sides = [{labels[place] for place in places} for places in split]
    for label in dict.fromkeys(labels):
        if not all(label in side for side in sides):
            raise InputError(
                f"the texts of the label {label!r} are too few, or too much alike, to hold some of them out",
                expected="several different texts a label",
                fix="add texts, or name texts to test on with --valid",
            )
    return split


def group_near_duplicates(texts: Sequence[str], *, similar: float = SIMILAR) -> list[int]:
    """For each text the number of its family: texts linked by a Jaccard similarity of ``similar`` or more.

    Exact. Similar sets share one of their rarest elements, so only those are compared (prefix filtering,
    Chaudhuri, Ganti and Kaushik 2006); common phrases cost nothing.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = np.array(list(_pairs(texts, similar)), dtype=np.intp).reshape(-1, 2).T
    graph = coo_array((np.ones(links.shape[1]), tuple(links)), shape=(len(texts), len(texts)))
    families: list[int] = connected_components(graph, directed=False)[1].tolist()
    return families


def find_near_duplicates(
    texts: Sequence[str], known: Sequence[str], *, similar: float = SIMILAR
) -> list[bool]:
    """Whether each text has a Jaccard similarity of ``similar`` (0 to 1) or more to some known text."""
    pairs = _pairs([*known, *texts], similar)
    repeated = {place for place, other in pairs if other < len(known) <= place}
    return [place in repeated for place in range(len(known), len(known) + len(texts))]


def _pairs(texts: Sequence[str], similar: float) -> Iterator[tuple[int, int]]:
    """Every pair of similar texts, the later one first."""
    sets = [split_shingles(text) for text in texts]
    counts = Counter(shingle for shingles in sets for shingle in shingles)
    index: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, own in enumerate(sets):
        rarest = sorted(own, key=lambda shingle: (counts[shingle], shingle))
        prefix = rarest[: len(own) - math.ceil(similar * len(own)) + 1]
        for other in {other for shingle in prefix for other in index[shingle]}:
            both = len(own & sets[other])
            if both >= similar * (len(own) + len(sets[other]) - both):
                yield place, other
        for shingle in prefix:
            index[shingle].append(place)
