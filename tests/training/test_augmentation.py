"""More training text: groups swapped, statements, cuts."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tools.assets.augmentation import CIRCLES, GENDER, PEOPLE, cuts, statements, swap, swapped

from evenhand.training.labelled_data import Example

RNG = np.random.default_rng


def example(text: str, split: str = "train") -> Example:
    return Example(text, "some", split, {"toxicity": (1.0, None)})


def test_genders_are_exchanged_in_the_case_they_have() -> None:
    assert swap("HE told the man: Sir, she is his wife.", RNG(0)) == (
        "SHE told the woman: Madam, he is her husband."
    )


def test_a_group_becomes_another_of_its_circle_everywhere() -> None:
    text = swap("Muslims and other Muslims", RNG(3))
    first, _, _, last = text.split(" ", 3)
    assert first == last != "Muslims"


def test_words_inside_words_stay() -> None:
    assert swap("the manager of blackboards", RNG(0)) == "the manager of blackboards"


@given(st.sampled_from(GENDER))
def test_a_pair_swapped_twice_is_itself(pair: tuple[str, str]) -> None:
    assert swap(swap(pair[0], RNG(0)), RNG(0)) == pair[0]


@given(st.sampled_from(CIRCLES), st.integers(0, 50))
def test_no_word_stays_itself(circle: tuple[str, ...], seed: int) -> None:
    assert all(swap(word, RNG(seed)) in set(circle) - {word} for word in circle)


def test_only_training_texts_that_name_a_group_are_copied() -> None:
    found = swapped([example("a man"), example("a tree"), example("a man", "test")])
    assert [(copy.text, copy.corpus, copy.targets) for copy in found] == [
        ("a woman", "some-swapped", {"toxicity": (1.0, None)})
    ]


def test_cuts_are_runs_of_the_words() -> None:
    text = " ".join(map(str, range(30)))
    (found,) = cuts([example(text), example("too short")], words=(4, 6), seed=1)
    assert found.text in text
    assert 4 <= len(found.text.split()) <= 6


def test_every_group_stands_in_as_many_harmless_and_abusive_sentences() -> None:
    kinds = {0.0: 8, 1.0: 4}
    found = statements()
    assert len(found) == len(PEOPLE) * 12
    for person in PEOPLE:
        mine = [one for one in found if person.lower() in one.text.lower()]
        for label, count in kinds.items():
            assert sum(one.targets["toxicity"][0] == label for one in mine) >= count
