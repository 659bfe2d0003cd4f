"""Logs of Inspect, written by ``make_files.py`` with an older and a newer version, and damaged ones."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from tests.logs.make_files import BAD, GOOD, JOBS, PEOPLE

from evenhand.core.errors import InputError
from evenhand.logs import read_log
from evenhand.logs.log_records import ToolLog

FILES = Path(__file__).parent / "files"
WHOLE = ("inspect-0.3.69.eval", "inspect-0.3.285.eval")
HALF = ("inspect.json", "inspect-parts.eval")
ASKED = [(who, job) for job in JOBS for who in PEOPLE]


def read(path: Path) -> ToolLog:
    log = read_log(path)
    assert log is not None
    return log


def write(path: Path, *, version: int = 2, status: str = "success", **members: object) -> Path:
    """A small log of our own."""
    header = {"version": version, "status": status, "eval": {"task": "t"}}
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", json.dumps(header))
        for name, content in members.items():
            file.writestr(
                f"samples/{name}.json", content if isinstance(content, str) else json.dumps(content)
            )
    return path


def sample(text: object = "Fine.", **changes: object) -> dict[str, object]:
    choice = {"message": {"role": "assistant", "content": text}, "stop_reason": "stop"}
    return {"id": 1, "epoch": 1, "input": "Say it", "target": "", "output": {"choices": [choice]}, **changes}


def need_zstd(name: str) -> None:
    if name.endswith(".eval"):
        pytest.importorskip("zstandard", reason="needs the extra corpus")


@pytest.mark.parametrize("name", WHOLE)
def test_every_answer_is_a_row_and_epochs_of_a_sample_are_one_cluster(name: str) -> None:
    need_zstd(name)
    log = read(FILES / name)
    assert (log.summary, log.warnings) == ("12 answers to 6 samples of the Inspect task jobs", ())
    table = log.table
    # Numbers 0, 3, 6, 9 of 12 are unkind, 5 was refused, and 4 is eight times as long.
    assert Counter(table["text"].to_list()) == {BAD: 4, GOOD: 6, GOOD * 8: 1, None: 1}
    assert Counter(table["failure"].to_list()) == {None: 11, "content_filter": 1}
    samples = [f"{job}-{who}" for job in JOBS for who in PEOPLE]
    assert Counter(table["cluster"].to_list()) == dict.fromkeys(samples, 2)
    assert sorted(table["id"]) == sorted(f"{one}:{epoch}" for one in samples for epoch in (1, 2))
    # The input of a pilot's sample is a list of messages.
    assert Counter(table["prompt"].to_list())["The man who was a pilot"] == 2
    assert Counter(table["metadata.who.gender"].to_list()) == {"woman": 6, "man": 6}
    assert table["model"].unique().to_list() == ["mockllm/model"]


@pytest.mark.parametrize("name", HALF)
def test_the_other_forms_hold_the_same(name: str) -> None:
    need_zstd(name)
    table = read(FILES / name).table
    assert Counter(table["text"].to_list()) == {BAD: 2, GOOD: 2, GOOD * 8: 1, None: 1}
    assert Counter(table["failure"].to_list()) == {None: 5, "content_filter": 1}
    assert Counter(table["metadata.job"].to_list()) == {"nurse": 4, "pilot": 2}
    assert set(table["prompt"]) == {f"The {who} who was a {job}" for who, job in ASKED[:3]}


def test_both_packings_are_there() -> None:
    first, second = (zipfile.ZipFile(FILES / name).infolist()[-1].compress_type for name in WHOLE)
    assert (first, second) == (zipfile.ZIP_DEFLATED, 93)


def test_a_failed_evaluation_is_read_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    header = {"version": 2, "status": "error", "eval": {"task": "t"}, "results": {"total_samples": 9}}
    failed = sample(error={"message": "broken"}, id=2)
    content = {**header, "error": {"message": "a host is down\nand more"}, "samples": [sample(), failed]}
    path.write_text(json.dumps(content))
    log = read(path)
    assert log.table["failure"].to_list() == [None, "sample_error"]
    assert log.table["text"].to_list() == ["Fine.", None]
    assert log.warnings == (
        "the evaluation is not complete (status error: a host is down): it has 2 of 9 samples",
    )


def test_the_last_writing_of_a_member_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "a.eval", one=sample("Old."))
    with zipfile.ZipFile(path, "a") as file, pytest.warns(UserWarning, match="Duplicate name"):
        file.writestr("samples/one.json", json.dumps(sample("New.")))
    assert read(path).table["text"].to_list() == ["New."]


def test_a_log_that_is_still_written_has_no_header_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("_journal/start.json", json.dumps({"version": 2, "eval": {"task": "t"}}))
        file.writestr("samples/1_epoch_1.json", json.dumps(sample()))
    assert read(path).warnings == ("the evaluation is not complete (status started): it has 1 samples",)


@pytest.mark.parametrize(
    ("content", "text", "failure"),
    [
        ([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "So."}], "So.", None),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb", None),
        ([{"type": "image", "image": "x"}], None, None),
        ("attachment://abc", "Long.", None),
        ("attachment://gone", "attachment://gone", None),
        (None, None, None),
    ],
)
def test_the_text_of_a_message(
    tmp_path: Path, content: object, text: str | None, failure: str | None
) -> None:
    path = write(tmp_path / "a.eval", one=sample(content, attachments={"abc": "Long."}))
    assert read(path).table.select("text", "failure").row(0) == (text, failure)


def test_attachments_of_a_large_sample_are_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    members: dict[str, object] = {
        "header.json": {"version": 2, "status": "success", "eval": {"task": "t"}},
        "samples/one/sample.json": sample("attachment://2"),
        "samples/one/attachments/2.json": ["Third."],
        "samples/one/attachments/0.json": ["First.", "Second."],
        # Named like parts of it, and none.
        **{name: ["Not mine."] for name in ("7", "7.json", "samples/two/attachments/0.json")},
        **{f"samples/one/attachments/{n}.json": ["No."] for n in ("\u0663", "x", "9" * 30)},
        "samples/one/attachments/007.json": ["Fourth."],
    }
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, json.dumps(content))
    assert read(path).table["text"].to_list() == ["Third."]


def test_several_choices_are_several_texts_and_none_is_a_failure(tmp_path: Path) -> None:
    two = sample()
    two["output"] = {"choices": [{"message": {"content": "A."}}, {"message": {"content": "B."}}]}
    none = sample(output={}, id=2)
    table = read(write(tmp_path / "a.eval", one=two, two=none)).table
    assert table["text"].to_list() == ["A.", "B.", None]
    assert table["id"].to_list() == ["1:1", "1:1:1", "2:1"]
    assert table["failure"].to_list() == [None, None, "no_answer"]


def message(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_log(path)
    return str(caught.value).replace(str(path), "FILE")


def test_another_version_is_refused(tmp_path: Path) -> None:
    assert message(write(tmp_path / "a.eval", version=3, one=sample())) == (
        "FILE is an Inspect log of format version 3. Expected: format version 2. Fix: "
        "`inspect log convert` rewrites older logs; for newer ones update evenhand."
    )


def test_a_log_without_samples_is_refused(tmp_path: Path) -> None:
    assert message(write(tmp_path / "a.eval", status="cancelled")) == (
        "FILE has no samples (status cancelled). Expected: a log with samples. Fix: run "
        "the evaluation to completion, without --no-log-samples."
    )


def test_files_that_are_no_logs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.eval").write_bytes(b"PK not a zip")
    assert message(tmp_path / "a.eval") == (
        "FILE cannot be read: File is not a zip file. Expected: a complete zip file. Fix: download "
        "the file again."
    )
    with zipfile.ZipFile(tmp_path / "b.eval", "w") as file:
        file.writestr("x.txt", "x")
    assert message(tmp_path / "b.eval").startswith("FILE has no log header. Expected: an Inspect log")
    (tmp_path / "c.json").write_text('{"rows": []}')
    assert message(tmp_path / "c.json") == (
        "FILE is JSON, but not an Inspect log. Expected: an Inspect log, .eval or .json, of format "
        "version 2. "
        "Fix: save rows as .jsonl."
    )
    assert message(write(tmp_path / "d.eval", one="{broken")).startswith(
        "FILE: samples/one.json is not JSON: "
    )
