"""The program as a user runs it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import program

Evenhand = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def evenhand(tmp_path: Path) -> Evenhand:
    """Run ``evenhand ARGUMENTS`` in an empty folder."""

    def run(*arguments: object, cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return program.run(*arguments, cwd=cwd)

    return run
