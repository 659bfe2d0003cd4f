"""The commands that study things other than generated texts: corpora, classifiers, metrics and papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypedDict

import typer

from evenhand.annotate.options import ValidateOptions
from evenhand.cli.commands import Argument, takes
from evenhand.cli.console import (
    end_with_problems,
    print_lines,
    print_path,
    print_summary,
    print_warning,
    run_job,
    run_to_end,
)
from evenhand.core.options import Option
from evenhand.corpus.options import CorpusOptions
from evenhand.papers import ReplicateOptions
from evenhand.probes.options import ProbeOptions


@takes(
    CorpusOptions,
    Argument(
        "paths",
        list[str],
        "Files, folders, globs or URLs of text, JSONL, CSV, TSV, Parquet or MediaWiki XML, plain or "
        "compressed (gzip, bz2, xz, zstd). NAME=PATH names one of several corpora.",
    ),
)
def corpus(paths: list[str], *, dry_run: bool, **options: Any) -> None:
    """Count emotions in a corpus, and the groups mentioned in the same sentences."""
    from evenhand.corpus.scan import prepare
    from evenhand.store.text_sources import ReadProblem

    if run := run_to_end(prepare(paths, **options), dry_run=dry_run):
        print_summary(run)
        problems = [ReadProblem(*row) for row in run.table("problems").iter_rows()]
        end_with_problems(problems, "the rest was counted. All are in problems.parquet")


terms = typer.Typer(help="Term lists for corpora.", no_args_is_help=True)


@terms.callback()
def _options() -> None:
    """Term lists for corpora."""


class _ExpandOptions(TypedDict, total=False):
    out: Annotated[Path | None, Option("Write the expanded lists to this JSON file.")]


@terms.command("expand")
@takes(_ExpandOptions, Argument("files", list[str], "JSON, TOML, or NAME=FILE with one term per line."))
def expand(files: list[str], *, out: Path | None = None) -> None:
    """Add inflections to term lists, and show the added forms."""
    from evenhand.corpus.term_lists import expand_terms, load_terms

    lists = load_terms(files, needs_both=False)
    for problem in lists.problems:
        print_warning(str(problem))
    longer = expand_terms(lists)
    for name, forms in longer.added.items():
        print_lines(f"{name}: +{len(forms)}  {', '.join(forms) or 'nothing'}")
    if out is not None:
        longer.terms.write(out)
        print_path(out, "written: ")


@takes(
    ProbeOptions,
    Argument(
        "classifier",
        str,
        "An emotion classifier: a Hub id or folder, replay:FILE with predictions, endpoint:URL, or the "
        "embedded one (default emotion).",
        "emotion",
    ),
)
def probe(classifier: str, *, dry_run: bool, **options: Any) -> None:
    """Compare an emotion classifier's predictions for the same sentence about different groups."""
    from evenhand.probes.probe import prepare

    run_job(prepare(classifier, **options), dry_run=dry_run)


class _ValidateOptions(ValidateOptions, total=False):
    human: Annotated[
        Path,
        Option(
            "Human labels: a study folder, an export, or a table of texts and labels (JSONL, CSV, "
            "TSV, Parquet; JSON of Label Studio or Argilla).",
            is_required=True,
        ),
    ]


@takes(
    _ValidateOptions,
    Argument(
        "metric",
        str,
        "A metric: sentiment, regard=ORG/NAME@REV ... (see `evenhand list metrics`).",
        complete="metrics",
    ),
)
def validate(metric: str, *, human: Path, dry_run: bool, **options: Any) -> None:
    """Compare a metric with human labels: rank correlation, accuracy, F1, the best threshold."""
    from evenhand.annotate.validate import prepare

    run_job(prepare(metric, human, **options), dry_run=dry_run)


@takes(ReplicateOptions, Argument("paper", str, "bold, regard, affective or political.", complete="papers"))
def replicate(paper: str, *, dry_run: bool, **options: Any) -> None:
    """Reproduce a paper's tables and figures for any model, next to the published numbers."""
    from evenhand.papers.replicate import prepare

    if run := run_to_end(prepare(paper, **options), dry_run=dry_run):
        for warning in run.manifest["warnings"]:
            print_warning(warning)
        files = run.manifest["stages"]["replicate"]["files"]
        print_path(run.path, f"{len(files)} files in ", "; read report.html first")
