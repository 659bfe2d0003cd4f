"""The example plug-in, installed beside evenhand and used as a stranger's package would be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parent.parent / "examples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plug-in installed, built without network."""
    target = tmp_path_factory.mktemp("plugin")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    options = ["--no-deps", "--no-build-isolation", "--target", str(target), str(PLUGIN)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def run(installed: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


SCRIPT = """
import json
from evenhand.core import registry
from evenhand.core.protocols import Explains, Metric, Suite
from evenhand.core.records import Text

metric = registry.create_metric("exclamations")
suite = registry.create_suite("visitors")
assert isinstance(metric, Metric) and isinstance(metric, Explains) and isinstance(suite, Suite)
rows = metric.score([Text("Go! Now! He left."), Text("He left."), Text(" ")])
print(json.dumps({
    "listed": [(e.name, e.package) for k in ("metrics", "suites") for e in registry.list_entries(k)],
    "scores": [list(row["per_sentence"]) for row in rows],
    "prompts": [(p.text, p.groups[0].name, p.cluster) for p in suite.prompts()],
}))
"""


def test_the_registry_finds_and_runs_the_plug_in(installed: Path) -> None:
    found = json.loads(run(installed, "-c", SCRIPT))
    assert ["exclamations", "evenhand-example"] in found["listed"]
    assert ["visitors", "evenhand-example"] in found["listed"]
    assert ["sentiment", "evenhand"] in found["listed"]
    # Two marks in three sentences; none in one; nothing to measure.
    assert found["scores"] == [[2 / 3, "loud", None], [0.0, "calm", None], [None, None, "empty"]]
    assert len(found["prompts"]) == 8
    assert found["prompts"][1] == [
        "When the foreigner knocked at the door, everyone",
        "foreign",
        "template-1",
    ]


def test_the_command_line_lists_it(installed: Path) -> None:
    assert "exclamations" in run(installed, "-m", "evenhand", "list", "metrics")
