from __future__ import annotations

import time
import tomllib

import pytest

from evenhand.core.toml import parse_toml

MANY = 200_000


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * MANY + " = 1",
        "[" + "a . " * MANY + "a]",
        "[[" + "a." * MANY + "a]]",
        "x = {" + "a." * MANY + "a = 1}",
        '"a b"' + '."a \\" b".\'c d\'' * MANY + " = 1",
    ],
    ids=["key", "header", "array", "inline", "quoted"],
)
def test_a_key_of_endless_parts_is_refused_at_once(text: str) -> None:
    started = time.process_time()
    with pytest.raises(tomllib.TOMLDecodeError, match=r"^a key has more than 32 parts"):
        parse_toml(text)
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "text",
    [
        "a" * 400_000 + " = 1",
        'a = "' + "x" * 400_000 + '"',
        'a = "' + "one two. " * 40_000 + '"',
        "# " + '" ' * 200_000 + "\na = 1",
        "# " + "a.b" * 100_000 + "\na = 1",
        "a = '" + "." * 400_000 + "'",
    ],
    ids=["word", "text", "sentences", "quotes", "dots", "ellipsis"],
)
def test_long_texts_are_looked_through_once(text: str) -> None:
    started = time.process_time()
    try:
        parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        assert "32 parts" in str(error)
    assert time.process_time() - started < 2


def test_keys_of_a_few_parts_are_read() -> None:
    assert parse_toml('a."b c".d = "www.a.b.org, e.g. 1.2.3"') == {
        "a": {"b c": {"d": "www.a.b.org, e.g. 1.2.3"}}
    }
    key = ".".join(["a"] * 32)
    assert parse_toml(f"{key} = 1")["a"]


def test_a_text_without_end_is_refused() -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match=r"^it has more than 4 million characters"):
        parse_toml("#\n" * 3_000_000)
