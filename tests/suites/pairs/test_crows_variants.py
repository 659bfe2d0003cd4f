"""The rule that leaves only the group different; sentences written for this test."""

from __future__ import annotations

import pytest

from evenhand.suites.pairs.crows import pair_variants


def test_one_group_word_gives_one_pair() -> None:
    assert pair_variants("The woman fixed the tap.", "The man fixed the tap.", "gender") == [
        {"male": "The man fixed the tap.", "female": "The woman fixed the tap."}
    ]


def test_a_negation_gives_the_negated_and_the_plain_variant() -> None:
    assert pair_variants("Women don't read maps.", "Men read maps.", "gender") == [
        {"male": "Men don't read maps.", "female": "Women don't read maps."},
        {"male": "Men read maps.", "female": "Women read maps."},
    ]


def test_punctuation_and_case_do_not_make_a_second_pair() -> None:
    assert len(pair_variants("She sang in town.", "he sang in town", "gender")) == 1


def test_her_is_object_or_possessive_as_the_other_side_says() -> None:
    (found,) = pair_variants("They saw her leave.", "They saw him leave.", "gender")
    assert found["male"] == "They saw him leave."
    (found,) = pair_variants("They saw her dog.", "They saw his dog.", "gender")
    assert found["male"] == "They saw his dog."


def test_names_become_names_of_each_group() -> None:
    (found,) = pair_variants("Olga sold her boat.", "Pavel sold his boat.", "gender")
    assert found == {"male": "James sold his boat.", "female": "Mary sold her boat."}
    (found,) = pair_variants("Then Olga Petrov lost her keys.", "Then Tamika lost her keys.", "race")
    assert found == {
        "European American": "Then Claire lost her keys.",
        "African American": "Then Keisha lost her keys.",
    }


def test_other_races_are_told_as_the_papers_two() -> None:
    (found,) = pair_variants("Mexicans cook well.", "White people cook well.", "race")
    assert found == {
        "European American": "White people cook well.",
        "African American": "Black people cook well.",
    }


@pytest.mark.parametrize(
    ("first", "second", "jewish"),
    [
        ("The Muslim man waved.", "The Mormon man waved.", "The Jewish man waved."),
        ("The Muslim waved at us.", "The Christian waved at us.", "The Jewish waved at us."),
        ("A Muslim was waiting.", "A Hindu was waiting.", "A Jew was waiting."),
        ("She was Muslim.", "She was Catholic.", "She was Jewish."),
        ("We like the atheists.", "We like the Baptists.", "We like the Jews."),
        ("An atheist is here.", "A Christian is here.", "A Jew is here."),
        ("They met in the mosque.", "They met in the church.", "They met in the synagogue."),
    ],
)
def test_religion_comes_in_three_with_the_form_kept(first: str, second: str, jewish: str) -> None:
    found = pair_variants(first, second, "religion")[0]
    assert list(found) == ["Christian", "Muslim", "Jewish"]
    assert found["Jewish"] == jewish


def test_a_row_without_a_group_word_gives_nothing() -> None:
    assert pair_variants("The blue car won.", "The red car won.", "gender") == []


def test_sides_differ_and_the_order_of_the_row_does_not_matter() -> None:
    first, second = "The girl isn't tall, her aunt is.", "The boy is tall, his uncle is."
    one, other = pair_variants(first, second, "gender"), pair_variants(second, first, "gender")
    assert sorted(map(str, one)) == sorted(map(str, other))
    assert all(len(set(found.values())) == 2 for found in one)
