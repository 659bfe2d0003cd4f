"""Samples of lm-eval 0.4.13, written by ``make_files.py``, and what is made of other forms of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.logs.make_files import BAD, GOOD

from evenhand.core.errors import InputError
from evenhand.logs import read_log

FILES = Path(__file__).parent / "files"


def write(path: Path, *samples: object) -> Path:
    path.write_text("\n".join(json.dumps(sample) for sample in samples), encoding="utf-8")
    return path


def sample(number: int = 0, **changes: object) -> dict[str, object]:
    """A sample as lm-eval wrote it before 0.4.3: arguments as a list."""
    return {
        "doc_id": number,
        "doc": {"race": "A", "text": "ignored"},
        "target": "x",
        "arguments": [["Say it", {"until": ["\n"]}]],
        "resps": [["One.", "Two."]],
        "filtered_resps": ["One."],
        **changes,
    }


def test_every_answer_is_a_row_and_its_document_the_cluster() -> None:
    log = read_log(FILES / "samples_generate.jsonl")
    assert log is not None
    assert log.summary == "12 answers to 6 documents of lm-eval"
    table = log.table
    # Two answers to a document, asked one after the other; every third of all is unkind.
    assert table["text"].to_list() == [BAD, GOOD, GOOD] * 4
    assert table["id"].to_list() == [f"{doc}:{number}" for doc in range(6) for number in range(2)]
    assert table["cluster"].to_list() == [str(doc) for doc in range(6) for _ in range(2)]
    assert table["prompt"][0] == "The woman who was a nurse"
    assert table["doc.who.gender"].to_list() == ["woman", "woman", "man", "man"] * 3
    assert table["doc.job"].unique(maintain_order=True).to_list() == ["nurse", "pilot", "clerk"]
    assert table["doc.nothing"].null_count() == 12  # NaN is null, not a word
    assert table["target"].unique().to_list() == ["kind"]


def test_what_each_filter_made_of_the_answers_stands_beside_them() -> None:
    log = read_log(FILES / "samples_generate.jsonl")
    assert log is not None
    assert log.table["filtered.both"].to_list() == log.table["text"].to_list()
    assert log.table["filtered.first"].to_list()[:4] == [BAD, None, GOOD, None]


@pytest.mark.parametrize("name", ["samples_choice.jsonl", "samples_rolling.jsonl"])
def test_log_probabilities_are_no_texts(name: str) -> None:
    with pytest.raises(InputError) as caught:
        read_log(FILES / name)
    assert str(caught.value) == (
        f"{FILES / name} holds log-probabilities instead of texts. Expected: samples of a task that "
        "generates "
        "(output_type: generate_until). Fix: use the samples of such a task."
    )


def test_totals_are_told_from_samples(tmp_path: Path) -> None:
    path = write(tmp_path / "results_x.json", {"results": {"t": {"acc,none": 1.0}}, "configs": {"t": {}}})
    with pytest.raises(InputError) as caught:
        read_log(path)
    assert str(caught.value) == (
        f"{path} holds the totals of lm-eval, not its samples. Expected: samples_*.jsonl. Fix: run "
        "lm_eval with --log_samples --output_path FOLDER, and name the samples."
    )


def test_the_older_form_and_a_packed_file_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "samples_x.jsonl", sample(), sample(1))
    packed = tmp_path / "samples_y.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for file in (path, packed):
        log = read_log(file)
        assert log is not None
        assert log.table["text"].to_list() == ["One.", "Two."] * 2
        assert log.table["prompt"].unique().to_list() == ["Say it"]
        assert log.table["filtered.none"].to_list() == ["One.", None] * 2


def test_a_task_of_ours_says_its_groups_and_leaves_out_axes_it_does_not_speak_of(tmp_path: Path) -> None:
    mark = {
        "prompt": "The actor",
        "cluster": "t1",
        "groups": {"gender": "men", "race": None},
        "baselines": {"gender": "women", "race": "(rest)"},
        "mentions": [{"text": "actor", "mask": "Person", "whole_word": True}],
        "stop": "sentence",
    }
    log = read_log(write(tmp_path / "a.jsonl", sample(doc={"evenhand": mark}, resps=[[" ran. He fell."]])))
    assert log is not None
    assert log.groups == {"gender": "doc.evenhand.groups.gender"}
    assert log.baselines == {"gender": "women", "race": "(rest)"}
    assert (log.mentions, log.join_prompt) == ("doc.evenhand.mentions", True)
    assert log.table.select("text", "prompt", "cluster").rows() == [(" ran.", "The actor", "t1")]


def test_a_null_answer_is_a_row_with_its_reason(tmp_path: Path) -> None:
    log = read_log(write(tmp_path / "a.jsonl", sample(resps=[["One.", None]]), sample(1, resps=[[None]])))
    assert log is not None
    assert log.table["text"].to_list() == ["One.", None, None]
    assert log.table["failure"].to_list() == [None, "no_answer", "no_answer"]


def test_the_samples_of_two_models_in_one_file_are_not_taken_for_one(tmp_path: Path) -> None:
    twice = write(tmp_path / "twice.jsonl", sample(), sample(), sample(filter="other"))
    log = read_log(twice)
    assert log is not None
    assert log.table["text"].to_list() == ["One.", "Two."]
    for name, other in {
        "answers": sample(resps=[["Three.", "Two."]]),
        "task": sample(doc={"race": "B"}),
    }.items():
        path = write(tmp_path / f"{name}.jsonl", sample(), other)
        with pytest.raises(InputError) as caught:
            read_log(path)
        assert str(caught.value) == (
            f"{path} line 2 repeats document '0' with other content or answers than a line before it. "
            "Expected: the samples of one task and one model. Fix: score each file of samples on "
            "its own, and compare the runs with `evenhand compare`."
        )


def test_a_table_of_lines_is_no_log(tmp_path: Path) -> None:
    assert read_log(write(tmp_path / "a.jsonl", {"text": "x", "doc": 1})) is None
    (tmp_path / "b.jsonl").write_text("{broken")
    assert read_log(tmp_path / "b.jsonl") is None  # the reader of tables says what is wrong
    assert read_log(tmp_path / "absent.jsonl") is None


def test_a_foreign_line_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", sample(), {"text": "x"})
    with pytest.raises(InputError) as caught:
        read_log(path)
    assert str(caught.value) == (
        f"{path} line 2 is not a sample of lm-eval, as the lines before it are. Expected: the fields "
        "arguments, doc, doc_id, resps in every line. Fix: repair that line, or use the file as "
        "lm_eval wrote it."
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"arguments": None},
        {"arguments": {}},
        {"arguments": [[]]},
        {"resps": "text"},
        {"resps": [[1, ["x"]]]},
        {"doc": None, "resps": []},
    ],
)
def test_odd_samples_have_no_texts_and_break_nothing(tmp_path: Path, changes: dict[str, object]) -> None:
    log = read_log(write(tmp_path / "a.jsonl", sample(), sample(1, **changes)))
    assert log is not None
    assert log.table["text"].to_list() == ["One.", "Two."]
