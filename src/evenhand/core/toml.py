"""Hand-written TOML: every problem with a file becomes one kind of error."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from evenhand.core.errors import InputError
from evenhand.core.regular_files import read_text

_Model = TypeVar("_Model", bound=BaseModel)

FORMAT: Final = "the keys and types of the format"
_LIMIT: Final = 2**63
_LARGEST: Final = 1 << 22
"""Maximum number of characters in a text: the library needs a few seconds for them."""
_DEEPEST: Final = 32
"""Maximum number of parts in a key: the library's time is quadratic, 29 s for 20,000 of them (40 kB)."""
_DEEP_KEY: Final = re.compile(
    # Only from the start of a part, without backtracking: else a long word is rescanned from each letter.
    r"""(?<![\w-])(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){"""
    f"{_DEEPEST}}}"
)


class StrictModel(BaseModel):
    """A section of a hand-written file: unknown keys are errors, and the values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def read_model(
    path: Path,
    model: type[_Model],
    *,
    fix: str,
    expected: str = FORMAT,
    parse: Callable[[str], Mapping[str, object]] | None = None,
) -> _Model:
    """The validated contents of a TOML file; raises an error that names the first invalid key.

    A file of another format comes with the function that parses its text.
    """
    try:
        return model.model_validate((parse or parse_toml)(read_text(path, encoding="utf-8-sig")))
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{path.name}: {describe_misfit(error)}", expected=expected, fix=fix) from error


def describe_misfit(error: OSError | ValueError) -> str:
    """Why a hand-written file cannot be used: the invalid key, or the reason that it is not TOML."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    if isinstance(error, OSError):
        return f"cannot be read ({error.strerror})"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8"
    return f"not valid TOML: {error}"


def parse_toml(text: str) -> dict[str, Any]:
    """The contents of a TOML text; raises `tomllib.TOMLDecodeError` for any invalid text.

    The library itself accepts more: unlimited nesting of brackets, and integers that no table can hold or
    that cannot even be printed. TOML integers have 64 bits. Texts that would take minutes are rejected
    before parsing; a value of many words separated only by full stops counts as such a key.

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
