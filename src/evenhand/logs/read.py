"""Recognises a log by its content and reads it; any other file is left to the reader of tables."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from evenhand.core.errors import InputError
from evenhand.logs.inspect_logs import read_eval_log, read_json_log
from evenhand.logs.lm_eval import is_sample, read_samples
from evenhand.logs.records import Log
from evenhand.store.files import json_lines


def read_log(path: Path) -> Log | None:
    """The log in a file; None where the file is not there, or is a table."""
    if not path.is_file():
        return None
    name = path.name.lower()
    if name.endswith(".eval"):
        return read_eval_log(path)
    if name.endswith((".json", ".json.gz")):
        return read_json_log(path)
    if name.endswith((".jsonl", ".jsonl.gz")) and _holds_samples(path):
        return read_samples(path)
    return None


def _holds_samples(path: Path) -> bool:
    """Whether the first line is a sample of lm-eval; what is wrong with a table, its own reader says."""
    try:
        return any(is_sample(row) for _, row in islice(json_lines(path), 1))
    except InputError:
        return False
