"""Answers to and from other tools: nothing is lost on the way, and no cell runs in a spreadsheet."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from evenhand.annotate.label_formats import FORMATS, prepare, write_labels
from evenhand.annotate.label_set import LabelSet, read_label_set
from evenhand.core.errors import InputError

ROWS = [
    # A text that is a formula, one with a comma, a quote, a line end and an accent.
    {"item_id": "1", "text": "=HYPERLINK(1)", "annotator": "a1", "question": "regard", "label": "positive"},
    {"item_id": "1", "text": "=HYPERLINK(1)", "annotator": "a2", "question": "regard", "label": "mixed"},
    {"item_id": "1", "text": "=HYPERLINK(1)", "annotator": "a1", "question": "biased", "label": "7"},
    {
        "item_id": "2",
        "text": 'Café, "two"\nlines',
        "annotator": "a1",
        "question": "regard",
        "label": "negative",
    },
    {"item_id": "2", "text": 'Café, "two"\nlines', "annotator": "a2", "question": "biased", "label": "1"},
]
KEYS = ["item_id", "text", "annotator", "question", "label", "code"]


@pytest.fixture
def collected(tmp_path: Path) -> LabelSet:
    path = tmp_path / "source.jsonl"
    path.write_text("\n".join(json.dumps({**row, "method": "gpt2"}) for row in ROWS))
    return read_label_set(path)


@pytest.mark.parametrize("kind", FORMATS)
def test_there_and_back(tmp_path: Path, collected: LabelSet, kind: str) -> None:
    path = tmp_path / f"out{FORMATS[kind][0]}"
    assert path in write_labels(collected, kind, path)
    again = read_label_set(path)
    order = KEYS[:4]
    assert again.rows.select(KEYS).sort(order).rows() == collected.rows.select(KEYS).sort(order).rows()
    assert set(again.rows["method"]) == {"gpt2"}
    assert {q.name: q.places for q in again.questions} == {q.name: q.places for q in collected.questions}


def test_label_studio_has_the_fields_of_its_tasks(tmp_path: Path, collected: LabelSet) -> None:
    tasks_path, config = write_labels(collected, "label-studio", tmp_path / "tasks.json")
    first = json.loads(tasks_path.read_text())[0]
    assert first["data"]["text"] == "=HYPERLINK(1)"
    results = first["annotations"][0]["result"]
    assert {result["type"] for result in results} == {"choices", "rating"}
    choice = next(result for result in results if result["type"] == "choices")
    assert (choice["from_name"], choice["to_name"], choice["value"]) == (
        "regard",
        "text",
        {"choices": ["positive"]},
    )
    assert next(r for r in results if r["type"] == "rating")["value"] == {"rating": 7}
    view = ElementTree.fromstring(config.read_text())
    assert [tag.get("value") for tag in view.iter("Choice")] == ["negative", "positive", "mixed"]


def test_label_studio_as_it_exports_itself(tmp_path: Path) -> None:
    """People are numbers or objects, skipped tasks and marked spans are no labels."""

    def annotation(by: object, label: str, **more: object) -> dict[str, object]:
        result = {"from_name": "tone", "to_name": "t", "type": "choices", "value": {"choices": [label]}}
        return {"completed_by": by, "result": [result], "was_cancelled": False, **more}

    span = {
        "from_name": "span",
        "to_name": "t",
        "type": "labels",
        "value": {"start": 0, "end": 2, "labels": ["X"]},
    }
    tasks = [
        {
            "id": 7,
            "data": {"text": "One"},
            "annotations": [
                annotation(1, "yes"),
                annotation({"id": 2, "email": "x@example.org"}, "no"),
                annotation(3, "yes", was_cancelled=True),
                {"completed_by": 4, "result": [span]},
            ],
        }
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    found = read_label_set(path).rows
    assert found.select("item_id", "annotator", "question", "label").rows() == [
        ("7", "1", "tone", "yes"),
        ("7", "2", "tone", "no"),
    ]


def test_argilla_has_the_fields_of_its_records(tmp_path: Path, collected: LabelSet) -> None:
    (path,) = write_labels(collected, "argilla", tmp_path / "records.json")
    first = json.loads(path.read_text())[0]
    assert set(first) == {"id", "fields", "metadata", "suggestions", "responses", "vectors"}
    answer = first["responses"]["regard"][0]
    assert answer["value"] == "positive"
    assert len(answer["user_id"]) == 36  # a UUID
    assert first["responses"]["biased"][0]["value"] == 7


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "has 0 objects with the keys list"),
        ('[{"a": 1}]', "has 1 objects with the keys a"),
        ("{", "cannot be read: Expecting"),
        ('[{"data": {"text": "x"}, "annotations": []}]', "has 1 texts and no label"),
    ],
)
def test_json_that_is_neither(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_label_set(path)


def test_an_unknown_format(collected: LabelSet) -> None:
    expected = r"^--format 'xlsx'\. Expected: jsonl, csv, label-studio, argilla\. Fix: use one of these"
    with pytest.raises(InputError, match=expected):
        prepare(collected.source, format="xlsx")


def test_the_csv_shows_formulas_and_does_not_run_them(tmp_path: Path, collected: LabelSet) -> None:
    (path,) = write_labels(collected, "csv", tmp_path / "x.csv")
    assert "'=HYPERLINK(1)" in path.read_text()
    raw = pl.read_csv(path, infer_schema=False)
    assert not any(str(cell).startswith("=") for column in raw for cell in column)
