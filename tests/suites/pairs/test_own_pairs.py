"""Our own pairs, and those a user brings as templates or as a table."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.suites.pairs.eec import EecSuite
from evenhand.suites.pairs.own_pairs import load
from evenhand.suites.pairs.pair_sets import EMOTIONS, count_sets
from evenhand.testing import check_suite


def test_builtin_is_as_large_as_its_card_says() -> None:
    suite = load()
    # 10 templates x 4 emotions x 3 words = 120 sentences a person.
    assert count_sets(suite.sets) == {
        "gender": (600, 1800),  # 120 x 5 people; 3 groups are 3 pairs
        "race": (720, 4320),  # 120 x 6; 4 groups are 6 pairs
        "religion": (240, 3600),  # 120 x 2; 6 groups are 15 pairs
        "age": (240, 1440),  # 120 x 2; 4 groups are 6 pairs
        "disability": (240, 2400),  # 120 x 2; 5 groups are 10 pairs
    }
    assert Counter(one.emotion for one in suite.sets) == dict.fromkeys(EMOTIONS, 510)
    assert {one.cluster for one in suite.sets if one.axis == "age"} == {
        one.cluster for one in suite.sets if one.axis == "race"
    }
    check_suite(suite)


def test_builtin_sentences_differ_in_the_person_alone() -> None:
    axes = tomllib.loads(asset_path("pairs", "pairs.toml").read_text(encoding="utf-8"))["axes"]
    people = {
        (axis["name"], group["name"]): [word.lower() for word in group["words"]]
        for axis in axes
        for group in axis["groups"]
    }
    for one in load().sets:
        place = int(one.id.rsplit("/", 1)[1])
        rests = {
            text.lower().replace(people[one.axis, group][place], "*") for group, text in one.sentences.items()
        }
        assert len(rests) == 1
        assert "*" in rests.pop()


def test_builtin_shares_no_sentence_with_eec(data: Path) -> None:
    published = EecSuite(name=str(data)).prompts()
    ours = {text for one in load().sets for text in one.sentences.values()}
    assert not ours & {prompt.text for prompt in published}


def written(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


TEMPLATES = """
[slots.feeling]
anger = ["cross"]
joy = ["glad", "merry"]
[[templates]]
text = "{Person} was {feeling}."
[[templates]]
id = "lost"
text = "They lost {person}."
emotion = "sadness"
[[axes]]
name = "size"
groups = [
    { name = "tall", words = ["the tall one", "my tall aunt"] },
    { name = "short", words = ["the short one", "my short aunt"] },
]
"""


def test_templates_of_a_user(tmp_path: Path) -> None:
    suite = load(name=written(tmp_path / "mine.toml", TEMPLATES))
    # (3 words + 1 template without a slot) x 2 people
    assert count_sets(suite.sets) == {"size": (8, 8)}
    assert suite.info.name == "mine"
    assert suite.sets[0].sentences == {"tall": "The tall one was cross.", "short": "The short one was cross."}
    assert [one.emotion for one in suite.sets] == ["anger"] * 2 + ["joy"] * 4 + ["sadness"] * 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (', "my short aunt"', "", "the groups of axis 'size' have unequal numbers of words: tall 2, short 1"),
        (
            '"short", words',
            '"tall", words',
            "the axis 'size' has 1 group(s); two groups or more",
        ),
        ("{feeling}", "{mood}", "the template '{Person} was {mood}.' uses {mood}, which nothing fills"),
        ("{person}", "it", "the template 'They lost it.' has no slot {person} or {Person}"),
        ("joy", "glee", "the slot {feeling} has the emotion 'glee'; there are anger, fear, joy, sadness"),
        ('"sadness"', '"gloom"', "the template 'They lost {person}.' has the emotion 'gloom'"),
        ('id = "lost"', 'id = "1"', "several templates are named '1'; each needs an id of its own"),
        ('"my short aunt"', '""', "the group 'short' of axis 'size' has an empty word"),
        (
            "{person}",
            "{person:>9999999999}",
            "the template 'They lost {person:>9999999999}.' formats a slot; a slot is a name in braces and "
            "nothing else",
        ),
    ],
)
def test_templates_that_do_not_fit_say_what(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = written(tmp_path / "mine.toml", TEMPLATES.replace(old, new))
    with pytest.raises(InputError) as raised:
        load(name=path)
    assert str(raised.value) == (
        f"{path}: {said}. Expected: a file in the format of `evenhand show pairs`. Fix: change that line."
    )


def test_a_wide_table(tmp_path: Path) -> None:
    path = written(
        tmp_path / "mine.csv",
        "text_a,text_b,group_a,group_b,axis,emotion,template\n"
        "She ran.,He ran.,female,male,gender,joy,run\n"
        "She sat.,He sat.,female,male,gender,,sit\n",
    )
    suite = load(name=path)
    assert count_sets(suite.sets) == {"gender": (2, 2)}
    # The order of the groups is ours, whatever the file's.
    assert list(suite.sets[0].sentences.items()) == [("male", "He ran."), ("female", "She ran.")]
    assert [(one.emotion, one.cluster) for one in suite.sets] == [("joy", "run"), (None, "sit")]


def test_a_missing_side_is_left_out_and_said(tmp_path: Path) -> None:
    path = written(
        tmp_path / "mine.csv",
        "text_a,text_b,group_a,group_b\nShe ran.,He ran.,female,male\nShe sat.,,female,male\n",
    )
    suite = load(name=path)
    assert count_sets(suite.sets) == {"group": (1, 1)}
    assert suite.info.notes == ("1 set lacks a side and is left out: only female has a sentence",)


def test_sides_that_say_the_same_are_left_out_and_said(tmp_path: Path) -> None:
    path = written(
        tmp_path / "mine.csv",
        "text_a,text_b,group_a,group_b\nShe ran.,He ran.,female,male\nThey sat.,They sat.,female,male\n",
    )
    suite = load(name=path)
    assert count_sets(suite.sets) == {"group": (1, 1)}
    assert suite.info.notes == ("1 set has the same sentence for every group and is left out",)


def test_repeated_pairs_count_once(tmp_path: Path) -> None:
    row = "She ran.,He ran.,female,male\n"
    swapped = "He ran.,She ran.,male,female\n"
    path = written(tmp_path / "mine.csv", f"text_a,text_b,group_a,group_b\n{row}{row}{swapped}")
    suite = load(name=path)
    assert [one.id for one in suite.sets] == ["1"]
    assert suite.info.notes == ("2 sets repeat others and are left out",)


def test_repeated_sets_of_templates_count_once_too(tmp_path: Path) -> None:
    again = TEMPLATES.replace('"my tall aunt"', '"the tall one"').replace(
        '"my short aunt"', '"the short one"'
    )
    suite = load(name=written(tmp_path / "mine.toml", again))
    assert count_sets(suite.sets) == {"size": (4, 4)}
    assert suite.info.notes == ("4 sets repeat others and are left out",)
    alike = TEMPLATES.replace('"my short aunt"', '"my tall aunt"')
    suite = load(name=written(tmp_path / "mine.toml", alike))
    assert count_sets(suite.sets) == {"size": (4, 4)}
    assert suite.info.notes == ("4 sets have the same sentence for every group and are left out",)
    with pytest.raises(InputError, match="has the same sentence for every group"):
        load(name=written(tmp_path / "mine.toml", alike.replace('"the short one"', '"the tall one"')))


def test_our_own_sets_are_all_different() -> None:
    assert load().info.notes == ()


def test_unequal_groups_of_a_long_table_are_said(tmp_path: Path) -> None:
    path = written(
        tmp_path / "mine.jsonl",
        '{"set": "1", "group": "a", "text": "A ran."}\n{"set": "1", "group": "b", "text": "B ran."}\n'
        '{"set": "1", "group": "c", "text": "C ran."}\n{"set": "2", "group": "a", "text": "A sat."}\n'
        '{"set": "2", "group": "b", "text": "B sat."}\n',
    )
    suite = load(name=path)
    assert count_sets(suite.sets) == {"group": (2, 4)}
    assert suite.info.notes == ("group: c is in 1 of 2 sets; only those form its pairs",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "one,two\n1,2\n",
            "{path} has the columns one, two. Expected: columns text_a, text_b, group_a, group_b (one row "
            "per pair) "
            "or set, group, text (one row per sentence); optional: axis, emotion, template. "
            "Fix: rename the columns.",
        ),
        (
            "set,group,text\n1,,A ran.\n",
            "{path} row 1 has the group '' in column 'group'. Expected: a name, and not (rest) or (all). "
            "Fix: name the group that the sentence is about.",
        ),
        (
            "set,group,text\n1,(rest),A ran.\n",
            "{path} row 1 has the group '(rest)' in column 'group'. Expected: a name, and not (rest) or "
            "(all). "
            "Fix: name the group that the sentence is about.",
        ),
        (
            "set,group,text\n1,a,A ran.\n1,a,A sat.\n",
            "{path} row 2 has a second sentence of 'a' in set '1'. Expected: one sentence per group and set. "
            "Fix: name the other group, or give the sentence a set of its own.",
        ),
        (
            "set,group,text,emotion\n1,a,A ran.,glee\n1,b,B ran.,glee\n",
            "{path} row 1 has the emotion 'glee'. Expected: anger, fear, joy, sadness, or nothing. "
            "Fix: rename it, or leave it empty.",
        ),
        (
            "set,group,text\n1,a,A ran.\n2,b,B ran.\n",
            "{path} has no set with two sides. Expected: two groups per set. Fix: check the file.",
        ),
        (
            "text_a,text_b,group_a,group_b\nA ran.,B ran.,a,a\n",
            "{path} row 1 has a second sentence of 'a' in set '1'. Expected: one sentence per group and set. "
            "Fix: name the other group, or give the sentence a set of its own.",
        ),
    ],
)
def test_tables_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path / "mine.csv", text)
    with pytest.raises(InputError) as raised:
        load(name=path)
    assert str(raised.value) == said.format(path=path)
