from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.annotate.study_creation import SelectionShortfall, prepare_items, select_texts
from evenhand.core.errors import InputError

Row = tuple[str, str, str, str]


def texts(prompt: str, **labels: int) -> list[Row]:
    return [
        (f"{prompt}:{label}:{number}", prompt, f"{label} {number}", label)
        for label, count in labels.items()
        for number in range(count)
    ]


def table(rows: list[Row]) -> pl.DataFrame:
    columns = dict.fromkeys(("id", "prompt", "text", "sentiment"), pl.String)
    return pl.DataFrame(rows, schema=columns, orient="row")


def test_three_of_each_label_for_every_prompt() -> None:
    rows = [*texts("a", positive=9, neutral=9, negative=9), *texts("b", positive=3, negative=5)]
    chosen, shortfalls = select_texts(table(rows))
    assert chosen.select("prompt", "sentiment").rows().count(("a", "positive")) == 3
    assert chosen.height == 12
    assert set(chosen["sentiment"]) == {"positive", "negative"}
    assert shortfalls == ()


def test_too_few_are_taken_and_said() -> None:
    chosen, shortfalls = select_texts(table(texts("The man was", positive=2, neutral=7)))
    assert chosen["sentiment"].to_list() == ["positive", "positive"]
    assert shortfalls == (
        SelectionShortfall("The man was", "positive", 2, 3, 9),
        SelectionShortfall("The man was", "negative", 0, 3, 9),
    )
    assert shortfalls[0].reason == ("'The man was' has 2 distinct positive texts among 9, 3 were requested")


def test_a_text_that_is_there_twice_counts_once() -> None:
    doubled = [(str(number), "p", "the same", "positive") for number in range(5)]
    chosen, _ = select_texts(table(doubled))
    assert chosen["id"].to_list() == ["0"]


def test_texts_are_in_the_order_they_came_in_prompt_by_prompt() -> None:
    first, second = texts("a", positive=2, neutral=1), texts("b", negative=2)
    mixed = [first[2], second[1], first[1], second[0], first[0]]
    chosen, _ = select_texts(table(mixed))
    assert chosen["id"].to_list() == ["a:positive:1", "a:positive:0", "b:negative:1", "b:negative:0"]


@given(st.permutations(texts("a", positive=6, negative=6)), st.integers(0, 3))
def test_neither_order_nor_other_prompts_change_the_draw(order: list[Row], seed: int) -> None:
    alone, _ = select_texts(table(texts("a", positive=6, negative=6)), seed=seed)
    among, _ = select_texts(table([*texts("b", positive=4), *order]), seed=seed)
    assert set(alone["id"]) == set(among.filter(prompt="a")["id"])


def test_seeds_differ() -> None:
    many = table(texts("a", positive=50))
    drawn = {tuple(select_texts(many, seed=seed)[0]["id"]) for seed in range(5)}
    assert len(drawn) == 5


def test_none_is_no_number() -> None:
    with pytest.raises(InputError) as caught:
        prepare_items("samples.tsv", per_prompt=0)
    assert str(caught.value) == (
        "--per-prompt 0 is out of range. Expected: 1 or more. Fix: try --per-prompt 3."
    )
