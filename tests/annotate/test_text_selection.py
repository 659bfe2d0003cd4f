from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.annotate.item_selection import SelectionShortfall, TextCandidate, select_texts
from evenhand.core.errors import InputError


def texts(prompt: str, **labels: int) -> list[TextCandidate]:
    return [
        TextCandidate(f"{prompt}:{label}:{number}", prompt, f"{label} {number}", label)
        for label, count in labels.items()
        for number in range(count)
    ]


def test_three_of_each_label_for_every_prompt() -> None:
    found = select_texts(
        [*texts("a", positive=9, neutral=9, negative=9), *texts("b", positive=3, negative=5)]
    )
    assert [(item.prompt, item.label) for item in found.texts].count(("a", "positive")) == 3
    assert len(found.texts) == 12
    assert {item.label for item in found.texts} == {"positive", "negative"}
    assert found.shortfalls == ()


def test_too_few_are_taken_and_said() -> None:
    found = select_texts(texts("The man was", positive=2, neutral=7))
    assert [item.label for item in found.texts] == ["positive", "positive"]
    assert found.shortfalls == (
        SelectionShortfall("The man was", "positive", 2, 3, 9),
        SelectionShortfall("The man was", "negative", 0, 3, 9),
    )
    assert found.shortfalls[0].reason == ("'The man was' has 2 different positive texts of 9, 3 were wanted")


def test_a_text_that_is_there_twice_counts_once() -> None:
    doubled = [TextCandidate(str(number), "p", "the same", "positive") for number in range(5)]
    found = select_texts(doubled, labels=("positive",))
    assert [item.id for item in found.texts] == ["0"]


@given(st.permutations(texts("a", positive=6, negative=6)), st.integers(0, 3))
def test_neither_order_nor_other_prompts_change_the_draw(order: list[TextCandidate], seed: int) -> None:
    alone = select_texts(texts("a", positive=6, negative=6), seed=seed)
    among = select_texts([*texts("b", positive=4), *order], seed=seed)
    assert {item.id for item in alone.texts} == {item.id for item in among.texts if item.prompt == "a"}


def test_seeds_differ() -> None:
    many = texts("a", positive=50)
    drawn = {tuple(item.id for item in select_texts(many, seed=seed).texts) for seed in range(5)}
    assert len(drawn) == 5


def test_none_is_no_number() -> None:
    with pytest.raises(InputError) as caught:
        select_texts([], per_prompt=0)
    assert str(caught.value) == (
        "0 texts per prompt and label. Expected: 1 or more. Fix: give --per-prompt a number."
    )
