"""The run-folder page names every column of a probe run's tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evenhand.store.schemas import EVERY_SCHEMA

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "run-folder.md"


@pytest.mark.parametrize("table", ["measures", "sets", "flips", "pair_scores", "associations", "agreements"])
def test_the_reference_names_every_column(table: str) -> None:
    row = next(line for line in PAGE.read_text().splitlines() if f"`{table}.parquet`" in line)
    assert re.findall(r"`([a-z_, ]+)`", row.split("|")[2])[0].split(", ") == list(EVERY_SCHEMA[table])
