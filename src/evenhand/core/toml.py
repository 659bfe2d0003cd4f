"""TOML that people write: whatever is wrong with a file is one kind of error."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from evenhand.core.errors import InputError
from evenhand.core.regular_files import read_text

_Model = TypeVar("_Model", bound=BaseModel)

FORMAT: Final = "the keys and types of the format"
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


class StrictModel(BaseModel):
    """A part of a file that people write: an unknown key is an error, and nothing changes once it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def read_model(path: Path, model: type[_Model], *, fix: str, expected: str = "") -> _Model:
    """The checked contents of a TOML file; the first thing that does not fit is an error that names it."""
    try:
        return model.model_validate(parse_toml(read_text(path, encoding="utf-8-sig")))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path.name}: {describe_misfit(error)}", expected=expected or FORMAT, fix=fix
        ) from error


def describe_misfit(error: OSError | ValueError) -> str:
    """Why a file that people write cannot be used: the key that does not fit, or what it is instead."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    if isinstance(error, OSError):
        return f"cannot be read ({error.strerror})"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8"
    return f"no valid TOML: {error}"


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
