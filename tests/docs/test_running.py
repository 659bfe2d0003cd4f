"""The reader of pages: what it takes from a comment, what it types, what it refuses."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.docs.pages import Block, blocks
from tests.docs.running import Reader, commands

PAGE = """\
# A page

<!-- not run: needs a GPU -->
<!-- with: a = b -->
```console
train a
```

A sentence stands between a comment and its block:

<!-- slow: minutes -->

text

- in a list

  ```python
  x = 1
  ```
"""


def page(folder: Path, text: str) -> list[Block]:
    file = folder / "page.md"
    file.write_text(text, encoding="utf-8")
    return blocks(file)


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    return Reader(tmp_path, monkeypatch, False, ExitStack())


def test_comments_belong_to_the_block_right_after_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.docs.pages.ROOT", tmp_path)
    first, second = page(tmp_path, PAGE)
    assert (first.language, first.line) == ("console", 5)
    assert first.said == {"not run": "needs a GPU", "with": "a = b"}
    assert (second.language, second.text, second.said) == ("python", "x = 1\n", {})


def test_a_comment_nobody_knows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.docs.pages.ROOT", tmp_path)
    with pytest.raises(AssertionError, match="is none of not run, slow"):
        page(tmp_path, "<!-- skip: why -->\n```console\nls\n```\n")


def test_commands_continue_end_in_comments_and_show_output() -> None:
    assert list(commands('evenhand audit \\\n  --max "a b"   # said\n\n# nothing\nls\n')) == [
        ["evenhand", "audit", "--max", "a b"],
        ["ls"],
    ]
    assert list(commands("$ evenhand list\nsuites\n$ ls\n")) == [["evenhand", "list"], ["ls"]]


def test_words_are_replaced_and_dropped(reader: Reader) -> None:
    block = Block(
        "p", 1, "console", "", {"with": "gpt2 = stub --limit 4; --address =", "quickly with": "4 = 2"}
    )
    assert reader._replaced(["audit", "gpt2", "runs/gpt2", "--address"], block) == [
        *("audit", "stub", "--limit", "2", "runs/gpt2")
    ]
    reader.in_full = True
    assert reader._replaced(["gpt2"], block) == ["stub", "--limit", "4"]


def test_an_exit_code_that_nobody_wanted_fails(reader: Reader) -> None:
    block = Block("p", 1, "console", "evenhand show nobody\n")
    with pytest.raises(AssertionError, match="p:1: evenhand show nobody ended with 2, not 0"):
        reader.follow(block)
    reader.follow(Block("p", 1, "console", block.text, {"exits with": "2"}))


def test_a_page_has_no_network(reader: Reader) -> None:
    with pytest.raises(OSError, match=r"a page of the documentation asked for 192\.0\.2\.1"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)


def test_blocks_share_names_and_files(reader: Reader) -> None:
    reader.follow(Block("p", 1, "toml", "x = 1\n", {"file": "a/b.toml"}))
    reader.follow(Block("p", 5, "python", "from pathlib import Path\nfound = Path('a/b.toml').read_text()\n"))
    reader.follow(Block("p", 9, "python", "assert found == 'x = 1\\n'\n"))
    with pytest.raises(AssertionError, match="p:1: a block of rust"):
        reader.follow(Block("p", 1, "rust", ""))
