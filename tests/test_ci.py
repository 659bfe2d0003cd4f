"""The files of CI name what is there, and the hooks for other repositories work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.audits.texts import run

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
yaml = pytest.importorskip("yaml")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_scripts_and_targets_that_are_there(path: Path) -> None:
    jobs = yaml.safe_load(path.read_text())["jobs"]
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for step in (step for job in jobs.values() for step in job["steps"] if "run" in step):
        for name in re.findall(r"(?:scripts|\.ci)/[\w.]+", step["run"]):
            assert os.access(ROOT / name, os.X_OK if name.startswith(".ci") else os.R_OK), name
        for line in re.findall(r"\bmake ([a-z -]+)", step["run"]):
            assert set(line.split()) <= set(targets), line


def test_every_step_of_ci_is_one() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    steps = re.findall(r"^STEPS=\((.*)\)", script, flags=re.MULTILINE)[0].split()
    defined = set(re.findall(r"^([a-z]+)\(\)", script, flags=re.MULTILINE))
    assert {step for step in steps if not step.startswith("core-")} - {"lowest"} <= defined
    # As the classifiers promise: the suite runs on the first, the core on the others.
    promised = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert [f"core-{version}" for version in promised[1:]] == [
        one for one in steps if one.startswith("core-")
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="needs bash")
@pytest.mark.parametrize("name", ["run", "fresh", "core", "kernels", "offline", "advisories"])
def test_the_shell_reads_its_scripts(name: str) -> None:
    subprocess.run(["bash", "-n", ROOT / ".ci" / name], check=True)


def test_the_hooks_call_commands_that_exist() -> None:
    from evenhand.cli.app import app

    commands = {command.name for command in app.registered_commands}
    for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text()):
        assert hook["entry"].split()[0] == "evenhand"
        assert hook["entry"].split()[1] in commands


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
@pytest.mark.parametrize(("options", "code"), [("0.1", 1), ("0.99", 0), ("0.65", 1), ("0.65 --no-strict", 0)])
def test_a_commit_is_held_up_by_a_gap_beyond_its_limit(tmp_path: Path, options: str, code: int) -> None:
    """The real pre-commit, with this repository's hook; its environment is ours, to spare an installation."""
    pytest.importorskip("pre_commit", reason="pre-commit is not installed")
    limit, *more = options.split()
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    folder = run(tmp_path, "wide", {"women": 0.9, "men": 0.2}, prompts=40).path
    hook = {
        **hooks["evenhand-gate"],
        "language": "system",
        "language_version": "default",
        "entry": str(Path(sys.executable).with_name(hooks["evenhand-gate"]["entry"])),
        "args": [str(folder), "--max", f"sentiment.negative group {limit}", *more],
    }
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / ".pre-commit-config.yaml").write_text(
        yaml.safe_dump({"repos": [{"repo": "local", "hooks": [hook]}]})
    )
    git = shutil.which("git")
    assert git
    subprocess.run([git, "init", "-q", "."], cwd=theirs, check=True)
    subprocess.run([git, "add", "-A"], cwd=theirs, check=True)
    command = [sys.executable, "-m", "pre_commit", "run", "--all-files", "--verbose"]
    environment = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, cwd=theirs, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert "evenhand gate" in done.stdout
