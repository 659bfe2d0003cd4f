"""Files written beside the tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.report.realistic import comparison, group_row, realistic_run, small_run

from evenhand.core.errors import InputError
from evenhand.report.render_run import render


def test_each_format_is_one_file_in_the_run_folder(tmp_path: Path) -> None:
    files = render(small_run(tmp_path, [comparison()], [group_row()]), ("html", "json", "md"))
    assert files == {key: tmp_path / f"report.{key}" for key in ("html", "json", "md")}
    assert all(file.stat().st_size for file in files.values())
    assert not list(tmp_path.glob(".*part"))


def test_html_and_json_are_the_default(tmp_path: Path) -> None:
    assert list(render(small_run(tmp_path))) == ["html", "json"]


def test_rendering_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    run = realistic_run(tmp_path)
    first = render(run)["html"].read_bytes()
    assert render(run)["html"].read_bytes() == first


def test_an_unknown_format_says_which_are_known(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        render(small_run(tmp_path), ("pdf",))
    assert str(caught.value) == (
        "the report format 'pdf' is not known. Expected: html, json, md, lm-eval, model-card. Fix: "
        "name one or more of these."
    )
    assert not (tmp_path / "report.html").exists()
