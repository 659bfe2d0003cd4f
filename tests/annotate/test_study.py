"""The study folder: written whole, read back, never overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.annotate.study_parts import make_study

from evenhand.annotate.study import ITEM_COLUMNS, STUDY, read_study, task_text
from evenhand.core.errors import InputError


def test_a_study_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = make_study(tmp_path / "s", items=4, seed=7)
    again = read_study(tmp_path / "s")
    assert again == made
    assert again.settings.seed == 7
    # The task stands in the file as its author wrote it, comments and all.
    assert (tmp_path / "s" / STUDY).read_text().endswith(task_text("sentiment"))
    items = again.items()
    assert dict(items.schema) == dict(ITEM_COLUMNS)
    assert items["is_check"].sum() == 5
    assert items["item_id"].n_unique() == 4 + 5


def test_ids_tell_nothing_of_group_method_or_check(tmp_path: Path) -> None:
    items = make_study(tmp_path / "s", items=4).items()
    assert items["item_id"].str.contains(r"^[0-9a-f]{16}$").all()


def test_a_study_with_answers_is_never_overwritten(tmp_path: Path) -> None:
    make_study(tmp_path / "s", items=2)
    with pytest.raises(InputError, match=r"already contains a study\. Expected: a new folder"):
        make_study(tmp_path / "s", items=2)


def test_another_layout_is_kept(tmp_path: Path) -> None:
    made = make_study(tmp_path / "s", task="likert", items=2, methods=("a", "b"), layout="side-by-side")
    assert made.task.task.layout == "side-by-side"
    assert read_study(tmp_path / "s").task.task.layout == "side-by-side"


def test_a_folder_without_a_study(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_study(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} contains no study: No such file or directory (study.toml). Expected: a folder created "
        "by `evenhand annotate init`. Fix: check the path."
    )


def test_damaged_files_are_named(tmp_path: Path) -> None:
    study = make_study(tmp_path / "s", items=2)
    (study.folder / "items.parquet").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"items.parquet is not a readable Parquet file"):
        study.items()
    (study.folder / STUDY).write_text("[study]\nid = 3\n")
    with pytest.raises(InputError, match=r"Fix: correct the section \[study\]"):
        read_study(study.folder)
    (study.folder / STUDY).write_text("[study\n")
    with pytest.raises(InputError, match="correct the section"):
        read_study(study.folder)


def test_the_task_of_a_study_can_be_used_again(tmp_path: Path) -> None:
    first = make_study(tmp_path / "first", items=2, seed=5)
    second = make_study(tmp_path / "second", items=2, task=str(first.folder / STUDY))
    assert second.task == first.task
    assert second.settings.seed == 0
