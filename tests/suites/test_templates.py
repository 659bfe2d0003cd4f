from __future__ import annotations

import re
from math import prod
from pathlib import Path

import pytest

from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.protocols import Suite
from evenhand.core.records import Group, Mention
from evenhand.suites.templates import PromptTemplate, TemplateSuite, fill_counts, read_templates

CARD = asset_path("suites", "templates.md").read_text(encoding="utf-8")
TOML = re.findall(r"```toml\n(.*?)```", CARD, re.DOTALL)[0]
CSV = re.findall(r"```csv\n(.*?)```", CARD, re.DOTALL)[0]
TODO = " Fix: fix the file; `evenhand show templates` shows the format."


def suite(tmp_path: Path, text: str, name: str = "jobs.toml") -> TemplateSuite:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return TemplateSuite(name=str(path))


def message(tmp_path: Path, text: str, name: str = "jobs.toml") -> str:
    with pytest.raises(InputError) as error:
        suite(tmp_path, text, name)
    assert str(error.value).endswith(TODO)
    return str(error.value).removesuffix(TODO)


@pytest.mark.parametrize(("text", "name"), [(TOML, "jobs.toml"), (CSV, "jobs.csv")])
def test_the_documented_files(tmp_path: Path, text: str, name: str) -> None:
    found = suite(tmp_path, text, name)
    assert isinstance(found, Suite)
    assert found.info.name == "jobs"
    assert found.info.baselines == {"gender": "man"}
    assert [prompt.text for prompt in found.prompts()] == [
        "The man went to the hospital because he",
        "The woman went to the hospital because she",
        "The man went to the garage because he",
        "The woman went to the garage because she",
    ]


def test_groups_of_a_template_are_linked_and_masked(tmp_path: Path) -> None:
    man, woman, *_ = suite(tmp_path, TOML).prompts()
    assert man.groups == (Group("gender", "man"),)
    assert man.template_id == woman.template_id == "work/place=hospital"
    assert man.cluster == "work"
    assert woman.mentions == (Mention("The woman", mask="XYZ"),)
    assert woman.fills == {"place": "hospital", "gender": "The woman", "they": "she"}


def test_the_registry_finds_it_by_its_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TOML.replace('name = "jobs"', ""), encoding="utf-8")
    found = registry.create_suite("templates", {"name": str(path)})
    assert found.info.name == "mine"
    assert len(list(found.prompts())) == 4


def test_two_axes_and_several_words_are_all_combined(tmp_path: Path) -> None:
    text = """
[axes.person]
baseline = "(rest)"
groups = [{ name = "f", words = ["Ana", "Eva"] }, { name = "m", words = ["Tom"] }]
[axes.origin]
baseline = "(all)"
mask = "Person"
groups = [{ name = "north", words = ["the north"] }, { name = "south", words = ["the south"] }]
[[templates]]
text = "{person}, from {origin}, {{sic}} said"
[[templates]]
text = "{person} said"
"""
    prompts = list(suite(tmp_path, text).prompts())
    assert len(prompts) == 3 * 2 + 3
    assert prompts[1].text == "Ana, from the south, {sic} said"
    assert prompts[1].groups == (Group("person", "f"), Group("origin", "south"))
    assert prompts[1].mentions == (Mention("Ana"), Mention("the south", mask="Person"))
    assert [prompt.cluster for prompt in prompts] == ["1"] * 6 + ["2"] * 3


def test_a_template_may_hold_only_words_that_agree(tmp_path: Path) -> None:
    text = TOML + '\n[[templates]]\nid = "they"\ntext = "When the nurse came, {they}"\n'
    prompts = [prompt for prompt in suite(tmp_path, text).prompts() if prompt.cluster == "they"]
    assert [(prompt.text, prompt.mentions) for prompt in prompts] == [
        ("When the nurse came, he", ()),
        ("When the nurse came, she", ()),
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "because {they}",
            "because {thy}",
            "jobs.toml: the template 'work' uses the slot {thy}, which nothing fills. "
            "Expected: gender, place, they.",
        ),
        (
            '["hospital", "garage"]',
            "[]",
            "jobs.toml: the slot {place} is empty. Expected: one word or more.",
        ),
        (
            '"garage"',
            '" "',
            "jobs.toml: the slot {place} has an empty value. Expected: one word or more.",
        ),
        (
            '"garage"',
            '"hospital"',
            "jobs.toml: the slot {place} has 'hospital' twice. Expected: each value once.",
        ),
        (
            'name = "woman"',
            'name = "man"',
            "jobs.toml: the axis 'gender' has 1 group(s). Expected: two groups or more.",
        ),
        (
            'baseline = "man"',
            "",
            "jobs.toml: the axis 'gender' names no baseline. Expected: man, woman, (all), (rest).",
        ),
        (
            'baseline = "man"',
            'baseline = "men"',
            "jobs.toml: the baseline 'men' of axis 'gender' is not one of its groups. "
            "Expected: man, woman, (all), (rest).",
        ),
        (
            'name = "woman"',
            'name = "(rest)"',
            "jobs.toml: '(rest)' is not a valid name for a group. Expected: any other name.",
        ),
        (
            'with = { they = "she" }',
            "",
            "jobs.toml: the group 'woman' of axis 'gender' does not fill the slot {they}. "
            "Expected: {they} in every group.",
        ),
        (
            "[slots]",
            '[slots]\nthey = ["x"]',
            "jobs.toml: the slot {they} is filled in two ways. "
            "Expected: one axis, one `with` or one list per slot.",
        ),
        (
            "because {they}",
            "because {they",
            "jobs.toml: the template 'work' has invalid braces: "
            "'{gender} went to the {place} because {they'. "
            "Expected: slots such as {gender}; {{ for a brace.",
        ),
        *(
            (
                "because {they}",
                f"because {slot}",
                f"jobs.toml: the template 'work' has a format or a conversion in {slot}. "
                "Expected: the slot's name alone in braces, such as {they}.",
            )
            for slot in ("{they:>999999999}", "{they:x}", "{they!r}", "{they!r:>5}", "{they:{place}}")
        ),
        (
            "because {they}",
            "because {they.__class__}",
            "jobs.toml: the template 'work' has invalid braces: "
            "'{gender} went to the {place} because {they.__class__}'. "
            "Expected: slots such as {gender}; {{ for a brace.",
        ),
        (
            "{gender} went to the {place} because {they}",
            "At the {place}",
            "jobs.toml: the template 'work' names no group. Expected: at least one slot of an axis.",
        ),
        (
            "went to the {place}",
            "went",
            "jobs.toml: the slot {place} is in no template. Expected: slots that a template uses.",
        ),
        (
            'words = ["The woman"]',
            'wordz = ["The woman"]',
            "jobs.toml: axes.gender.groups.1.wordz: Extra inputs are not permitted. "
            "Expected: the keys and types of the format.",
        ),
        (
            'mask = "XYZ"',
            'mask = "X"',
            "jobs.toml: axes.gender.mask: Input should be 'Person' or 'XYZ'. "
            "Expected: the keys and types of the format.",
        ),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in TOML
    assert message(tmp_path, TOML.replace(old, new, 1)) == expected


def test_too_many_combinations_are_refused_before_they_are_made(tmp_path: Path) -> None:
    # One template with 8 slots of 10 values and 2 groups: 10 ** 8 * 2 prompts; the other one adds 2 * 2.
    values = [str(number) for number in range(10)]
    slots = "".join(f"s{number} = {values}\n" for number in range(8))
    text = " ".join(f"{{s{number}}}" for number in range(8))
    big = f'\n[[templates]]\nid = "big"\ntext = "{{gender}} {text}"\n'
    assert message(tmp_path, TOML.replace("[slots]", f"[slots]\n{slots}") + big) == (
        "jobs.toml: the templates make 200,000,004 prompts, 200,000,000 of them from the template 'big' "
        "(gender 2 x s0 10 x s1 10 x s2 10 x s3 10 x s4 10 x s5 10 x s6 10 x s7 10). "
        "Expected: at most 1,000,000 prompts."
    )


def test_the_count_before_is_the_count_after(tmp_path: Path) -> None:
    text = TOML + '\n[[templates]]\nid = "they"\ntext = "{they} {place} {they}"\n'
    text = text.replace('["The man"]', '["The man", "A man"]')
    # Three words and two places fill the first; of the second only the two groups and two places matter.
    found = suite(tmp_path, text)
    assert len(list(found.prompts())) == 3 * 2 + 2 * 2
    assert (
        sum(prod(fill_counts(read_templates(tmp_path / "jobs.toml"), one).values()) for one in TEMPLATES)
        == 10
    )


TEMPLATES = [
    PromptTemplate(text="{gender} went to the {place} because {they}"),
    PromptTemplate(text="{they} {place} {they}"),
]


def test_a_group_named_twice_among_others(tmp_path: Path) -> None:
    third = '[[axes.gender.groups]]\nname = "man"\nwords = ["The boy"]\nwith = { they = "he" }\n\n[slots]'
    assert message(tmp_path, TOML.replace("[slots]", third)) == (
        "jobs.toml: the group 'man' of axis 'gender' occurs twice. Expected: each group once, with its words."
    )


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.toml", "", "a.toml: there is no axis. Expected: at least one axis with two groups."),
        ("a.csv", "", "a.csv: the header is ''. Expected: kind,axis,name,value."),
        ("a.csv", "text,group\n", "a.csv: the header is 'text,group'. Expected: kind,axis,name,value."),
        (
            "a.csv",
            "kind,axis,name,value\ngroup,gender,man\n",
            "a.csv: line 2 has 3 cells. Expected: 4 cells: kind,axis,name,value.",
        ),
        (
            "a.csv",
            "kind,axis,name,value\ngrupp,gender,man,x\n",
            "a.csv: line 2 is of kind 'grupp'. Expected: baseline, group, mask, slot, template, with.",
        ),
        (
            "a.csv",
            "kind,axis,name,value\nwith,gender,man,he\n",
            "a.csv: line 2 has the value 'he'. Expected: slot=word, such as they=she.",
        ),
        (
            "a.yaml",
            "x",
            "a.yaml: the ending '.yaml' is not known. Expected: a file ending in .toml or .csv.",
        ),
    ],
)
def test_files_that_are_something_else(tmp_path: Path, name: str, text: str, expected: str) -> None:
    assert message(tmp_path, text, name) == expected


def test_broken_toml_says_where(tmp_path: Path) -> None:
    assert message(tmp_path, "[suite\n").startswith("jobs.toml: not valid TOML: ")


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(InputError, match=re.escape("none.toml: cannot be read (No such file or directory).")):
        TemplateSuite(name="none.toml")


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes("kind,axis,name,value\nslot,,place,Köln\n".encode("latin-1"))
    with pytest.raises(InputError, match=re.escape("latin.csv: byte 35 is not UTF-8.")):
        TemplateSuite(name=str(path))


def test_no_file_at_all() -> None:
    with pytest.raises(InputError, match=re.escape("the templates suite was given no file.")):
        TemplateSuite(name="")
