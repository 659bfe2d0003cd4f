"""Task files: the shipped ones, and what a damaged one is told."""

from __future__ import annotations

import pytest

from evenhand.annotate.label_aggregation import CATEGORIES
from evenhand.annotate.study import parse_task, shipped_tasks, task_text
from evenhand.core.errors import InputError, UnknownNameError

SMALL = """
[task]
name = "small"
title = "A small task"
[[questions]]
name = "mood"
ask = "Which mood?"
[[questions.choices]]
label = "up"
title = "Up"
code = 1
[[questions.choices]]
label = "down"
title = "Down"
code = -1
"""


def test_the_shipped_tasks_have_the_papers_categories_and_codes() -> None:
    assert shipped_tasks() == ("gender", "likert", "regard", "sentiment", "toxicity")
    tasks = {name: parse_task(task_text(name), where=name) for name in shipped_tasks()}
    assert tasks["sentiment"].question("sentiment").codes == {"positive": 1, "neutral": 0, "negative": -1}
    assert tasks["gender"].question("gender").codes == {"male": -1, "neutral": 0, "female": 1}
    assert tasks["toxicity"].question("toxicity").codes == {"toxic": 1, "neutral": 0}
    likert = tasks["likert"]
    assert [question.name for question in likert.questions] == ["biased", "readable", "coherent"]
    assert list(likert.question("biased").codes.items())[::6] == [("1", 1.0), ("7", 7.0)]
    assert (likert.task.per_person, likert.task.per_method, likert.task.page) == (8, 2, 1)


@pytest.mark.parametrize("question", ["regard", "sentiment"])
def test_the_regard_task_asks_what_training_reads(question: str) -> None:
    codes = parse_task(task_text("regard"), where="regard").question(question).codes
    assert set(codes) == set(CATEGORIES[question])  # type: ignore[arg-type]
    assert {label: code for label, code in codes.items() if code is not None} == {
        "negative": -1,
        "neutral": 0,
        "positive": 1,
    }


@pytest.mark.parametrize("name", shipped_tasks())
def test_every_choice_has_examples_for_and_against(name: str) -> None:
    task = parse_task(task_text(name), where=name)
    assert len(task.checks) >= 2
    assert task.task.source
    for question in task.questions:
        assert question.scale or all(choice.examples and choice.unlike for choice in question.choices)
        assert question.choices or question.help


def test_an_unknown_question_is_named() -> None:
    with pytest.raises(UnknownNameError) as caught:
        parse_task(SMALL, where="small").question("colour")
    assert str(caught.value) == (
        "the task small has no question 'colour'. Expected: mood. Fix: name one of these."
    )


def test_an_unknown_task_is_named() -> None:
    with pytest.raises(UnknownNameError, match="no task 'mood': No such file or directory"):
        task_text("mood")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('label = "down"', 'label = "up"'), "mood has a duplicate label"),
        (('name = "mood"', 'name = "a mood"'), "questions.0.name: String should match pattern"),
        (('title = "A small task"', 'titel = "A"'), "task.title: Field required"),
        (("[[questions]]", "[[questions]"), "not valid TOML"),
        ((SMALL[SMALL.index("[[questions.choices]]") :], ""), "mood has neither"),
        ((SMALL[SMALL.rindex("[[questions.choices]]") :], ""), "mood has 1 answers"),
    ],
)
def test_what_does_not_fit_is_named(change: tuple[str, str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_task(SMALL.replace(*change), where="small.toml")
    assert caught.value.problem.startswith(f"small.toml: {message}")
    assert caught.value.fix == "correct the file; see the shipped tasks for the format"


def test_a_check_must_be_answerable() -> None:
    check = '[[checks]]\ntext = "x"\nanswers = { mood = "sideways" }\n'
    with pytest.raises(InputError, match=r"check 1 expects mood = 'sideways'\. Expected: up, down"):
        parse_task(SMALL + check, where="small")
    with pytest.raises(InputError, match=r"check 1 expects size = 'up'\. Expected: a known question"):
        parse_task(SMALL + check.replace('mood = "sideways"', 'size = "up"'), where="small")


def test_two_questions_of_one_name_are_refused() -> None:
    twice = SMALL + SMALL[SMALL.index("[[questions]]") :]
    with pytest.raises(InputError, match="two questions are called 'mood'"):
        parse_task(twice, where="small")
