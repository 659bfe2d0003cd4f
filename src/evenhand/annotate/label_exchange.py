"""``export_labels`` and ``import_labels``: people's answers to and from the formats of other tools."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from evenhand.annotate.agreement import describe_questions, read_source
from evenhand.annotate.label_formats import FORMATS, file_suffix, write_labels
from evenhand.annotate.label_set import LabelSet
from evenhand.annotate.options import ExportOptions, ImportOptions
from evenhand.audits.run_setup import RunPlan
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options


@dataclass(frozen=True, slots=True)
class LabelExchangeJob:
    """Answers that are read and checked, and where they go."""

    verb: str
    labels: LabelSet
    format: str
    out: Path

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        lines = (*describe_questions(self.labels), f"writes   {self.out} ({self.format})")
        return RunPlan(f"{self.verb} {self.labels.name}", lines, self.out)

    def run(self) -> list[Path]:
        """Write the files."""
        return write_labels(self.labels, self.out, self.format)


@checks_options
def export_labels(source: Path | str, **options: Unpack[ExportOptions]) -> list[Path]:
    """The files written: a study's answers as JSONL, CSV, or JSON for Label Studio or Argilla."""
    return prepare(source, verb="export", **options).run()


@checks_options
def import_labels(source: Path | str, **options: Unpack[ImportOptions]) -> list[Path]:
    """The file written: answers of Label Studio, Argilla or any table, as our JSONL.

    ``agreement``, ``validate`` and ``train`` read the other formats themselves: importing checks and keeps.
    """
    return prepare(source, verb="import", **options).run()


@checks_options
def prepare(
    source: Path | str, *, verb: str = "export", **options: Unpack[ExportOptions]
) -> LabelExchangeJob:
    """The answers read and checked, so that ``plan`` can be shown before ``run``."""
    kind = options["format"]
    if kind not in FORMATS:
        raise InputError(
            f"the format {kind!r} is not known", expected=", ".join(FORMATS), fix="name one with --format"
        )
    collected = read_source(source, options)
    out = options["out"]
    path = Path(out) if out else Path(f"{collected.name}-labels{file_suffix(kind)}")
    if path.is_dir():
        raise InputError(f"{path} is a folder", expected="a file to write", fix="name a file with --out")
    if path.exists() and path.resolve() == collected.source.resolve():
        raise InputError(
            f"{path} is read and would be overwritten", expected="another file", fix="name one with --out"
        )
    return LabelExchangeJob(verb, collected, kind, path)
