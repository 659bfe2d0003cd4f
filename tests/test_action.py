"""The GitHub Action: its steps are run here as the runner would run them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.audits.texts import run

ROOT = Path(__file__).resolve().parent.parent
yaml = pytest.importorskip("yaml")


@pytest.fixture(scope="module")
def action():
    return yaml.safe_load((ROOT / "action.yml").read_text())


def _step(action, name):
    return next(step for step in action["runs"]["steps"] if step.get("name") == name)


def test_every_input_reaches_a_step_and_none_is_pasted_into_a_script(action):
    text = (ROOT / "action.yml").read_text()
    for name in action["inputs"]:
        assert f"inputs.{name}" in text, name
    for step in action["runs"]["steps"]:
        assert "${{" not in step.get("run", ""), "inputs belong into env"


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
@pytest.mark.parametrize(
    ("package", "installed"), [("", "/home/action[models]"), ("evenhand==0.1.0", "evenhand==0.1.0")]
)
def test_it_installs_the_package_it_lies_in_unless_told_otherwise(action, tmp_path, package, installed):
    assert _run_with_echo(_step(action, "Install evenhand"), tmp_path, "python", PACKAGE=package) == [
        "-m",
        "pip",
        "install",
        "--quiet",
        installed,
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
def test_arguments_may_stand_on_several_lines(action, tmp_path):
    arguments = _run_with_echo(
        _step(action, "Audit"),
        tmp_path,
        "evenhand",
        MODEL="a; b",
        RUN="out",
        CONFIG="",
        ARGUMENTS="--suite regard\n--samples 20\n",
    )
    assert arguments == ["audit", "a; b", "--out", "out", "--suite", "regard", "--samples", "20"]


def _run_with_echo(step, tmp_path, program, **environment):
    """The arguments a step hands to a program, which is replaced by one that prints them."""
    stand_in = tmp_path / program
    stand_in.write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    stand_in.chmod(0o755)
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env={
            **os.environ,
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_ACTION_PATH": "/home/action",
            **environment,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
@pytest.mark.parametrize(
    ("limit", "strict", "code"),
    [("0.1", None, 1), ("0.99", None, 0), ("0.65", None, 1), ("0.65", "false", 0), ("0.1", "false", 1)],
)
def test_the_gate_step_runs(action, tmp_path, limit, strict, code):
    folder = run(tmp_path, "wide", {"women": 0.9, "men": 0.2}, prompts=40).path
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "RUN": str(folder),
        "MAX": f"sentiment.negative group {limit}\n",
        "WORSE": "",
        "BASELINE": "",
        "CONFIG": "",
        "STRICT": strict or action["inputs"]["strict"]["default"],
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }
    script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", _step(action, "Gate")["run"]]
    done = subprocess.run(script, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert ("::error title=evenhand%3A" in done.stdout) == bool(code)
    assert (folder / "gate.xml").exists()
    assert "larger than chance" in (tmp_path / "summary.md").read_text()
