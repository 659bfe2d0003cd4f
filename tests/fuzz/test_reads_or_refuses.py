"""Whatever a file holds, it is read or refused with a message for people.

In `make test` each reader sees a few inputs, the same each time. The long run (``--run-slow``) tries
``EVENHAND_FUZZ_INPUTS`` damaged and a quarter as many edited inputs a reader, fewer where one is slow, from
``EVENHAND_FUZZ_SEED``, and adds to the figures in ``EVENHAND_FUZZ_RECORD``.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from tests.fuzz.drive import try_damaged, try_edited, try_examples
from tests.fuzz.harness import Reader
from tests.fuzz.registry import READERS

QUICK = 8
INPUTS = int(os.environ.get("EVENHAND_FUZZ_INPUTS", "1600"))
SEED = int(os.environ.get("EVENHAND_FUZZ_SEED", "0"))
BY_NAME = {reader.name: reader for reader in READERS}


def test_every_reader_has_a_name_of_its_own() -> None:
    assert len(BY_NAME) == len(READERS)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_few_inputs(name: str, tmp_path: Path) -> None:
    reader = BY_NAME[name]
    # What is slow is tried less often: the long run makes up for it.
    count = max(1, QUICK // reader.cost)
    found = try_examples(reader, tmp_path)
    assert found["read"], "none of the examples can be read"
    tried = try_damaged(reader, tmp_path, count=count) + try_edited(reader, tmp_path, count=count)
    assert tried.total() >= count


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_NAME)
def test_many_inputs(name: str, tmp_path: Path) -> None:
    reader = BY_NAME[name]
    count = max(30, INPUTS // reader.cost)
    tried = try_damaged(reader, tmp_path, count=count, seed=SEED)
    tried += try_edited(reader, tmp_path, count=count // 4, seed=SEED)
    _record(reader, tried)
    assert tried.total() >= count


def _record(reader: Reader, tried: Counter[str]) -> None:
    file = os.environ.get("EVENHAND_FUZZ_RECORD")
    if not file:
        return
    path = Path(file)
    figures = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    earlier = figures.get(reader.name, {"read": 0, "refused": 0})
    figures[reader.name] = {kind: earlier[kind] + tried[kind] for kind in ("read", "refused")}
    path.write_text(json.dumps(dict(sorted(figures.items())), indent=1) + "\n", encoding="utf-8")
