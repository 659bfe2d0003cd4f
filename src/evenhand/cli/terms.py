"""``evenhand terms``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict

import typer

from evenhand.cli.commands import Argument, takes
from evenhand.core.options import Option

app = typer.Typer(help="Term lists for corpora.", no_args_is_help=True)


@app.callback()
def _options() -> None:
    """Term lists for corpora."""


class _Options(TypedDict, total=False):
    out: Annotated[Path | None, Option("Write the longer lists to this JSON file.")]


@app.command("expand")
@takes(_Options, Argument("files", list[str], "JSON, TOML, or NAME=FILE with one term a line."))
def expand_command(files: list[str], *, out: Path | None = None) -> None:
    """Add inflections to term lists, and show what was added."""
    import json

    from evenhand.cli.console import output, print_path, warn
    from evenhand.corpus.inflections import expand
    from evenhand.corpus.terms import load_terms
    from evenhand.store.atomic import write_text

    terms = load_terms(list(files), needs_both=False)
    for problem in terms.problems:
        warn(str(problem))
    longer = expand(terms)
    for name, forms in longer.added.items():
        shown = ", ".join(forms) or "nothing"
        output.print(f"{name}: +{len(forms)}  {shown}", highlight=False, soft_wrap=True, markup=False)
    if out is not None:
        groups: dict[str, dict[str, list[str]]] = {}
        for group in longer.terms.groups:
            groups.setdefault(group.axis, {})[group.name] = list(group.terms)
        emotions = {name: list(part) for name, part in longer.terms.emotions.items()}
        content = {"emotions": emotions, "groups": groups}
        write_text(out, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
        print_path(out, "written: ")
