"""Compares what two runs of a command left behind: what version 1 wrote must be there, more may be."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl
from polars.testing import assert_frame_equal

CLOSE: Final = 1e-6
"""Relative difference of two numbers that are the same one."""
CLOSE_OF_MODELS: Final = 1e-3
"""The same where a network computed them: processors differ in the last bits of a product."""
TIMES: Final = frozenset({"at", "created", "ended", "tokens_per_second", "seconds", "speed"})
"""Columns and keys that differ with every run."""
REDEFINED: Final = frozenset({"min_detectable"})
"""Columns whose meaning a later version changed on purpose; they are still written."""
CACHED: Final = re.compile(r"(.+)-[0-9a-f]{12}")
TABLES: Final = {".parquet": pl.read_parquet, ".csv": pl.read_csv, ".jsonl": pl.read_ndjson}


def compare_file(old: Path, new: Path, *, close: float) -> None:
    """Nothing of the old file is missing in the new one."""
    if stem := CACHED.fullmatch(new.stem):
        # Such a name ends in a digest of what the table depends on, the version of the package included.
        new = next(new.parent.glob(f"{stem[1]}-*{new.suffix}"), new)
    assert new.exists(), f"{old.name} is no longer written"
    if old.suffix in TABLES:
        compare_tables(TABLES[old.suffix](old), TABLES[old.suffix](new), close=close)
    elif old.suffix == ".json":
        is_held(json.loads(old.read_text("utf-8")), json.loads(new.read_text("utf-8")), old.name, close)
    elif old.suffix == ".xml":
        assert _shape(ET.parse(old).getroot()) == _shape(ET.parse(new).getroot())


def compare_tables(old: pl.DataFrame, new: pl.DataFrame, *, close: float) -> None:
    """The same rows in the same order; the new table may have more columns."""
    columns = [name for name in old.columns if name not in TIMES]
    missing = [name for name in columns if name not in new.columns]
    assert not missing, f"the columns {missing} are gone"
    columns = [name for name in columns if name not in REDEFINED]
    # A ratio of two shares near zero magnifies the last bits that processors round differently.
    ratios = [name for name in columns if name.startswith("ratio_")]
    others = [name for name in columns if name not in ratios]
    for names, tolerance in ((others, close), (ratios, max(close, CLOSE_OF_MODELS))):
        assert_frame_equal(
            old.select(names),
            new.select(names),
            check_exact=False,
            rel_tol=tolerance,
            abs_tol=tolerance * 0.1,
        )


def is_held(old: Any, new: Any, path: str, close: float = CLOSE) -> None:
    """Every key and value of the old JSON is in the new one."""
    if isinstance(old, Mapping):
        for key, value in old.items():
            if key not in TIMES:
                assert key in new, f"{path}.{key} is gone"
                is_held(value, new[key], f"{path}.{key}", close)
    elif isinstance(old, list):
        assert len(old) == len(new), f"{path} had {len(old)} items and has {len(new)}"
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            is_held(one, other, f"{path}[{number}]", close)
    elif isinstance(old, float) and isinstance(new, float):
        assert abs(old - new) <= close * max(abs(old), 1), f"{path} was {old} and is {new}"
    else:
        assert old == new, f"{path} was {old!r} and is {new!r}"


def _shape(node: ET.Element) -> Any:
    return node.tag, dict(node.attrib), [_shape(inner) for inner in node]


def files(output: Path) -> Iterator[Path]:
    """The files of a command's output that are compared: not its manifest, its shards and its prose."""
    if output.is_file():
        yield output
        return
    for file in sorted(output.rglob("*")):
        inside = file.relative_to(output).parts
        if file.suffix in {*TABLES, ".json"} and "shards" not in inside and file.name not in _OWN_WAY:
            yield file


_OWN_WAY: Final = frozenset({"run.json", "training.json"})
"""Files with times and versions in them; what matters of them is compared by name."""
