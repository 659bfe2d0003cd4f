"""TOML that people write: whatever is wrong with a file is one kind of error."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any, Final

_LIMIT: Final = 2**63


def parse_toml(text: str) -> dict[str, Any]:
    """The contents of a TOML text; `tomllib.TOMLDecodeError` for every text that is none.

    The library itself lets others through: brackets nested without end, and numbers that no table holds and
    that cannot even be printed. TOML's whole numbers have 64 bits.

    >>> parse_toml("a = 1")
    {'a': 1}
    """
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError as error:
        raise tomllib.TOMLDecodeError("it is nested too deeply") from error
    except ValueError as error:
        raise tomllib.TOMLDecodeError(str(error)) from error
    for value in _values(found):
        if isinstance(value, int) and not -_LIMIT <= value < _LIMIT:
            raise tomllib.TOMLDecodeError("a whole number has more than 64 bits")
    return found


def _values(tree: object) -> Iterator[object]:
    """Every value inside lists and tables; parsed text is never nested deeper than Python can follow."""
    if isinstance(tree, dict | list):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from _values(value)
    else:
        yield tree
