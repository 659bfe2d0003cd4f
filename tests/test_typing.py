"""What a user's type checker sees of the public names, although they are resolved when first used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import evenhand
import evenhand.adapters

SCRIPT = """
from pathlib import Path

import evenhand

run = evenhand.audit("stub", samples=2, metrics="sentiment")
reveal_type(run)
reveal_type(run.table("groups").height)
reveal_type(evenhand.score)
reveal_type(evenhand.frame_inputs(run, "sentiment.negative").y_pred)
reveal_type(evenhand.export_task("starter", Path("x")))
evenhand.audit("stub", sample=2)
evenhand.score("x.csv", group=3)
evenhand.nothing
"""


@pytest.mark.slow
def test_a_strict_checker_sees_the_types_and_the_mistakes(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="needs mypy")
    (tmp_path / "user.py").write_text(SCRIPT)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", "user.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = checked.stdout.replace('"', "")
    assert "Revealed type is evenhand.store.run.Run" in found
    assert "Revealed type is int" in found or "builtins.int" in found
    assert "def (texts:" in found
    assert "numpy.ndarray" in found
    assert "pathlib.Path" in found
    assert "Unexpected keyword argument sample" in found
    assert "Argument group to score has incompatible type int" in found
    assert "Module has no attribute nothing" in found


@pytest.mark.parametrize("module", [evenhand, evenhand.adapters], ids=["evenhand", "adapters"])
def test_a_checker_is_told_where_every_name_is(module) -> None:
    """What is imported for the checker is what is found when a name is used, and no other name passes."""
    tree = ast.parse(Path(module.__file__).read_text())
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    told = {
        alias.name: node.module
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert told == module._WHERE
    assert set(module.__all__) - {"__version__"} == set(told)
    looked_up = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert "__getattr__" not in looked_up


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(evenhand.__file__).parent / "py.typed").is_file()
