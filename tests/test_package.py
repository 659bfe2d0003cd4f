"""The package as a whole: its names, its import time, the direction of its imports."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import evenhand
from evenhand import adapters, testing

SOURCE = Path(evenhand.__file__).parent
ROOT = Path(__file__).parents[1]
LAYERS = [
    {"core"},
    {"text", "stats"},
    {"store"},
    {"logs", "tensors"},
    {"generation", "classifiers"},
    {"suites", "models", "metrics", "mitigations"},
    {"config", "run_options"},
    {"report"},
    {"audits"},
    {"corpus", "probes", "annotate"},
    {"training", "collection"},
    {"papers", "adapters"},
    {"cli"},
]
LONGEST = 600
"""Lines of a file of code; past that it has two jobs."""
LEVEL = {folder: level for level, folders in enumerate(LAYERS) for folder in folders}


def test_public_names_are_pinned():
    assert evenhand.__all__ == [
        "EvenhandError",
        "Run",
        "__version__",
        "agreement",
        "audit",
        "available",
        "build",
        "card",
        "compare",
        "create_study",
        "debias",
        "export",
        "export_labels",
        "export_task",
        "forget_person",
        "frame_inputs",
        "gate",
        "import_labels",
        "invite_people",
        "merge",
        "power",
        "probe",
        "ratings",
        "render",
        "replicate",
        "sample_items",
        "scan_corpus",
        "score",
        "score_predictions",
        "serve_study",
        "settle_labels",
        "tradeoff",
        "train",
        "validate",
    ]
    assert all(getattr(evenhand, name) is not None for name in evenhand.__all__)
    with pytest.raises(AttributeError, match="module 'evenhand' has no attribute 'nothing'"):
        _ = evenhand.nothing


def test_names_for_other_tools_and_for_plug_in_authors_are_pinned():
    assert adapters.__all__ == [
        "FrameInputs",
        "export_task",
        "frame_inputs",
        "inspect_scorer",
        "inspect_task",
        "score_predictions",
    ]
    assert testing.__all__ == [
        "ContractError",
        "InconclusiveWarning",
        "StubModel",
        "assert_gap",
        "check_metric",
        "check_model",
        "check_suite",
    ]


def test_import_is_light():
    code = (
        "import sys, evenhand\n"
        "bad = {'torch', 'polars', 'scipy', 'numba', 'pydantic', 'numpy'} & set(sys.modules)\n"
        "sys.exit(str(bad) if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("given", "then"),
    [({}, "2000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "None")],
    ids=["nothing", "count", "policy"],
)
def test_threads_of_torch_wait_shortly_unless_the_user_says_how(given, then):
    known = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    code = "import os, evenhand; print(os.environ.get('GOMP_SPINCOUNT'))"
    said = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=known | given
    )
    assert said.stdout.strip() == then


def test_help_imports_no_heavy_library():
    code = (
        "import sys; sys.argv = ['evenhand', '--help']\n"
        "from evenhand.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "bad = {'torch', 'polars', 'scipy', 'numba', 'pydantic', 'numpy'} & set(sys.modules)\n"
        "sys.exit(str(bad) if bad else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name.split(".")[1] for name in names if name.startswith("evenhand.") and name.count("."))


def test_imports_go_downward_only():
    upward = [
        f"{path.relative_to(SOURCE)} imports {other}"
        for path in sorted(SOURCE.rglob("*.py"))
        if (folder := path.relative_to(SOURCE).parts[0]) in LEVEL
        for other in sorted(set(_imports(path)) - {folder, "_version"})
        if other not in LEVEL or LEVEL[other] >= LEVEL[folder]
    ]
    assert upward == []


def test_every_folder_has_a_layer():
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert folders - set(LEVEL) <= {"testing", "assets", "api"}


def test_contributors_are_told_the_layers_as_they_are():
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    told = re.search(r"Imports go downward only: `([^`]*)`", text)
    assert told is not None
    assert [set(layer.split(", ")) for layer in told[1].split(" < ")] == LAYERS


def test_every_folder_says_its_job():
    for folder in {path.parent for path in SOURCE.rglob("*.py")} - {SOURCE}:
        tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), f"{folder.name}/__init__.py says nothing"


@pytest.mark.parametrize("folder", ["src", "tests", "tools", "benchmarks", "scripts", "examples"])
def test_no_file_is_too_long_to_read(folder):
    files = {path: path.read_text(encoding="utf-8").count("\n") for path in (ROOT / folder).rglob("*.py")}
    assert {str(path.relative_to(ROOT)): lines for path, lines in files.items() if lines > LONGEST} == {}
