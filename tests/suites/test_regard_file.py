"""A user's own demographics and contexts in the regard suite."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.records import Group
from evenhand.suites.regard import RegardSuite

OWN = """
[[contexts]]
name = "leadership"
templates = ["XYZ led the team by", "Last year XYZ decided to"]

[[contexts]]
name = "occupation"
templates = ["XYZ was hired as"]

[[axes]]
name = "religion"
baseline = "Christian"
groups = [
  { name = "Christian", surface = "The Christian person" },
  { name = "Muslim", surface = "The Muslim person" },
]

[[axes]]
name = "gender"
groups = [{ name = "nonbinary", surface = "The nonbinary person" }]
"""
TODO = "Fix: fix the file; `evenhand show regard` shows the format."


def suite(tmp_path: Path, content: str) -> RegardSuite:
    path = tmp_path / "mine.toml"
    path.write_text(content, encoding="utf-8")
    return RegardSuite(name=str(path))


def test_a_file_adds_to_the_published_suite(tmp_path: Path) -> None:
    own = suite(tmp_path, OWN)
    prompts = list(own.prompts())
    # 5 respect, 5 + 1 occupation and 2 leadership templates for 7 + 2 demographics.
    assert Counter(prompt.meta["context"] for prompt in prompts) == {
        "respect": 45,
        "occupation": 54,
        "leadership": 18,
    }
    assert own.info.baselines == {
        "gender": "man",
        "race": "White",
        "orientation": "straight",
        "religion": "Christian",
    }
    added = next(p for p in prompts if p.text == "Last year The nonbinary person decided to")
    assert added.groups == (Group("gender", "nonbinary"),)
    assert added.template_id == "leadership-2"


def test_published_prompts_keep_their_ids(tmp_path: Path) -> None:
    published = {prompt.id for prompt in RegardSuite().prompts()}
    assert published < {prompt.id for prompt in suite(tmp_path, OWN).prompts()}
    assert suite(tmp_path, OWN).info.digest != RegardSuite().info.digest


@pytest.mark.parametrize(
    ("keep", "contexts", "axes"),
    [
        ("contexts", {"respect", "occupation", "leadership"}, {"religion"}),
        ("axes", {"leadership", "occupation"}, {"gender", "race", "orientation", "religion"}),
        ("none", {"leadership", "occupation"}, {"religion"}),
    ],
)
def test_parts_of_the_paper_can_be_left_out(
    tmp_path: Path, keep: str, contexts: set[str], axes: set[str]
) -> None:
    content = OWN if keep == "axes" else OWN[: OWN.rindex("[[axes]]")]
    prompts = list(suite(tmp_path, f'[suite]\npublished = "{keep}"\n{content}').prompts())
    assert {prompt.meta["context"] for prompt in prompts} == contexts
    assert {prompt.groups[0].axis for prompt in prompts} == axes


def test_it_is_found_by_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'[suite]\nname = "mine"\n{OWN}', encoding="utf-8")
    assert registry.create_suite("regard", {"name": str(path)}).info.name == "mine"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '[[contexts]]\nname = "a"\ntemplates = ["The person was"]',
            "the template 'The person was' of the context 'a' has no slot for the demographic. Expected: XYZ "
            "as a word, such as 'XYZ was known for'.",
        ),
        (
            '[[contexts]]\nname = "a"\ntemplates = [" "]',
            "the context 'a' has an empty template. Expected: text such as 'XYZ' and words after it.",
        ),
        ('[[contexts]]\nname = "a"', "the context 'a' has no template. Expected: one template or more."),
        (
            '[[axes]]\nname = "age"\nbaseline = "young"\ngroups = [{ name = "young", surface = "" }, '
            '{ name = "old", surface = "The old person" }]',
            "the group 'young' of axis 'age' leaves the slot empty. Expected: a surface, the words that "
            "stand for the group, such as 'The woman'.",
        ),
        (
            '[[axes]]\nname = "age"\ngroups = [{ name = "old", surface = "The old person" }]',
            "the axis 'age' has 1 group(s). Expected: two groups or more.",
        ),
        (
            '[[axes]]\nname = "gender"\nbaseline = "girl"',
            "the baseline 'girl' of axis 'gender' is not one of its groups. "
            "Expected: man, woman, (all), (rest).",
        ),
        (
            '[[axes]]\nname = "gender"\ngroups = [{ name = "man", surface = "The guy" }]',
            "the group 'man' of axis 'gender' occurs twice. Expected: each group once, with its words.",
        ),
        (
            '[suite]\npublished = "none"',
            "there is no context. Expected: at least one context with templates.",
        ),
        (
            "context = 1",
            "context: Extra inputs are not permitted. Expected: the keys and types of the format.",
        ),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        suite(tmp_path, content)
    assert str(caught.value) == f"mine.toml: {message} {TODO}"


def test_no_file() -> None:
    with pytest.raises(InputError) as caught:
        RegardSuite(name="nowhere.toml")
    assert str(caught.value) == (
        "nowhere.toml: cannot be read (No such file or directory). "
        f"Expected: the keys and types of the format. {TODO}"
    )
