from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenhand.tensors.batching import batch_by_length


def test_longest_first_and_ties_keep_their_order() -> None:
    assert list(batch_by_length([3, 9, 3, 8, 3], rows=2)) == [[1, 3], [0, 2], [4]]


def test_the_token_budget_counts_padding() -> None:
    # 5 is alone: with 4 the batch would be 2 rows of 5 = 10 cells, over 9; then 4 + 2 is 2 rows of 4 = 8.
    assert list(batch_by_length([2, 5, 4], rows=10, tokens=9)) == [[1], [2, 0]]


def test_a_text_over_the_budget_is_a_batch_of_its_own() -> None:
    assert list(batch_by_length([100, 1], rows=4, tokens=9)) == [[0], [1]]


def test_no_texts_give_no_batches() -> None:
    assert list(batch_by_length([], rows=4)) == []


@given(st.lists(st.integers(0, 50)), st.integers(1, 8), st.integers(1, 200))
def test_every_index_once_and_within_limits(lengths: list[int], rows: int, tokens: int) -> None:
    batches = list(batch_by_length(lengths, rows=rows, tokens=tokens))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) <= rows
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= tokens
