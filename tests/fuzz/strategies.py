"""Inputs of the right form with odd values in them: the contents of a valid file, edited in a few places."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Final

from hypothesis import strategies as st
from tests.fuzz.harness import Tree

_WORDS: Final = (
    *(
        "",
        " ",
        "\0",
        "\ud800",
        "\ufeff",
        "\u202e",
        "a\u0301",
        "ﬀ",
        "İ",
        "ß",
        "<script>alert(1)</script>",
        "=cmd|' /C",
    ),
    *(
        "(rest)",
        "(all)",
        "(none)",
        "{",
        "}",
        "{0}",
        "{person!r:>999999999}",
        "../../etc/passwd",
        "/dev/zero",
        "nan",
    ),
    *("XYZ", "__class__", "[[[[", "a" * 5000, "\n", "\t", "\r\n", '"', "'", "1e999", "-0", "٣", "\x1b[31m"),
)
_NUMBERS: Final = (
    *(0, -1, 1, 2**31, 2**63, -(2**63), 10**400, 0.0, -0.0, 1e308, -1e-320),
    *(float("inf"), float("nan"), float("-inf")),
)


def _deep(depth: int) -> Tree:
    tree: Tree = "end"
    for number in range(depth):
        tree = [tree] if number % 2 else {"a": tree}
    return tree


odd_values: st.SearchStrategy[Tree] = st.one_of(
    st.sampled_from(_WORDS),
    st.sampled_from(_NUMBERS),
    st.none() | st.booleans() | st.integers() | st.floats(),
    st.text(max_size=20),
    st.just([]),
    st.just({}),
    st.just([None, True, "a", 1]),
    st.just({"a": {"b": [1]}, "": None}),
    st.sampled_from([20, 150]).map(_deep),
)
"""What stands where something else is meant to."""


@st.composite
def edited(draw: st.DrawFn, tree: Tree) -> Tree:
    """The tree after one to four edits: a value replaced, left out, doubled, wrapped or renamed."""
    root = [copy.deepcopy(tree)]
    for _ in range(draw(st.integers(1, 4))):
        places = list(_places(root))
        if not places:
            break
        holder, key = places[draw(st.integers(0, len(places) - 1))]
        _edit(draw, holder, key)
    return root[0] if root else None


def _edit(draw: st.DrawFn, holder: list[Tree] | dict[str, Tree], key: int | str) -> None:
    action = draw(st.sampled_from(("replace", "replace", "leave out", "double", "wrap", "rename")))
    if isinstance(holder, list):
        assert isinstance(key, int)
        match action:
            case "replace" | "rename":
                holder[key] = copy.deepcopy(draw(odd_values))
            case "leave out":
                del holder[key]
            case "double":
                holder.insert(key, copy.deepcopy(holder[key]))
            case _:
                holder[key] = [holder[key]]
        return
    assert isinstance(key, str)
    match action:
        case "replace":
            holder[key] = copy.deepcopy(draw(odd_values))
        case "leave out":
            del holder[key]
        case "wrap":
            holder[key] = {key: holder[key]}
        case _:
            name = str(draw(st.sampled_from(_WORDS)))
            holder[name] = copy.deepcopy(holder[key]) if action == "double" else holder.pop(key)


def _places(tree: Tree) -> Iterator[tuple[list[Tree] | dict[str, Tree], int | str]]:
    """Every value of a tree, as what holds it and under which key."""
    if isinstance(tree, list):
        for number, value in enumerate(tree):
            yield tree, number
            yield from _places(value)
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield tree, key
            yield from _places(value)
