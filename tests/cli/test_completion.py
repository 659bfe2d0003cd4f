"""What the shell offers on Tab, asked as each shell asks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evenhand.cli.commands import complete


def test_names_come_from_the_registry() -> None:
    assert complete("metrics")("se") == ["sentiment"]
    assert "starter" in complete("suites")("")
    assert complete("models")("built") == ["builtin", "builtin:masked"]
    assert complete("models")("end") == ["endpoint:"]
    assert "hub" not in complete("models")("")
    assert complete("mitigations")("cal") == ["calibration"]
    assert complete("modes")("in") == ["in-glove"]
    assert {"sentiment", "starter", "builtin"} <= set(complete("names")(""))
    assert complete("kinds")("m") == ["metrics", "mitigations", "models"]
    assert complete("papers")("b") == ["bold"]
    assert complete("tasks")("cal") == ["calibrator"]


def test_the_last_of_several_is_completed_and_none_offered_twice() -> None:
    assert complete("metrics")("sentiment,tox") == ["sentiment,toxicity"]
    assert "sentiment,sentiment" not in complete("metrics")("sentiment,")


TYPED = "evenhand audit --suite sta"
HEAVY = {"torch", "polars", "scipy", "numba", "numpy"}
"""Typer itself imports pydantic when it completes a word."""
PROGRAM = Path(sys.executable).with_name("evenhand")
needs_program = pytest.mark.skipif(not PROGRAM.exists(), reason="the program is not installed beside Python")


@needs_program
@pytest.mark.parametrize(
    ("shell", "environment"),
    [
        ("bash", {"COMP_WORDS": TYPED, "COMP_CWORD": "3"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": TYPED}),
        ("fish", {"_TYPER_COMPLETE_ARGS": TYPED, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_every_shell_is_answered_and_nothing_heavy_is_imported(
    shell: str, environment: dict[str, str]
) -> None:
    asked = {
        **os.environ,
        "_EVENHAND_COMPLETE": f"complete_{shell}",
        "PYTHONPROFILEIMPORTTIME": "1",
        **environment,
    }
    done = subprocess.run([PROGRAM], env=asked, capture_output=True, text=True, check=True)
    assert "starter" in done.stdout
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "evenhand.cli.commands" in imported
    assert not HEAVY & imported


@needs_program
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_written_and_its_shell_reads_it(shell: str) -> None:
    # Typer asks which shell it was started from unless told that the shell is named.
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [PROGRAM, "--show-completion", shell], env=environment, capture_output=True, text=True, check=True
    )
    assert "_EVENHAND_COMPLETE" in done.stdout
    if found := shutil.which(shell):
        subprocess.run([found, "-n"], input=done.stdout, text=True, check=True)
