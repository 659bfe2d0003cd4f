"""Values out of a run's manifest, typed at the border: a missing or odd value is empty, never an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenhand.core.digests import Json


def value_at(source: Mapping[str, Json], *path: str) -> Json:
    """The value at a path of keys, or None where the path ends early."""
    value: Json = source
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def text_at(source: Mapping[str, Json], *path: str) -> str:
    """The value at a path as words; empty where there is none."""
    value = value_at(source, *path)
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(str(item) for item in value)
    return str(value)


def mapping_at(source: Mapping[str, Json], *path: str) -> Mapping[str, Json]:
    """The object at a path; empty where there is none."""
    value = value_at(source, *path)
    return value if isinstance(value, Mapping) else {}


def objects_at(source: Mapping[str, Json], *path: str) -> list[Mapping[str, Json]]:
    """The objects in the list at a path."""
    value = value_at(source, *path)
    if not isinstance(value, Sequence):
        return []
    return [item for item in value if isinstance(item, Mapping)]


def texts_at(source: Mapping[str, Json], *path: str) -> list[str]:
    """The list of words at a path; a single word is a list of one."""
    value = value_at(source, *path)
    if isinstance(value, str):
        return [value] if value else []
    return [str(item) for item in value] if isinstance(value, Sequence) else []


def numbers_at(source: Mapping[str, Json], *path: str) -> list[float]:
    """The numbers in the list at a path."""
    value = value_at(source, *path)
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [float(item) for item in value if isinstance(item, int | float) and not isinstance(item, bool)]


def number_at(source: Mapping[str, Json], *path: str) -> float | None:
    """The number at a path, or None."""
    value = value_at(source, *path)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)
