"""The fenced blocks of the documentation, with what the comment before each says about running it.

A comment of HTML right before a block stands in the source and is not shown:

- ``<!-- not run: reason -->``: the block cannot run here. How many there are is pinned by a test.
- ``<!-- slow: reason -->``: it runs with ``--run-slow`` alone.
- ``<!-- needs: bold -->``: it needs a folder of published data, or a library that is not installed with ours,
  and is left out where that is absent.
- ``<!-- given: name -->``: a function of ``tests/docs/given.py`` makes what the reader is said to have.
- ``<!-- file: name -->``: the block is the content of that file.
- ``<!-- with: gpt2 = stub; --samples = --limit 20 --samples -->``: words that are replaced by others.
- ``<!-- quickly with: ... -->``: the same, but only without ``--run-slow``.
- ``<!-- exits with: 1 -->``: the last command ends so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT: Final = Path(__file__).resolve().parents[2]
KEYS: Final = ("not run", "slow", "needs", "given", "file", "with", "quickly with", "exits with")
RUN: Final = ("console", "python")
READ: Final = ("toml", "json", "yaml")
SHOWN: Final = ("text", "csv")
"""What a reader is shown: output, a synopsis. Nothing to run."""

_COMMENT: Final = re.compile(r"<!--\s*(.*?)\s*-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    said: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Where it stands, as an editor opens it."""
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Every page whose blocks are looked at."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for folder in ("docs", "examples", "replications"):
        found += sorted((ROOT / folder).rglob("*.md"))
    return [path for path in found if path.name != "command-line.md"]


def name_of(path: Path) -> str:
    """A page's path in the repository."""
    return path.relative_to(ROOT).as_posix()


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    tokens = MarkdownIt().parse(path.read_text(encoding="utf-8"))
    return [
        Block(
            page=name_of(path),
            line=(token.map or [0])[0] + 1,
            language=token.info.split()[0] if token.info.strip() else "",
            text=token.content,
            said=_said(tokens[:number], name_of(path)),
        )
        for number, token in enumerate(tokens)
        if token.type == "fence"
    ]


def _said(tokens: Sequence[Token], page: str) -> dict[str, str]:
    """What the comments right before a block say; each is a token of its own."""
    before = takewhile(lambda token: token.type == "html_block", reversed(tokens))
    said = {}
    for comment in (found for token in before for found in _COMMENT.findall(token.content)):
        key, _, value = comment.partition(":")
        assert key in KEYS, f"{page}: <!-- {comment} --> is none of {', '.join(KEYS)}"
        assert value.strip(), f"{page}: <!-- {comment} --> says nothing after the colon"
        said[key] = " ".join(value.split())
    return said
