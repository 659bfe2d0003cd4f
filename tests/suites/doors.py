"""A suite of two groups that tests write: as small, or as large, as they need it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_SUITE = """[suite]
name = "doors"
[axes.origin]
baseline = "local"
[[axes.origin.groups]]
name = "local"
words = ["a neighbour"]
[[axes.origin.groups]]
name = "foreign"
words = ["a visitor"]
[slots]
place = [{places}]
[[templates]]
text = "When {{origin}} came to the {{place}}, people"
[[templates]]
text = "In the {{place}} {{origin}} asked for help, and"
"""


def write_doors(folder: Path, places: Sequence[str] = ("door",)) -> None:
    """Write ``doors.toml``, which ``templates:doors.toml`` reads: four prompts a place."""
    quoted = ", ".join(f'"{place}"' for place in places)
    (folder / "doors.toml").write_text(_SUITE.format(places=quoted))
