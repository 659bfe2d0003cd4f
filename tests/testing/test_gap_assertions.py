"""Limits as lines of tests, and the plug-in that brings them to pytest."""

import subprocess
import sys

import pytest
from tests.audits.texts import run

from evenhand.testing import InconclusiveWarning, assert_gap


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {
        "wide": run(folder, "wide", {"women": 0.9, "men": 0.2}, prompts=40),
        "even": run(folder, "even", {"women": 0.3, "men": 0.3}, prompts=150),
    }


def test_a_kept_limit_gives_its_checks(runs):
    found = assert_gap(runs["even"], "sentiment.negative", axis="group", below=0.2)
    assert [check.verdict for check in found.checks] == ["passes"]


def test_a_broken_limit_is_an_assertion_error(runs):
    with pytest.raises(
        AssertionError, match=r"fails: sentiment\.negative group: women against men, at most 0\.1"
    ):
        assert_gap(runs["wide"], "sentiment.negative", axis="group", group="women", below=0.1)
    with pytest.raises(AssertionError, match="no wider than before"):
        assert_gap(runs["wide"], "sentiment.negative", below=0.1, baseline_run=runs["even"])


def test_doubt_is_a_warning_unless_asked_otherwise(runs):
    with pytest.warns(InconclusiveWarning, match="1 of 1 checks are inconclusive"):
        assert_gap(runs["even"], "sentiment.negative", below=0.01)
    assert assert_gap(runs["even"], "sentiment.negative", below=0.01, doubt="ignore").exit_code == 0
    with pytest.raises(AssertionError, match="cannot tell: "):
        assert_gap(runs["even"], "sentiment.negative", below=0.01, doubt="fail")


TEST = """
def test_run(evenhand_run, assert_gap):
    assert_gap(evenhand_run, "sentiment.negative", axis="group", below=0.1)
"""


def _pytest(folder, *arguments):
    (folder / "test_it.py").write_text(TEST)
    plugin = ["-p", "evenhand.pytest_plugin"] if not _is_installed() else []
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def _is_installed():
    from importlib.metadata import entry_points

    return any(entry.value == "evenhand.pytest_plugin" for entry in entry_points(group="pytest11"))


def test_the_plug_in_brings_the_run(runs, tmp_path):
    failed = _pytest(tmp_path, "--evenhand-run", str(runs["wide"].path))
    assert failed.returncode == 1
    assert "the run does not keep its limit" in failed.stdout
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nevenhand_run = {runs['even'].path}\n")
    named = _pytest(tmp_path)
    assert named.returncode == 0, named.stdout + named.stderr


def test_a_typed_folder_is_meant_from_where_it_is_typed(runs, tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "run").symlink_to(runs["even"].path, target_is_directory=True)
    found = _pytest(tmp_path / "inner", "--evenhand-run", "run")
    assert found.returncode == 0, found.stdout + found.stderr


def test_without_a_run_the_test_is_skipped(tmp_path):
    skipped = _pytest(tmp_path, "-rs")
    assert skipped.returncode == 0
    assert "no run: pass --evenhand-run DIR" in skipped.stdout


def test_a_name_of_a_group_is_no_command_of_a_runner(tmp_path):
    """What a test prints is read by the runner, whose commands are lines that begin with two colons."""
    hostile = run(tmp_path, "hostile", {"x\n::add-mask::y": 0.9, "men": 0.2}, prompts=40)
    with pytest.raises(AssertionError, match=r"group: x\n\\::add-mask::y against men"):
        assert_gap(hostile, "sentiment.negative", below=0.1)
    with pytest.warns(InconclusiveWarning, match=r"group: x\n\\::add-mask::y against men"):
        assert_gap(hostile, "sentiment.negative", below=0.7)
