"""Tables and texts as the page carries them."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
from tests.report.manifests import manifest, write_run
from tests.report.realistic import frame, realistic_run

from evenhand.audits.report.page import LONGEST, embed_texts
from evenhand.report.html import pack_json
from evenhand.report.json_tables import to_columns, to_rows


def example(**changes: object) -> dict[str, object]:
    row: dict[str, object] = {
        "suite": "starter",
        "model": "gpt2",
        "axis": "race",
        "group": "African_Americans",
        "metric": "sentiment",
        "output": "compound",
        "why": "drawn",
        "text_id": "1",
        "prompt": "The neighbour",
        "text": " smiled.",
        "value": 0.4,
        "label": "neutral",
    }
    return row | changes


def test_nan_and_infinity_become_null() -> None:
    table = pl.DataFrame({"a": [1.0, float("nan"), float("inf")], "b": [1, 2, 3]})
    assert [row["a"] for row in to_rows(table)] == [1.0, None, None]


def test_words_are_written_once() -> None:
    table = pl.DataFrame(
        {"group": ["x", "y", "x"], "model": ["m", "m", "m"], "p": [1e-17, 0.123456789, None]}
    )
    assert to_columns(table) == {
        "group": {"words": ["x", "y"], "at": [0, 1, 0], "size": 3},
        "model": {"words": ["m"], "at": [], "size": 3},
        "p": [1e-17, 0.123457, None],
    }


def test_a_text_behind_two_bars_is_carried_once(tmp_path: Path) -> None:
    table = frame("examples", [example(), example(group="Asian_Americans")])
    shown, _ = embed_texts(write_run(tmp_path, manifest(), {"examples": table}), budget=100_000)
    assert shown["texts"] == [["The neighbour", " smiled."]]
    bars = shown["bars"]
    assert isinstance(bars, list)
    assert len(bars) == 2


def test_a_long_text_is_cut_and_says_so(tmp_path: Path) -> None:
    table = frame("examples", [example(text="x" * 100_000)])
    shown, _ = embed_texts(write_run(tmp_path, manifest(), {"examples": table}), budget=100_000)
    assert shown["texts"] == [["The neighbour", "x" * LONGEST + " …"]]


def test_a_small_budget_keeps_every_kind_of_example(tmp_path: Path) -> None:
    run = realistic_run(tmp_path)
    _, note = embed_texts(run, budget=10**9)
    part, left = embed_texts(run, budget=30_000)
    assert note == ""
    words = re.fullmatch(r"This page holds at most (\d+) texts per .* measure; ([\d,]+) more are .*", left)
    assert words
    per_bar, left_out = (int(word.replace(",", "")) for word in words.groups())
    assert 0 < per_bar < 40
    assert left_out == 43 * 2 * (40 - per_bar)
    assert len(pack_json(part)) <= 30_000
    bars = part["bars"]
    assert isinstance(bars, list)
    assert {"lowest", "highest", "drawn"} == {entry[1] for entry in bars[0][6]}


def test_no_room_leaves_every_text_in_the_run_folder(tmp_path: Path) -> None:
    _, note = embed_texts(realistic_run(tmp_path), budget=10)
    assert note == (
        "This page holds at most 0 texts per group and measure; 3,440 more are in examples.parquet."
    )


def test_no_examples_at_all(tmp_path: Path) -> None:
    shown, _ = embed_texts(write_run(tmp_path, manifest(), {}), budget=1000)
    assert shown == {"texts": [], "bars": [], "words": {}}
