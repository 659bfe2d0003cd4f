"""Renamed objects: still importable under their former names for one release, with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping


def resolve_former_names(module: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """A module's ``__getattr__`` for renamed objects; ``names`` maps each former name to the new one."""

    def find(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} is now {names[name]}", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return find
