from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.records import Completion, GenerationSpec, Request
from evenhand.models.replay import ReplayModel

ROWS = [
    {"prompt": "The man", "text": "The man sang.", "pid": "a"},
    {"prompt": "The woman", "text": " danced.", "pid": "b"},
    {"prompt": "The man", "text": " left. He came back.", "pid": "a"},
    {"prompt": "The man", "text": None, "pid": "a"},
]
SPEC = GenerationSpec()


@pytest.fixture(params=["jsonl", "csv", "tsv", "parquet"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"texts.{request.param}"
    table = pl.DataFrame(ROWS)
    if request.param == "jsonl":
        path.write_text("\n".join(json.dumps(row) for row in ROWS))
    elif request.param == "parquet":
        table.write_parquet(path)
    else:
        table.write_csv(path, separator="," if request.param == "csv" else "\t")
    return path


def test_samples_are_the_texts_of_the_prompt_in_order(file: Path) -> None:
    requests = [
        Request("x", "The man", (0, 1, 2, 3)),
        Request("y", "The woman", (0,)),
        Request("z", "They", (0,)),
    ]
    assert list(ReplayModel(str(file)).generate(requests, SPEC)) == [
        Completion("x", 0, " sang.", "replayed"),
        Completion("x", 1, " left. He came back.", "replayed"),
        Completion("x", 2, None, None, failure="null_text"),
        Completion("x", 3, None, None, failure="not_in_file"),
        Completion("y", 0, " danced.", "replayed"),
        Completion("z", 0, None, None, failure="not_in_file"),
    ]


def test_ids_may_find_the_texts(file: Path) -> None:
    done = list(ReplayModel(str(file), id="pid").generate([Request("b", "Another prompt", (0,))], SPEC))
    assert done == [Completion("b", 0, " danced.", "replayed")]


def test_the_reference_follows_the_file(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text(json.dumps(ROWS[0]))
    first = registry.model(f"replay:{path}").ref
    path.write_text(json.dumps(ROWS[1]))
    second = registry.model(f"replay:{path}").ref
    assert (first.backend, first.name, first.repeatable) == ("replay", str(path), True)
    assert first.revision != second.revision


@pytest.mark.parametrize(
    ("options", "came", "setting"),
    [
        ({"text": "texte"}, "'texte' for the texts", "text"),
        ({"prompt": "question"}, "'question' for the prompts", "prompt"),
        ({"id": "key"}, "'key' for the ids", "id"),
    ],
)
def test_a_missing_column_is_named(file: Path, options: dict[str, str], came: str, setting: str) -> None:
    with pytest.raises(InputError) as caught:
        ReplayModel(str(file), **options)
    assert str(caught.value) == (
        f"{file} has no column {came}. Accepted: prompt, text, pid. What to do: name one of these columns in "
        f'evenhand.toml: [model] options = {{ {setting} = "COLUMN" }}.'
    )


def test_a_missing_file() -> None:
    with pytest.raises(InputError, match=r"^nowhere\.jsonl is not there\."):
        ReplayModel("nowhere.jsonl")
