"""Which texts people are asked about: as many of every group, and over the whole range of scores."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import polars as pl

from evenhand.annotate.study import ITEM_COLUMNS, AnnotationTask
from evenhand.core.digests import canonical_json, digest
from evenhand.core.seeds import make_generator

BINS: Final = 5
"""Parts of the range of scores, of equal width."""


@dataclass(frozen=True, slots=True)
class ItemCandidate:
    """A text that could be asked about."""

    text_id: str
    text: str
    """As people will see it, masked."""
    prompt: str
    """The prompt as people will see it."""
    pair: str
    """The prompt's id: joins texts across methods."""
    group: str
    method: str
    score: float | None
    score_label: str | None


def sample_items(candidates: Iterable[ItemCandidate], *, count: int, seed: int) -> list[ItemCandidate]:
    """``count`` texts, spread evenly over groups and, inside each, over the range of scores.

    Text after text goes to the group that has fewest, there to the fifth of the score range that has fewest,
    there to the next in an order drawn by seed; a group or a part that has no more is passed over. A text
    that occurs twice in a group counts once. The order of the candidates changes nothing.
    """
    cells = _cells(candidates, seed)
    taken: dict[str, int] = dict.fromkeys(sorted({group for group, _ in cells}), 0)
    in_cell: dict[tuple[str, int], int] = dict.fromkeys(sorted(cells), 0)
    chosen: list[ItemCandidate] = []
    while len(chosen) < count:
        open_cells = [cell for cell in in_cell if in_cell[cell] < len(cells[cell])]
        if not open_cells:
            break
        cell = min(open_cells, key=lambda cell: (taken[cell[0]], cell[0], in_cell[cell], cell[1]))
        chosen.append(cells[cell][in_cell[cell]])
        in_cell[cell] += 1
        taken[cell[0]] += 1
    return chosen


def sample_across_methods(
    candidates: Iterable[ItemCandidate], *, count: int, seed: int
) -> tuple[list[ItemCandidate], tuple[str, ...]]:
    """Texts of the same prompts by every method, ``count`` in all, and the methods.

    Prompts are spread over groups as in `sample_items`; of each prompt and method one text is drawn.
    """
    by_pair: dict[str, dict[str, list[ItemCandidate]]] = defaultdict(lambda: defaultdict(list))
    for candidate in candidates:
        by_pair[candidate.pair][candidate.method].append(candidate)
    methods = tuple(sorted({method for texts in by_pair.values() for method in texts}))
    whole = {pair: texts for pair, texts in by_pair.items() if len(texts) == len(methods)}
    firsts = [_draw_one(texts[methods[0]], seed, pair, methods[0]) for pair, texts in whole.items()]
    prompts = sample_items(firsts, count=count // max(1, len(methods)), seed=seed)
    return [
        _draw_one(whole[prompt.pair][method], seed, prompt.pair, method)
        for prompt in prompts
        for method in methods
    ], methods


def items_table(chosen: Sequence[ItemCandidate], task: AnnotationTask) -> pl.DataFrame:
    """The table of items: the chosen texts and the task's checks.

    An item's id is a digest, so that it reveals nothing of group, score or method, and a check looks like any
    other.
    """
    rows: list[dict[str, object]] = [
        {
            "item_id": _digest(one.method, one.pair, one.text_id, one.text),
            "is_check": False,
            **asdict(one),
        }
        for one in chosen
    ]
    rows += [
        {
            "item_id": _digest("check", check.text),
            "text": check.text,
            "is_check": True,
            "expected": canonical_json(check.answers),
        }
        for check in task.checks
    ]
    return pl.DataFrame(rows, schema=dict(ITEM_COLUMNS)).sort("item_id")


def _digest(*parts: str) -> str:
    return digest(list(parts), size=8)


def _cells(candidates: Iterable[ItemCandidate], seed: int) -> dict[tuple[str, int], list[ItemCandidate]]:
    """(group, part of the range) to its different texts in drawn order."""
    different: dict[tuple[str, str, str], ItemCandidate] = {}
    for candidate in sorted(candidates, key=lambda one: (one.group, one.text, one.method, one.text_id)):
        different.setdefault((candidate.group, candidate.method, candidate.text), candidate)
    scores = [one.score for one in different.values() if one.score is not None]
    low, high = (min(scores), max(scores)) if scores else (0.0, 0.0)
    cells: dict[tuple[str, int], list[ItemCandidate]] = defaultdict(list)
    for candidate in different.values():
        cells[candidate.group, _part(candidate.score, low, high)].append(candidate)
    return {cell: _shuffle(texts, seed, *map(str, cell)) for cell, texts in cells.items()}


def _part(score: float | None, low: float, high: float) -> int:
    if score is None or high <= low:
        return 0
    return min(BINS - 1, int((score - low) / (high - low) * BINS))


def _shuffle(texts: Sequence[ItemCandidate], seed: int, *key: str) -> list[ItemCandidate]:
    order = make_generator(seed, "study", *key).permutation(len(texts))
    return [texts[place] for place in order.tolist()]


def _draw_one(texts: Sequence[ItemCandidate], seed: int, *key: str) -> ItemCandidate:
    ordered = sorted(texts, key=lambda one: one.text_id)
    return _shuffle(ordered, seed, *key)[0]
