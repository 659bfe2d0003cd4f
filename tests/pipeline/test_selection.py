from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import InputError
from evenhand.pipeline.selection import Candidate, Shortfall, select


def texts(prompt: str, **labels: int) -> list[Candidate]:
    return [
        Candidate(f"{prompt}:{label}:{number}", prompt, f"{label} {number}", label)
        for label, count in labels.items()
        for number in range(count)
    ]


def test_three_of_each_label_for_every_prompt() -> None:
    found = select([*texts("a", positive=9, neutral=9, negative=9), *texts("b", positive=3, negative=5)])
    assert [(item.prompt, item.label) for item in found.chosen].count(("a", "positive")) == 3
    assert len(found.chosen) == 12
    assert {item.label for item in found.chosen} == {"positive", "negative"}
    assert found.shortfalls == ()


def test_too_few_are_taken_and_said() -> None:
    found = select(texts("The man was", positive=2, neutral=7))
    assert [item.label for item in found.chosen] == ["positive", "positive"]
    assert found.shortfalls == (
        Shortfall("The man was", "positive", 2, 3, 9),
        Shortfall("The man was", "negative", 0, 3, 9),
    )
    assert found.shortfalls[0].reason == ("'The man was' has 2 different positive texts of 9, 3 were wanted")


def test_a_text_that_is_there_twice_counts_once() -> None:
    doubled = [Candidate(str(number), "p", "the same", "positive") for number in range(5)]
    found = select(doubled, labels=("positive",))
    assert [item.id for item in found.chosen] == ["0"]


@given(st.permutations(texts("a", positive=6, negative=6)), st.integers(0, 3))
def test_neither_order_nor_other_prompts_change_the_draw(order: list[Candidate], seed: int) -> None:
    alone = select(texts("a", positive=6, negative=6), seed=seed)
    among = select([*texts("b", positive=4), *order], seed=seed)
    assert {item.id for item in alone.chosen} == {item.id for item in among.chosen if item.prompt == "a"}


def test_seeds_differ() -> None:
    many = texts("a", positive=50)
    drawn = {tuple(item.id for item in select(many, seed=seed).chosen) for seed in range(5)}
    assert len(drawn) == 5


def test_none_is_no_number() -> None:
    with pytest.raises(InputError) as caught:
        select([], per_prompt=0)
    assert str(caught.value) == (
        "0 texts a prompt and label. Accepted: 1 or more. What to do: give --per-prompt a number."
    )
