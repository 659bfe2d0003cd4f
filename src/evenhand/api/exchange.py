"""``export_labels`` and ``import_labels``: people's answers to and from the formats of other tools."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from evenhand.annotate.collected import Collected
from evenhand.annotate.formats import FORMATS, suffix_of, write_labels
from evenhand.api.agreement import described, read_source
from evenhand.api.parts import Plan
from evenhand.api.people_options import ExportOptions, ImportOptions
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options


@dataclass(frozen=True, slots=True)
class Exchange:
    """Answers that are read and checked, and where they go."""

    verb: str
    collected: Collected
    format: str
    out: Path

    def plan(self) -> Plan:
        """What will be done, before it is done."""
        lines = (*described(self.collected), f"writes   {self.out} ({self.format})")
        return Plan(f"{self.verb} {self.collected.name}", lines, self.out)

    def run(self) -> list[Path]:
        """Write the files."""
        return write_labels(self.collected, self.out, self.format)


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
def prepare(source: Path | str, *, verb: str = "export", **options: Unpack[ExportOptions]) -> Exchange:
    """The answers read and checked, so that ``plan`` can be shown before ``run``."""
    kind = options["format"]
    if kind not in FORMATS:
        raise InputError(
            f"the format {kind!r} is not known", accepted=", ".join(FORMATS), todo="name one with --format"
        )
    collected = read_source(source, options)
    out = options["out"]
    path = Path(out) if out else Path(f"{collected.name}-labels{suffix_of(kind)}")
    if path.is_dir():
        raise InputError(f"{path} is a folder", accepted="a file to write", todo="name a file with --out")
    if path.exists() and path.resolve() == collected.source.resolve():
        raise InputError(
            f"{path} is read and would be overwritten", accepted="another file", todo="name one with --out"
        )
    return Exchange(verb, collected, kind, path)
