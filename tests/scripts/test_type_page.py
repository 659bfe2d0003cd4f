"""Who carries a block of a page out, and what is typed for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.docs.pages import Block
from tests.scripts.loading import script

pages = script("type_page")


def block(text: str, language: str = "console", **said: str) -> Block:
    return Block("page.md", 1, language, text, {key.replace("_", " "): value for key, value in said.items()})


@pytest.mark.parametrize(
    ("given", "who"),
    [
        (block("evenhand score\n"), "shell"),
        (block("make audit\n", not_run="CI types it"), "make"),
        (block("pip install .\n", not_run="installs packages"), "pip"),
        (block("evenhand audit gpt2\n", not_run="downloads"), "nobody"),
        (block("import evenhand\n", "python"), "python"),
        (block("a,b\n", "text"), "nobody"),
        (block("[gate]\n", "toml", file="evenhand.toml"), "file"),
    ],
)
def test_who_carries_it_out(given: Block, who: str) -> None:
    assert pages.kind(given) == who


def test_output_is_not_typed_and_words_are_replaced_whole() -> None:
    given = block("$ evenhand audit gpt2 --out gpt2-run\n10 gaps\n$ ls\n", **{"with": "gpt2 = stub"})
    assert pages.typed(given) == "evenhand audit stub --out gpt2-run\nls"


def test_a_page_is_typed_in_one_folder(tmp_path: Path) -> None:
    typist = pages.Typist(tmp_path, [])
    assert not typist.follow(block("10 gaps\n", "text"))
    assert typist.follow(block("a = 1\n", "toml", file="sub/a.toml"))
    assert typist.follow(block("cat sub/a.toml > b.txt  # a comment\n"))
    assert typist.follow(block("number = 3\n", "python"))
    assert typist.follow(block("open('c.txt', 'w').write(str(number))\n", "python"))
    assert (tmp_path / "b.txt").read_text() == "a = 1\n"
    assert (tmp_path / "c.txt").read_text() == "3"
    assert typist.follow(block("exit 1\n", exits_with="1"))
    with pytest.raises(SystemExit, match=r"^page\.md:1: ended with 5, not 0:\nexit 5\n$"):
        typist.follow(block("exit 5\n"))


def test_the_program_of_this_environment_is_the_one_that_is_typed(tmp_path: Path) -> None:
    typist = pages.Typist(tmp_path, [])
    typist.follow(block("command -v python > where.txt\n"))
    assert Path((tmp_path / "where.txt").read_text().strip()).parent == Path(sys.executable).parent
