"""Values out of a run's manifest, typed at the border: a missing or odd value is empty, never an error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from evenhand.core.digests import Json
from evenhand.report.wording import format_name
from evenhand.store.run import Run


def read_value(source: Mapping[str, Json], *path: str) -> Json:
    """The value at a path of keys, or None where the path ends early."""
    value: Json = source
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def read_text(source: Mapping[str, Json], *path: str) -> str:
    """The value at a path as words; empty where there is none."""
    value = read_value(source, *path)
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return str(value)


def read_mapping(source: Mapping[str, Json], *path: str) -> Mapping[str, Json]:
    """The object at a path; empty where there is none."""
    value = read_value(source, *path)
    return value if isinstance(value, Mapping) else {}


def read_list(source: Mapping[str, Json], *path: str) -> Sequence[Json]:
    """The list at a path; a single word is a list of one."""
    value = read_value(source, *path)
    if isinstance(value, str):
        return [value] if value else []
    return value if isinstance(value, Sequence) else []


def read_objects(source: Mapping[str, Json], *path: str) -> list[Mapping[str, Json]]:
    """The objects in the list at a path."""
    return [item for item in read_list(source, *path) if isinstance(item, Mapping)]


def read_texts(source: Mapping[str, Json], *path: str) -> list[str]:
    """The list of words at a path; a single word is a list of one."""
    return [str(item) for item in read_list(source, *path)]


def read_numbers(source: Mapping[str, Json], *path: str) -> list[float]:
    """The numbers in the list at a path."""
    items = read_list(source, *path)
    return [float(item) for item in items if isinstance(item, int | float) and not isinstance(item, bool)]


def read_number(source: Mapping[str, Json], *path: str) -> float | None:
    """The number at a path, or None."""
    value = read_value(source, *path)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def format_level(run: Run, part: Sequence[str] = ("identity", "compare")) -> str:
    """The level of the run's intervals, in percent."""
    return f"{100 * (read_number(run.manifest, *part, 'level') or 0.95):g} %"


class Fact(NamedTuple):
    """One line of the provenance."""

    name: str
    value: str
    is_code: bool = False


def list_facts(run: Run, own: Iterable[Fact] = ()) -> list[Fact]:
    """The command, the run's own facts, then version, times, machine and stages; empty facts are left out."""
    manifest, stages = run.manifest, []
    for name in read_mapping(manifest, "stages"):
        record = read_mapping(manifest, "stages", name)
        state = read_text(record, "state")
        words = [] if state == "done" else [state]
        amounts = [(key, read_number(record, key)) for key in record]
        words += [f"{amount:,.0f} {format_name(key)}" for key, amount in amounts if amount is not None]
        try:
            started, ended = (datetime.fromisoformat(read_text(record, key)) for key in ("started", "ended"))
            words.append(f"{(ended - started).total_seconds():,.0f} s")
        except ValueError:
            pass
        stages.append(Fact(f"Stage {format_name(name)}", ", ".join(words)))
    facts = (
        Fact("Command to repeat", read_text(manifest, "command"), is_code=True),
        *own,
        Fact("evenhand", read_text(manifest, "package")),
        Fact("Started", read_text(manifest, "created")),
        Fact("Ended", read_text(manifest, "ended")),
        Fact("Execution", join_pairs(read_mapping(manifest, "execution"))),
        Fact("Machine", join_pairs(read_mapping(manifest, "hardware"))),
        *stages,
    )
    return [fact for fact in facts if fact.value]


def join_pairs(values: Mapping[str, Json]) -> str:
    """An object in words: its keys with their values; empty values are left out."""
    pairs = []
    for key, value in values.items():
        if value in (None, "", {}, []):
            continue
        if isinstance(value, Mapping):
            value = f"({join_pairs(value)})"
        pairs.append(f"{format_name(key)} {f'{value:g}' if isinstance(value, float) else value}")
    return ", ".join(pairs)
