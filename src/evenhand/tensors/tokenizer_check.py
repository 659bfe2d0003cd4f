"""What a tokenizer's files ask for, looked at before a library does it.

The library ends the process where memory does not suffice: there is no error that could be caught.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from evenhand.core.errors import ModelError
from evenhand.core.regular_files import read_text

_GROWTH: Final = 10_000
"""How many times longer a text may become: published tokenizers write a space as one or three bytes, and
frame a text with a few tokens."""
_MOST: Final = 1 << 20
"""Tokens a text may be filled up to."""
_TEXT_STEPS: Final = ("normalizer", "pre_tokenizer", "decoder")
_COUNTS: Final = ("extra_ids", "offset")
"""Settings of some tokenizers that make so many tokens."""
_NEW_TOKENS: Final = 1 << 16


def check_tokenizer(folder: Path) -> None:
    """An error for a ``tokenizer.json`` or ``tokenizer_config.json`` that would take any amount of memory."""
    for name, check in (("tokenizer.json", check_steps), ("tokenizer_config.json", _check_counts)):
        if (folder / name).is_file():
            check(folder / name)


def check_steps(path: Path) -> None:
    """An error for a ``tokenizer.json`` whose steps make texts longer without bound.

    Whatever else is wrong with it, the library says.
    """
    content, growth = _content(path), 1
    for node in (node for name in _TEXT_STEPS for node in _nodes(content.get(name))):
        added = max(len(str(node.get(name) or "")) for name in ("content", "prepend"))
        # A pattern may match between two letters, and so add to each of them.
        growth *= max(1, added + ("Regex" in str(node.get("pattern"))))
        table = node.get("precompiled_charsmap")
        if isinstance(table, str) and not _is_whole(table):
            raise _refusal(path, "has a table of characters that is cut")
    for node in _nodes(content.get("post_processor")):
        growth *= _framed(node)
    if growth > _GROWTH:
        raise _refusal(path, f"makes texts more than {_GROWTH:,} times longer")
    size = max((size for node in _nodes(content.get("padding")) for size in _sizes(node)), default=0)
    if size > _MOST:
        raise _refusal(path, f"fills texts up to {size:,} tokens")


def _check_counts(path: Path) -> None:
    content = _content(path)
    for name in _COUNTS:
        count = content.get(name)
        if isinstance(count, int | float) and count > _NEW_TOKENS:
            raise _refusal(path, f"asks for {count:,} tokens more ({name})")


def _content(path: Path) -> Mapping[str, object]:
    try:
        content = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        raise _refusal(path, f"cannot be read: {str(error)[:300]}") from error
    return content if isinstance(content, dict) else {}


def _refusal(path: Path, said: str) -> ModelError:
    return ModelError(
        f"{path} {said}",
        expected="a tokenizer as its library saves it",
        fix="download or save the tokenizer again",
    )


def _framed(node: Mapping[str, object]) -> int:
    """How many times longer a template makes a text of one token."""
    template, special = node.get("single"), node.get("special_tokens")
    if not isinstance(template, list):
        return 1
    most = max((len(ids) for one in _nodes(special) if isinstance(ids := one.get("ids"), list)), default=1)
    return max(1, len(template) * max(1, most))


def _is_whole(table: str) -> bool:
    """Whether a table is as long as its first four bytes say: the library makes room for that."""
    try:
        data = base64.b64decode(table)
    except ValueError:
        return False
    return len(data) >= 4 and struct.unpack("<I", data[:4])[0] <= len(data) - 4


def _sizes(node: Mapping[str, object]) -> Iterator[int]:
    return (value for name in ("Fixed", "pad_to_multiple_of") if isinstance(value := node.get(name), int))


def _nodes(tree: object) -> Iterator[Mapping[str, object]]:
    """Every object inside; parsed JSON is never nested deeper than Python can follow."""
    if isinstance(tree, dict):
        yield tree
    if isinstance(tree, dict | list):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from _nodes(part)
