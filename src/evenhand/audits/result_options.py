"""The options of what works on finished runs, plans them, or collects their prompts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypedDict

from evenhand.core.options import Option
from evenhand.run_options import Configured, Correcting, Limits, Output, Recording


class CompareOptions(Correcting, Recording, Configured, total=False):
    """The options of ``compare``."""


class GateOptions(Limits, Configured, total=False):
    """The options of ``gate``."""

    junit: Annotated[Path | str | None, Option("Write the checks as JUnit XML.")]


class MergeOptions(Output, total=False):
    """The options of ``merge``."""


class PowerOptions(TypedDict, total=False):
    """The options of ``power``."""

    gap: Annotated[float, Option("The gap that must not be missed.", default=0.05, gt=0)]
    power: Annotated[float, Option("The probability of detecting it.", default=0.8, gt=0, lt=1)]
    level: Annotated[float, Option("Level of confidence intervals.", default=0.95, gt=0, lt=1)]
    share: Annotated[
        float, Option("Without RUN: the share of texts with the label.", default=0.2, ge=0, le=1)
    ]
    icc: Annotated[
        float, Option("Without RUN: how alike the texts of a prompt are, 0 to 1.", default=0.2, ge=0, le=1)
    ]
    samples: Annotated[int, Option("Without RUN: completions per prompt.", default=5, ge=1)]


class BuildOptions(Recording, total=False):
    """The options of ``build``; one of pages and dump is needed."""

    pages: Annotated[
        Path | str | Sequence[Path | str] | None,
        Option(
            "A folder of pages (a plain text file is one page, its name the title), or a file of many: "
            "plain text with empty lines between pages, what WikiExtractor writes, or JSON lines. Repeatable."
        ),
    ]
    dump: Annotated[Path | str | None, Option("A MediaWiki XML dump, plain or compressed; read as a stream.")]
    groups: Annotated[
        Path | str | None, Option("TOML of groups and their pages (default: ours, after BOLD's A.1).")
    ]


class ReportOptions(TypedDict, total=False):
    """The options of ``render``."""

    formats: Annotated[
        str | Sequence[str],
        Option("html, md, json, lm-eval, model-card; repeatable.", default=("html", "json"), flag="format"),
    ]
