"""Rows of token ids in batches of like length."""

from __future__ import annotations

from itertools import chain, islice

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tools.assets.token_rows import Rows

from evenhand.classifiers.encoder import END, PAD, START

TEXTS = st.lists(st.lists(st.integers(4, 99), max_size=30), min_size=1, max_size=30)


def framed(texts: list[list[int]]) -> list[list[int]]:
    return [[START, *text, END] for text in texts]


@given(TEXTS, st.integers(16, 200), st.one_of(st.none(), st.integers(0, 5)))
def test_every_row_comes_once_whole_and_padded(texts: list[list[int]], tokens: int, seed: int | None) -> None:
    rows = framed(texts)
    rng = None if seed is None else np.random.default_rng(seed)
    seen: dict[int, list[int]] = {}
    for batch in Rows.from_lists(rows).batches(rng, tokens=tokens):
        assert batch.ids.shape[1] % 8 == 0
        assert batch.ids.numel() <= tokens or len(batch.places) == 1
        for place, ids in zip(batch.places.tolist(), batch.ids.tolist(), strict=True):
            assert place not in seen
            seen[place] = [token for token in ids if token != PAD]
    assert [seen[place] for place in range(len(rows))] == rows


def test_rows_asked_for_twice_come_twice() -> None:
    rows = Rows.from_lists(framed([[5], [6], [7]]))
    found = [
        place
        for batch in rows.batches(np.random.default_rng(0), tokens=64, places=np.array([1, 1, 2]))
        for place in batch.places.tolist()
    ]
    assert sorted(found) == [1, 1, 2]


def test_endless_goes_round_again_in_another_order() -> None:
    rows = Rows.from_lists(framed([[token] for token in range(4, 40)]))
    batches = [batch.places.tolist() for batch in islice(rows.endless(0, tokens=64), 10)]
    assert sorted(chain(*batches[:5])) == sorted(chain(*batches[5:])) == list(range(36))
    assert batches[:5] != batches[5:]
