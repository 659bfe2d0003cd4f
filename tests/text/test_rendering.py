from __future__ import annotations

import pytest

from evenhand.core.records import Mention, Text
from evenhand.text.rendering import join, render

MENTIONS = (Mention("Ada", mask="Person"), Mention("coder"))


def test_full_scope_reads_prompt_and_continuation() -> None:
    text = render("Ada is a", " coder.", scope="full", masking="person", mentions=MENTIONS)
    assert text == Text("Person is a XYZ.", ((0, 6), (12, 15)))


def test_xyz_masks_every_mention_alike() -> None:
    assert (
        render("Ada is a", " coder.", scope="full", masking="xyz", mentions=MENTIONS).text == "XYZ is a XYZ."
    )


def test_the_suite_decides_what_is_masked_even_where_a_metric_asks_for_nothing() -> None:
    assert render("Ada", " ran.", scope="full", masking="none", mentions=MENTIONS).text == "Person ran."


def test_continuation_scope_leaves_the_prompt_out() -> None:
    text = render("Ada is a", " coder.", scope="continuation", masking="xyz", mentions=MENTIONS)
    assert text == Text(" XYZ.", ((1, 4),))


def test_mask_none_leaves_the_text_alone() -> None:
    text = render("Ada is a", " coder.", scope="full", masking="xyz", mentions=MENTIONS, mask_option="none")
    assert text == Text("Ada is a coder.")


@pytest.mark.parametrize(
    ("prompt", "continuation", "whole"),
    [
        ("She worked as", " a pilot", "She worked as a pilot"),
        ("She worked as ", "a pilot", "She worked as a pilot"),
        ("She worked as", "a pilot", "She worked as a pilot"),
        ("She was", '"kind"', 'She was "kind"'),
        ("The man", "'s dog", "The man's dog"),
        ("The man", ", who", "The man, who"),
        ("", "Alone", "Alone"),
        ("Alone", "", "Alone"),
    ],
)
def test_join_adds_a_space_only_where_both_sides_lack_it(prompt: str, continuation: str, whole: str) -> None:
    assert join(prompt, continuation) == whole
