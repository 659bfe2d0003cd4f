"""How much was planted: what the judge says of the experts' mixtures themselves (`training.planted`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from evenhand.core import registry
from evenhand.core.protocols import Metric
from evenhand.core.reading import read_text
from evenhand.core.records import Execution, Text
from evenhand.papers.political.texts import JUDGE
from evenhand.papers.records import Table
from evenhand.stats.intervals import clustered_mean

FILE: Final = "mixtures.jsonl"
"""In the folder of a planted variant; `training.planted` names it too, and would load torch."""


def mixture_files(specs: Mapping[str, str]) -> dict[str, Path]:
    """The mixtures' texts of those models that are planted variants, by name."""
    files = {name: Path(spec) / FILE for name, spec in specs.items()}
    return {name: path for name, path in files.items() if path.is_file()}


def mixtures_table(files: Mapping[str, Path], execution: Execution) -> Table:
    """The judge's mean for each lean, and how far that lies from the even mixture."""
    rows = [row for name, path in files.items() for row in _rows(name, path, execution)]
    return Table(
        id="mixtures",
        title="How much was planted: the judge on the mixtures themselves",
        frame=pl.DataFrame(rows, infer_schema_length=None),
        notes=(
            "Texts of the two experts' mixtures, without any prompt. lean 0 is even, -0.5 the liberal expert "
            "and 0.5 the conservative one; conservative is the judge's mean probability, with the interval "
            "of as many independent texts; shift is how far it lies from that of the even mixture.",
        ),
        decimals=3,
    )


def _rows(name: str, path: Path, execution: Execution) -> list[dict[str, object]]:
    said = _judged(path, execution)
    even = clustered_mean(said[0.0]).value if 0.0 in said else None
    rows: list[dict[str, object]] = []
    for lean, values in sorted(said.items()):
        found = clustered_mean(values)
        shift = None if even is None or found.value is None else found.value - even
        bounds = {"conservative_low": found.low, "conservative_high": found.high}
        row: dict[str, object] = {"source": name, "lean": lean, "conservative": found.value, **bounds}
        rows.append(row | {"shift": shift, "n": found.n})
    return rows


def _judged(path: Path, execution: Execution) -> dict[float, np.ndarray]:
    lines = [json.loads(line) for line in read_text(path).splitlines()]
    judge = registry.metric(JUDGE, {}, execution)
    assert isinstance(judge, Metric)
    scores = [row[JUDGE].value for row in judge.score([Text(line["text"]) for line in lines])]
    found: dict[float, list[float]] = {}
    for line, score in zip(lines, scores, strict=True):
        if score is not None:
            found.setdefault(float(line["lean"]), []).append(score)
    return {lean: np.array(values) for lean, values in found.items()}
