"""Runs ``docs/notebook/audit.ipynb`` and keeps its outputs, with the version that gave them.

Needs the extra ``notebook``: ``pip install -e '.[notebook]'``, then ``python scripts/run_notebook.py``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient

import evenhand

NOTEBOOK: Final = Path(__file__).resolve().parent.parent / "docs" / "notebook" / "audit.ipynb"


def executed(path: Path = NOTEBOOK) -> Any:
    """The notebook with the outputs of this version, run in an empty folder."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=600, kernel_name="python3")
        client.execute(cwd=folder)
    for cell in notebook.cells:
        # Times of execution differ from run to run and tell a reader nothing.
        cell.metadata.pop("execution", None)
    notebook.metadata = {
        "kernelspec": notebook.metadata["kernelspec"],
        "language_info": {"name": "python"},
        "evenhand": {"version": evenhand.__version__},
    }
    return notebook


if __name__ == "__main__":
    nbformat.write(executed(), NOTEBOOK)
