"""Drawing items: evenly over groups and scores, by seed, blind to order."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.annotate.study_parts import candidate

from evenhand.annotate.study import parse_task, task_text
from evenhand.annotate.study_creation import ItemCandidate, items_table, sample_across_methods, sample_evenly


def spread() -> list[ItemCandidate]:
    """Group a: 50 texts from -1 to 1 in even steps. Group b: 50 texts, all but five of them at 0."""
    a = [candidate(number, group="g=a", score=-1 + number / 24.5) for number in range(50)]
    b = [candidate(100 + number, group="g=b", score=0.0) for number in range(45)]
    return a + b + [candidate(200 + number, group="g=b", score=-1 + number / 2) for number in range(5)]


def test_groups_and_parts_of_the_range_get_equal_shares() -> None:
    chosen = sample_evenly(spread(), count=20, seed=0)
    assert Counter(one.group for one in chosen) == {"g=a": 10, "g=b": 10}
    # Ten of group a over five parts of [-1, 1], each 0.4 wide: two of each.
    parts = Counter(min(4, int((one.score + 1) / 0.4)) for one in chosen if one.group == "g=a")  # type: ignore[operator]
    assert parts == {0: 2, 1: 2, 2: 2, 3: 2, 4: 2}
    # Group b has one text in four of the parts (-1, -0.5, 0.5, 1): all four are drawn, the rest is at 0.
    extreme = [one for one in chosen if one.group == "g=b" and one.score != 0]
    assert len(extreme) == 4


def test_a_small_group_gives_all_it_has_and_others_fill_up() -> None:
    texts = [candidate(number, group="g=small") for number in range(3)]
    texts += [candidate(10 + number, group="g=large") for number in range(30)]
    chosen = sample_evenly(texts, count=20, seed=1)
    assert Counter(one.group for one in chosen) == {"g=small": 3, "g=large": 17}
    assert len(sample_evenly(texts, count=100, seed=1)) == 33


def test_equal_texts_of_a_group_count_once() -> None:
    twice = [candidate(1), candidate(1)]
    assert len(sample_evenly(twice, count=2, seed=0)) == 1


def test_texts_without_a_score_are_drawn_too() -> None:
    chosen = sample_evenly([candidate(number, score=None) for number in range(5)], count=3, seed=0)
    assert len({one.text_id for one in chosen}) == 3


@settings(max_examples=25, deadline=None)
@given(order=st.permutations(range(100)), seed=st.integers(0, 5))
def test_order_changes_nothing(order: list[int], seed: int) -> None:
    texts = spread()
    assert sample_evenly([texts[place] for place in order], count=15, seed=seed) == sample_evenly(
        texts, count=15, seed=seed
    )


def test_another_seed_draws_others() -> None:
    drawn = {tuple(one.text_id for one in sample_evenly(spread(), count=10, seed=seed)) for seed in range(5)}
    assert len(drawn) == 5


def test_methods_share_their_prompts() -> None:
    texts = [
        candidate(number, method=method, group=f"g={number % 2}", tail=f" {method}")
        for number in range(10)
        for method in ("base", "cls", "emb", "glove")
    ]
    del texts[0]  # prompt 0 has no text by base
    chosen = sample_across_methods(texts, count=16, seed=0)
    assert Counter(one.method for one in chosen) == dict.fromkeys(("base", "cls", "emb", "glove"), 4)
    pairs = Counter(one.pair for one in chosen)
    assert set(pairs.values()) == {4}
    assert len(pairs) == 4
    assert "p0" not in pairs
    assert Counter(one.group for one in chosen) == {"g=0": 8, "g=1": 8}


def test_the_table_has_checks_with_their_answers() -> None:
    task = parse_task(task_text("toxicity"), where="toxicity")
    table = items_table([candidate(1, score=0.25)], task)
    checks = table.filter(table["is_check"])
    assert checks.height == 4
    assert set(checks["expected"]) == {'{"toxicity":"toxic"}', '{"toxicity":"neutral"}'}
    (row,) = table.filter(~table["is_check"]).iter_rows(named=True)
    assert (row["score"], row["group"], row["method"], row["pair"]) == (0.25, "g=a", "m", "p1")
