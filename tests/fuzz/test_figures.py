"""The figures that the page on reliability states are those on record."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fuzz.registry import FAMILIES, READERS

RECORD = Path(__file__).with_name("figures.json")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"


def _row(family: str, names: list[str], figures: dict[str, dict[str, int]]) -> str:
    read, refused = (sum(figures[name][kind] for name in names) for kind in ("read", "refused"))
    return f"| {family} | {len(names)} | {read + refused:,} | {read:,} | {refused:,} | 0 |"


def test_the_page_states_what_is_on_record() -> None:
    figures = json.loads(RECORD.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    for family, readers in FAMILIES.items():
        names = [reader.name for reader in readers if reader.name in figures]
        assert _row(family, names, figures) in page
    assert _row("**all**", sorted(figures), figures) in page


def test_every_reader_is_on_record() -> None:
    figures = json.loads(RECORD.read_text(encoding="utf-8"))
    assert {reader.name for reader in READERS} == set(figures)
