"""Every dependency has a lower bound, and the script finds it."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest
from tests.scripts.loading import ROOT, script


def test_bounds_are_read_and_our_own_extras_passed_over() -> None:
    lowest = script("lowest").lowest
    given = ["numpy>=2.0", "moto[s3]>=5.0,<6", "vaderSentiment==3.3.2", "evenhand[models]"]
    assert list(lowest(given)) == ["numpy==2.0", "moto==5.0", "vaderSentiment==3.3.2"]
    with pytest.raises(SystemExit, match=r"^'rich' has no lower bound: write one, such as rich>=1\.0$"):
        list(lowest(["rich"]))


def test_every_dependency_of_the_project_has_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    command = [sys.executable, str(ROOT / "scripts" / "lowest.py"), *extras]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    given = [*project["dependencies"], *(line for group in extras.values() for line in group)]
    assert len(done.stdout.splitlines()) == len([line for line in given if not line.startswith("evenhand[")])
