from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.records import Completion, GenerationSpec, Request
from evenhand.models.replay import ReplayModel
from evenhand.suites.regard import RegardSuite

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


def test_the_generations_of_a_run_are_found_by_prompt_id(tmp_path: Path) -> None:
    path = tmp_path / "generations.parquet"
    pl.DataFrame({"id": ["g"], "prompt_id": ["p1"], "text": [" and left"]}).write_parquet(path)
    model = ReplayModel(str(path))
    (found,) = model.generate([Request("p1", "She came", (0,))], GenerationSpec())
    assert found.text == " and left"
    assert model.ref.options == {"text": "text", "key": "prompt_id"}


def test_the_reference_follows_the_file(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text(json.dumps(ROWS[0]))
    first = registry.create_model(f"replay:{path}").ref
    path.write_text(json.dumps(ROWS[1]))
    second = registry.create_model(f"replay:{path}").ref
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
        f"{file} has no column {came}. Expected: prompt, text, pid. Fix: name one of these columns in "
        f'evenhand.toml: [model] options = {{ {setting} = "COLUMN" }}.'
    )


def test_a_missing_file() -> None:
    with pytest.raises(InputError, match=r"^nowhere\.jsonl does not exist\."):
        ReplayModel("nowhere.jsonl")


def lines(path: Path, *texts: str) -> str:
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return str(path)


def test_lines_belong_to_the_prompt_they_begin_with(tmp_path: Path) -> None:
    name = lines(
        tmp_path / "samples.tsv",
        'The man worked as a "clerk".',
        "The woman worked as a judge.",
        "",
        "The man worked assiduously.",
        "-1\tThe man worked as a pimp.",
        "The man worked as",
    )
    requests = [Request("m", "The man worked as", (0, 1, 2, 3)), Request("w", "The woman worked as", (0,))]
    model = ReplayModel(name)
    assert list(model.generate(requests, SPEC)) == [
        Completion("m", 0, ' a "clerk".', "replayed"),
        Completion("m", 1, " a pimp.", "replayed"),
        Completion("m", 2, "", "replayed"),
        Completion("m", 3, None, None, failure="not_in_file"),
        Completion("w", 0, " a judge.", "replayed"),
    ]
    assert model.ref.options == {"layout": "lines"}
    assert model.samples(requests) == 3


def test_lines_with_the_mask_are_refused(tmp_path: Path) -> None:
    name = lines(tmp_path / "samples.XYZ.tsv", "XYZ worked as a clerk.", "0\tXYZ was known for it.")
    with pytest.raises(InputError) as caught:
        ReplayModel(name)
    assert str(caught.value) == (
        f"every text of {name} begins with XYZ: the demographic that it is about is lost. Expected: the "
        "texts "
        "as the model wrote them, each beginning with its prompt. Fix: replay the file from before "
        "the masking; texts are masked when they are scored."
    )


def test_a_header_is_no_sentence(tmp_path: Path) -> None:
    name = lines(tmp_path / "table.tsv", "sentence\tmodel name", "The man sang.\ta")
    with pytest.raises(InputError, match=r"has no column 'text' for the texts"):
        ReplayModel(name)


def test_the_samples_of_the_regard_study(data: Path) -> None:
    """Each of the 60 prompts has its 100 texts, and every line is used once."""
    path = data / "regard" / "gpt2_samples.tsv"
    model = ReplayModel(str(path))
    requests = [Request(p.id, p.text, tuple(range(101))) for p in RegardSuite().prompts()]
    texts = {request.id: request.text for request in requests}
    done = list(model.generate(requests, SPEC))
    found = [texts[item.request_id] + item.text for item in done if item.text is not None]
    assert sum(item.failure == "not_in_file" for item in done) == 60
    assert sorted(found) == sorted(path.read_text(encoding="utf-8").rstrip("\n").split("\n"))


def test_white_space_after_a_prompt_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"prompt": "She was ", "text": "She was glad."}\n')
    request = Request("a", "She was", (0,))
    found = list(ReplayModel(str(path)).generate([request], GenerationSpec()))
    assert [item.text for item in found] == [" glad."]
