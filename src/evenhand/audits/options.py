"""The options of commands on finished runs, of mitigations, of plans, and of collected prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, TypedDict

from evenhand.core.options import Option
from evenhand.core.registry import Option as Value
from evenhand.run_options import (
    Configured,
    Correcting,
    Length,
    Limits,
    Loading,
    Measured,
    Output,
    Recording,
    Seeded,
    Size,
    Writing,
    values,
)


class CompareOptions(Correcting, Recording, Configured, total=False):
    """The options of ``compare``."""


class GateOptions(Limits, Configured, total=False):
    """The options of ``gate``."""

    junit: Annotated[Path | str | None, Option("Write the checks as JUnit XML.")]


class MergeOptions(Output, total=False):
    """The options of ``merge``."""


class PowerOptions(TypedDict, total=False):
    """The options of ``power``."""

    gap: Annotated[
        float,
        Option("The smallest gap to detect; for shares, 0.05 is 5 points.", default=0.05, gt=0),
    ]
    power: Annotated[float, Option("The probability of detecting it.", default=0.8, gt=0, lt=1)]
    level: Annotated[float, Option("Confidence level of the intervals.", default=0.95, gt=0, lt=1)]
    share: Annotated[
        float, Option("Without RUN: the share of texts with the label.", default=0.2, ge=0, le=1)
    ]
    icc: Annotated[
        float, Option("Without RUN: intraclass correlation within prompts, 0 to 1.", default=0.2, ge=0, le=1)
    ]
    samples: Annotated[int, Option("Without RUN: completions per prompt.", default=5, ge=1)]
    comparisons: Annotated[
        int, Option("Without RUN: comparisons that are corrected together.", default=1, ge=1)
    ]


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


STRENGTHS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Those of the political paper's Table 3, besides 0."""
_mitigation = partial(Option, panel="Mitigation")


class Mode(TypedDict, total=False):
    """Which mitigation, and its options; the usual ones have names of their own."""

    mode: Annotated[
        str, _mitigation("embedding, classifier, naive or in-glove.", default="embedding", complete="modes")
    ]
    calibrator: Annotated[str | None, _mitigation("Folder of `evenhand train calibrator` (classifier).")]
    options: Annotated[
        Mapping[str, Value] | None,
        _mitigation(
            "NAME=VALUE of the mitigation, such as strength=0.3; repeatable.",
            flag="mitigate-option",
            parse=values,
        ),
    ]


class MitigationOptions(Mode, total=False):
    """Which mitigation, and all of its options with names of their own."""

    strength: Annotated[
        float | None, _mitigation("Strength (lambda) at the first token of a text (default 0.6).")
    ]
    sigma: Annotated[
        float | None,
        _mitigation(
            "Target KL divergence per token from the unmitigated model (default 0.02; classifier 0.05)."
        ),
    ]
    words: Annotated[
        str | None, _mitigation("ideology, gender, or a JSON file with two lists (default ideology).")
    ]
    vectors: Annotated[str | None, _mitigation("File of word vectors (naive, in-glove).")]


class DebiasOptions(MitigationOptions, Measured, Writing, Loading, Recording, total=False):
    """The options of ``debias``."""

    prompt: Annotated[str | Sequence[str] | None, Option("A text to continue; repeatable.")]
    suite: Annotated[
        str | Sequence[str] | None, Option("Audit the mitigated model with these suites.", complete="suites")
    ]
    vanilla: Annotated[bool, Option("Also show the text without the mitigation.")]


class TradeoffOptions(Mode, Measured, Size, Length, Seeded, Loading, Recording, total=False):
    """The options of ``tradeoff``."""

    strengths: Annotated[
        str | Sequence[float],
        Option("Lambdas, or shares of replaced words, comma-separated.", default=STRENGTHS, flag_type=str),
    ]
    suite: Annotated[
        str | Sequence[str] | None,
        Option("Suites that measure distances (default political, political:direct)."),
    ]
