"""``evenhand corpus``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypedDict

import typer

from evenhand.cli.commands import Argument, takes
from evenhand.core.options import Option
from evenhand.corpus.options import CorpusOptions


@takes(
    CorpusOptions,
    Argument(
        "paths",
        list[str],
        "Files, folders, globs or URLs of text, JSONL, CSV, TSV, Parquet or MediaWiki XML, plain or "
        "compressed (gzip, bz2, xz, zstd). NAME=PATH names one of several corpora.",
    ),
)
def command(paths: list[str], *, dry_run: bool, **options: Any) -> None:
    """Count emotions in a corpus, and the groups they share a sentence with."""
    from evenhand.cli.console import output, print_path, print_warning
    from evenhand.cli.entry import PARTIAL
    from evenhand.cli.run_command import finished
    from evenhand.corpus.scan import prepare
    from evenhand.report.render_run import summarise_run

    run = finished(prepare(paths, **options), dry_run=dry_run)
    if run is None:
        return
    output.print(summarise_run(run))
    for warning in run.manifest["warnings"]:
        print_warning(warning)
    print_path(run.path / "report.html", "report: ")
    problems = run.table("problems")
    for file, byte, reason in problems.head(20).iter_rows():
        print_warning(f"{file}{'' if byte is None else f', byte {byte:,}'}: {reason}")
    if problems.height:
        print_warning(f"{problems.height:,} problems; the rest was counted. All are in problems.parquet")
        raise typer.Exit(PARTIAL)


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

    from evenhand.cli.console import output, print_path, print_warning
    from evenhand.corpus.term_lists import expand_terms, load_terms
    from evenhand.store.atomic_writes import write_text

    terms = load_terms(list(files), needs_both=False)
    for problem in terms.problems:
        print_warning(str(problem))
    longer = expand_terms(terms)
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
