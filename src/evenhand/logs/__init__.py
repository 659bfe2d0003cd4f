"""Files from other evaluation tools, as tables of texts: samples of lm-eval, logs of Inspect."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

from evenhand.core.regular_files import open_regular
from evenhand.logs.inspect_logs import read_eval_log, read_json_log
from evenhand.logs.lm_eval_samples import is_lm_eval_sample, read_samples
from evenhand.logs.log_records import ToolLog

_LONGEST = 1 << 26
"""Number of bytes of the first line to inspect."""


def read_log(path: Path) -> ToolLog | None:
    """The log in a file; None if the file does not exist or is a table."""
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
    """Whether the first line is an lm-eval sample; invalid tables are reported by the table reader."""
    try:
        with open_regular(path) as raw, gzip.open(raw) if path.suffix.lower() == ".gz" else raw as file:
            first = json.loads(file.readline(_LONGEST).decode("utf-8-sig", "replace"))
    except (OSError, EOFError, zlib.error, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and is_lm_eval_sample(first)
