"""Readers of other tools' logs, and of data sets as suites."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

from tests.fuzz.contents import as_csv, as_json, as_json_lines
from tests.fuzz.harness import Reader, Tree, of_trees

from evenhand.audits.score import open_texts
from evenhand.core.records import Execution
from evenhand.logs import read_log
from evenhand.suites.hub_datasets import HubSuite

FILES = Path(__file__).resolve().parents[1] / "logs" / "files"
CARD = b"""---
license: mit
configs:
- config_name: default
  data_files:
  - split: train
    path: "*.csv"
---
# Prompts
"""
PROMPTS: Tree = [["prompt", "gender"], ["The nurse", "women"], ["The pilot", "men"]]


def _files(pattern: str) -> Callable[[], list[bytes]]:
    return lambda: [path.read_bytes() for path in sorted(FILES.glob(pattern))]


def _lines(pattern: str) -> Callable[[], list[Tree]]:
    return lambda: [[json.loads(line) for line in data.splitlines()] for data in _files(pattern)()]


def _opened(path: Path) -> object:
    return open_texts(path)


def _eval_trees() -> list[Tree]:
    """The members of an archive by name."""
    found: list[Tree] = []
    for data in _files("inspect-0*.eval")():
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            wanted = [name for name in archive.namelist() if archive.getinfo(name).compress_type in (0, 8)]
            found.append({name: json.loads(archive.read(name)) for name in wanted if name.endswith(".json")})
    return [tree for tree in found if tree] or [_small_log()]


def _small_log() -> Tree:
    sample = {
        "id": 1,
        "epoch": 1,
        "input": "The nurse",
        "output": {"choices": [{"message": {"content": " was"}}]},
    }
    header = {"version": 2, "status": "success", "eval": {"task": "jobs"}}
    return {"header.json": header, "samples/1_epoch_1.json": sample}


def _as_eval(tree: Tree) -> bytes:
    sink = io.BytesIO()
    members = cast("dict[str, Tree]", tree) if isinstance(tree, dict) else {"header.json": tree}
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            sound = name.encode("utf-8", "replace").decode().partition("\0")[0][:500]
            archive.writestr(sound or "x", as_json(content))
    return sink.getvalue()


def _suite(path: Path) -> Iterator[object]:
    name = f"{path.parent}?prompt=prompt&group.gender=gender"
    suite = HubSuite(name=name, execution=Execution(offline=True))
    yield suite.info
    yield from suite.prompts()


def _beside_card(folder: Path) -> None:
    (folder / "README.md").write_bytes(CARD)
    (folder / "train.csv").write_bytes(as_csv(PROMPTS))


READERS: tuple[Reader, ...] = (
    Reader(
        "lm-eval samples",
        "samples_a.jsonl",
        _opened,
        _files("samples_*.jsonl"),
        _lines("samples_*.jsonl"),
        as_json_lines,
        cost=2,
    ),
    Reader("Inspect log .eval", "a.eval", read_log, _files("*.eval"), _eval_trees, _as_eval, cost=2),
    Reader(
        "Inspect log .json",
        "a.json",
        read_log,
        _files("*.json"),
        lambda: [json.loads(data) for data in _files("*.json")()],
        as_json,
        cost=2,
    ),
    Reader("data set: README.md", "README.md", _suite, lambda: [CARD], prepare=_beside_card, cost=2),
    of_trees("data set: table", "train.csv", _suite, as_csv, PROMPTS, prepare=_beside_card, cost=2),
)
