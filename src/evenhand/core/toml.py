"""TOML that people write: whatever is wrong with a file is one kind of error."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any, Final

_LIMIT: Final = 2**63
_LARGEST: Final = 1 << 22
"""Characters of a text at most: a few seconds of the library."""
_DEEPEST: Final = 32
"""Parts of a key at most: the library's time grows with their square, 29 s for 20,000 of them (40 kB)."""
_DEEP_KEY: Final = re.compile(
    # From the begin of a part alone, and never back: else a long word would be read from each of its letters.
    r"""(?<![\w-])(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){"""
    f"{_DEEPEST}}}"
)


def parse_toml(text: str) -> dict[str, Any]:
    """The contents of a TOML text; `tomllib.TOMLDecodeError` for every text that is none.

    The library itself lets others through: brackets nested without end, and numbers that no table holds and
    that cannot even be printed. TOML's whole numbers have 64 bits. What would take it minutes is refused
    before it is parsed; a value of many words with nothing but full stops between them counts as such a key.

    >>> parse_toml("a = 1")
    {'a': 1}
    """
    if len(text) > _LARGEST:
        raise tomllib.TOMLDecodeError(f"it has more than {_LARGEST >> 20} million characters")
    if _DEEP_KEY.search(text):
        raise tomllib.TOMLDecodeError(f"a key has more than {_DEEPEST} parts")
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError as error:
        raise tomllib.TOMLDecodeError("it is nested too deeply") from error
    except ValueError as error:
        raise tomllib.TOMLDecodeError(str(error)) from error
    for value in _values(content):
        if isinstance(value, int) and not -_LIMIT <= value < _LIMIT:
            raise tomllib.TOMLDecodeError("a whole number has more than 64 bits")
    return content


def _values(tree: object) -> Iterator[object]:
    """Every value inside lists and tables; parsed text is never nested deeper than Python can follow."""
    if isinstance(tree, dict | list):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from _values(value)
    else:
        yield tree
