"""The notebook runs, and what it shows was given by this version."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.docs.pages import ROOT
from tests.docs.test_reference import script

import evenhand

NOTEBOOK = ROOT / "docs" / "notebook" / "audit.ipynb"
AGAIN = "run scripts/run_notebook.py"


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return found


def test_its_outputs_are_of_this_version(kept: dict[str, Any]) -> None:
    assert kept["metadata"]["evenhand"]["version"] == evenhand.__version__, AGAIN
    assert NOTEBOOK.stat().st_size < 200_000


def test_it_was_run_from_top_to_bottom(kept: dict[str, Any]) -> None:
    code = [cell for cell in kept["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1)), AGAIN
    assert not [out for cell in code for out in cell["outputs"] if out["output_type"] == "error"]
    assert any("image/png" in out.get("data", {}) for cell in code for out in cell["outputs"])


@pytest.mark.slow
def test_it_runs_and_shows_the_same(kept: dict[str, Any]) -> None:
    pytest.importorskip("nbclient", reason="needs the extra notebook")
    pytest.importorskip("ipykernel", reason="needs the extra notebook")
    again = script("run_notebook").executed(NOTEBOOK)
    for before, after in zip(kept["cells"], again.cells, strict=True):
        assert _shape(before) == _shape(after), AGAIN


def _shape(cell: Any) -> list[str]:
    """What a cell shows without numbers and rows: another machine may write other texts."""
    shown = [out.get("data", {}).get("text/plain", out.get("text", "")) for out in cell.get("outputs", [])]
    joined = ["".join(text).partition("╞")[0] for text in shown]
    return [re.sub(r"[-+]?\d[\d.e-]*|[ ─]+", "", text) for text in joined]
