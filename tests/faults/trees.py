"""What a command left in a folder, compared with what another one left."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import polars as pl

LOCKS = frozenset({".lock", ".lock.holder"})
"""May stay: a lock is held by a process, not by its file."""
_ASIDE = frozenset({"said"})
_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\b[\d.,]+ (s|min|h)(?= in all\\?\)|</dd>|$| \|)"
    r"|(reading and unpacking|counting)(?= \\?\()|(?<=^id = )\"\w{32}\"",
    re.MULTILINE,
)
"""Times, durations, and the random name of a study."""
_CACHE = "cache/cache.sqlite"
Tables = dict[str, list[tuple[object, ...]]]
CLOCKS = frozenset({"created", "started", "ended", "limited_by", "seconds"})
"""Fields of ``run.json`` that say when, or how fast: the only ones in which two runs may differ."""


def leftovers(folder: Path) -> list[Path]:
    """Temporary files that a killed command left."""
    return sorted(path for path in folder.rglob("*") if path.name.endswith((".part", ".tmp", ".partial")))


def differences(clean: Path, other: Path, *, whole_cache: bool = True) -> list[str]:
    """In which files two folders differ; empty where they hold the same, but for clocks.

    Without ``whole_cache`` the cache may lack rows: one that could not be written is a slower run.
    """
    names = [_names(clean), _names(other)]
    found = [f"{name}: only in one" for name in sorted(names[0] ^ names[1]) if name != _CACHE or whole_cache]
    for name in sorted(names[0] & names[1]):
        if name == _CACHE and not whole_cache:
            same = _holds(rows(clean / name), rows(other / name))
        else:
            same = _content(clean / name) == _content(other / name)
        if not same:
            found.append(f"{name}: {_where(clean / name, other / name)}")
    return found


def _holds(whole: Tables, part: Tables) -> bool:
    return all(set(found) <= set(whole.get(name, ())) for name, found in part.items())


def _names(folder: Path) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name not in LOCKS | _ASIDE)
    return {
        str(path.relative_to(folder)) for path in found if not path.name.endswith((".part", "-wal", "-shm"))
    }


def _content(path: Path) -> object:
    if path.suffix == ".parquet":
        table = pl.read_parquet(path)
        if "shards" in path.parts and "name" in table.columns:
            table = table.filter(~pl.col("name").str.starts_with("clock."))
        return table.schema, table.to_dicts()
    if path.suffix in (".sqlite", ".db"):
        return rows(path)
    if path.name in ("run.json", "training.json", "report.json"):
        return timeless(json.loads(path.read_text(encoding="utf-8")))
    if path.suffix in (".html", ".md", ".toml", ".svg", ".xml", ".json"):
        return _MOMENT.sub("MOMENT", path.read_text(encoding="utf-8"))
    return path.read_bytes()


def _where(one: Path, other: Path) -> str:
    return f"{str(_content(one))[:300]} != {str(_content(other))[:300]}"


def timeless(value: object) -> object:
    """A manifest without its clocks."""
    if isinstance(value, dict):
        return {
            key: timeless(item)
            for key, item in value.items()
            if key.rpartition("_")[2] not in CLOCKS and key not in CLOCKS
        }
    if isinstance(value, list):
        return [timeless(item) for item in value]
    return _MOMENT.sub("MOMENT", value) if isinstance(value, str) else value


def rows(path: Path) -> Tables:
    """The tables of a SQLite file, sorted; a damaged file is an error. Rates are clocks."""
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        found = {
            name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr)
            for name in names
            if name != "rates"
        }
    connection.close()
    return found
