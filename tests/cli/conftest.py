"""The program as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Evenhand = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def evenhand(tmp_path: Path) -> Evenhand:
    """Run ``evenhand ARGUMENTS`` in an empty folder."""

    def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "evenhand", *map(str, arguments)]
        return subprocess.run(
            command,
            cwd=options.get("cwd", tmp_path),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run
