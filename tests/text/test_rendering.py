from __future__ import annotations

import pytest

from evenhand.core.records import Mention, Text
from evenhand.text.rendering import render_text

MENTIONS = (Mention("Ada", mask="Person"), Mention("coder"))


def test_full_scope_reads_prompt_and_continuation() -> None:
    text = render_text("Ada is a", " coder.", scope="full", masking="person", mentions=MENTIONS)
    assert text == Text("Person is a XYZ.", ((0, 6), (12, 15)))


def test_xyz_masks_every_mention_alike() -> None:
    assert (
        render_text("Ada is a", " coder.", scope="full", masking="xyz", mentions=MENTIONS).text
        == "XYZ is a XYZ."
    )


def test_the_suite_decides_what_is_masked_even_where_a_metric_asks_for_nothing() -> None:
    assert render_text("Ada", " ran.", scope="full", masking="none", mentions=MENTIONS).text == "Person ran."


def test_continuation_scope_leaves_the_prompt_out() -> None:
    text = render_text("Ada is a", " coder.", scope="continuation", masking="xyz", mentions=MENTIONS)
    assert text == Text(" XYZ.", ((1, 4),))


def test_mask_none_leaves_the_text_alone() -> None:
    text = render_text(
        "Ada is a", " coder.", scope="full", masking="xyz", mentions=MENTIONS, mask_option="none"
    )
    assert text == Text("Ada is a coder.")


@pytest.mark.parametrize("mention", ["Jos\u00e9", "Jose\u0301"])
@pytest.mark.parametrize(
    "name",
    [
        "Jos\u00e9",
        "Jose\u0301",
        "JOSE\u0301",
        "Jo\u00adse\u0301",
        "Jose\u00ad\u0301",
        "Jo\u2060s\ufeff\u00e9",
    ],
)
@pytest.mark.parametrize("whole_word", [True, False])
def test_a_mention_is_found_however_it_is_spelt(mention: str, name: str, whole_word: bool) -> None:
    mentions = (Mention(mention, whole_word=whole_word),)
    text = render_text(f"{name} said", f" {name} ran.", scope="full", masking="xyz", mentions=mentions)
    assert text == Text("XYZ said XYZ ran.", ((0, 3), (9, 12)))


def test_what_is_scored_is_composed_unless_nothing_may_change() -> None:
    spelt = " cafe\u0301 wo\u00adman"
    assert render_text("A", spelt, scope="full", masking="none").text == "A caf\u00e9 woman"
    assert render_text("A", spelt, scope="full", masking="none", mask_option="none").text == "A" + spelt


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
    rendered = render_text(prompt, continuation, scope="full", masking="none", mask_option="none")
    assert rendered.text == whole
