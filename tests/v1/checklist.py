"""Writes ``capabilities.md``: what version 1 could do, one line each, to be ticked off after the move."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from tests.v1 import surface
from tests.v1.commands import COMMANDS, ROOT

GOLDENS: Final = ("metrics", "papers", "oracles", "corpus", "stats", "text")
"""Folders of tests that hold values of the papers, of a hand calculation or of a slow twin."""
_MARKS: Final = ("golden", "paper", "printed", "published", "oracle", "twin", "by_hand")


def page() -> str:
    """The page, every box empty."""
    parts = surface.collect()
    points = {name: values for name, values in parts["entry_points"].items() if name != "scripts"}
    sections = {
        "Commands and options": _listed(parts["commands"]),
        "Functions and arguments": _listed(parts["signatures"]),
        "Tables and columns": _listed(parts["tables"]),
        "Settings": _listed(parts["settings"]),
        "Names for authors of plug-ins": _listed(parts["names"]),
        "Entry points and extras": _listed(points),
        "Action, hooks, pytest": [
            *_listed(parts["integrations"]),
            "pytest: fixtures `evenhand_run` and `assert_gap`, option `--evenhand-run`, ini `evenhand_run`",
        ],
        "Run folders that stay readable": [f"`evenhand {one.line}`" for one in COMMANDS if one.writes],
        "Goldens (test functions)": list(_goldens()),
        "Benchmark bars": [
            f"{bar['work']}, against {bar['against'] or 'no rival'}: "
            f"{'at most' if bar['at_most'] else 'at least'} {bar['bar']} {bar['unit']} ({bar['machine']}); "
            f"measured {bar['figure']}"
            for bar in parts["bars"].values()
        ],
        "Fault, fuzz and security tests": _listed(parts["guards"]),
    }
    head = (
        "# What version 1 can do\n\n"
        "Every line is there after the tree has moved, under this name or with a note of deprecation; tick "
        "it off when that was checked. Written by `tests/v1/make_fixtures.py`; the tests beside it check the "
        "same lists.\n"
    )
    return head + "".join(f"\n## {title}\n\n{_boxes(lines)}" for title, lines in sections.items())


def _boxes(lines: Iterable[str]) -> str:
    return "".join(f"- [ ] {line}\n" for line in lines)


def _listed(part: Mapping[str, Mapping[str, Any] | Sequence[str]]) -> list[str]:
    return [
        f"`{name or 'evenhand'}`" + (f": {', '.join(f'`{one}`' for one in members)}" if members else "")
        for name, members in part.items()
    ]


def _goldens() -> Iterator[str]:
    for folder in GOLDENS:
        for path in sorted((ROOT / "tests" / folder).rglob("test_*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
                    continue
                if path.stem == "test_goldens" or any(mark in node.name for mark in _MARKS):
                    yield f"`{node.name}`"
