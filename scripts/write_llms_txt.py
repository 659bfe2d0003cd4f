"""Writes ``llms.txt``, the map of the documentation for programs (llmstxt.org), from the navigation.

It stands twice: in ``docs``, from where it goes to the root of the site, and at the root of the repository.
A test fails when either is stale.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
DOCS: Final = ROOT / "docs"
FILES: Final[Mapping[Path, str]] = {DOCS / "llms.txt": "", ROOT / "llms.txt": "docs/"}
"""Where the map is written, and what stands before its links."""

SUMMARY: Final = """\
> evenhand measures social and political bias in what language models write, in the classifiers and corpora
> around them, and mitigates it while a model writes. Everything runs offline, on models that ship with it.

Commands begin with `evenhand`, every command has a function of the same arguments in Python, and every number
comes with an interval, its sample size and a corrected test. Gaps are group minus baseline; shares are from 0
to 1 in tables. We *measure* and *mitigate*: no result says that a model is free of bias.
"""
OPTIONAL: Final = ("Decisions", "Performance", "Scale")
"""What may be left out where room is short."""


def text(prefix: str) -> str:
    """The file as it should be, with links that begin with ``prefix``."""
    sections: dict[str, list[str]] = {"Start": []}
    for entry in yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]:
        title, value = next(iter(entry.items())) if isinstance(entry, dict) else ("", entry)
        section = "Optional" if title in OPTIONAL else title if isinstance(value, list) else "Start"
        sections.setdefault(section, []).extend(_lines(value, prefix))
    optional = sections.pop("Optional", [])
    optional += _lines(sorted(f"adr/{path.name}" for path in (DOCS / "adr").glob("0*.md")), prefix)
    parts = ["# evenhand\n", SUMMARY]
    parts += [f"## {title}\n\n" + "\n".join(lines) + "\n" for title, lines in sections.items()]
    return "\n".join([*parts, "## Optional\n\n" + "\n".join(optional) + "\n"])


def _lines(value: object, prefix: str) -> Iterator[str]:
    for page in value if isinstance(value, list) else [value]:
        path = next(iter(page.values())) if isinstance(page, dict) else str(page)
        title, about = _told(DOCS / path)
        yield f"- [{title}]({prefix}{path}): {about}"


def _told(path: Path) -> tuple[str, str]:
    """A page's title and the first sentence of its prose."""
    lines = path.read_text(encoding="utf-8")
    title = re.search(r"^# (.+)$", lines, flags=re.MULTILINE)
    assert title, f"{path} has no title"
    return title[1], _sentence(lines[title.end() :])


def _sentence(body: str) -> str:
    body = re.sub(
        r"<!--.*?-->|^```.*?^```|^\|.*?$|^#+ .*?$|!\[.*?\]\(.*?\)", "", body, flags=re.DOTALL | re.MULTILINE
    )
    # A paragraph that is all slanted says who wrote the page, not what it tells.
    parts = (part.strip() for part in re.split(r"\n\s*\n", body))
    prose = next((part for part in parts if part and not re.fullmatch(r"\*[^*]+\*", part)), "")
    prose = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(prose.split()))
    prose = re.sub(r"\*\*Context\.\*\* ", "", prose)
    end = re.search(r"[.:?!](?= [A-Z0-9`*]|$)", prose)
    sentence = prose[: end.end()] if end else prose
    return re.sub(r"[:]$", ".", sentence)


if __name__ == "__main__":
    for file, prefix in FILES.items():
        file.write_text(text(prefix), encoding="utf-8")
