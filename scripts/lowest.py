"""Prints the lowest versions that pyproject.toml promises, ``name==version`` a line, for ``pip install -c``.

``python scripts/lowest.py [EXTRA ...]``: those of the core, and of extras by name. What they need in turn is
pip's choice, so that a bound of ours is tested and not the age of somebody else's.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
_REQUIREMENT: Final = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*])?\s*(?:>=|==)\s*(?P<version>[0-9][^,;\s]*)"
)


def lowest(requirements: Iterable[str]) -> Iterator[str]:
    """``name==version`` of each requirement's lower bound; one without a bound is an error."""
    for requirement in requirements:
        if requirement.startswith("evenhand["):
            continue
        found = _REQUIREMENT.match(requirement)
        if found is None:
            raise SystemExit(f"{requirement!r} has no lower bound: write one, such as {requirement}>=1.0")
        yield f"{found['name']}=={found['version']}"


def main() -> None:
    """Print them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for group in (project["dependencies"], *(project["optional-dependencies"][one] for one in sys.argv[1:])):
        for line in lowest(group):
            print(line)


if __name__ == "__main__":
    main()
