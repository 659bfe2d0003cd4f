"""The options of ``debias`` and ``tradeoff``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, TypedDict

from evenhand.core.options import Option
from evenhand.core.registry import Option as Value
from evenhand.run_options import Length, Loading, Measured, Recording, Seeded, Size, Writing, values

STRENGTHS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Those of the political paper's Table 3, besides 0."""
_mitigation = partial(Option, panel="Mitigation")


class Mode(TypedDict, total=False):
    """Which mitigation, and its options; the usual ones have names of their own."""

    mode: Annotated[
        str, _mitigation("embedding, classifier, naive or in-glove.", default="embedding", complete="modes")
    ]
    calibrator: Annotated[str | None, _mitigation("What `evenhand train calibrator` wrote (classifier).")]
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

    strength: Annotated[float | None, _mitigation("Lambda at a text's first token (default 0.6).")]
    sigma: Annotated[
        float | None, _mitigation("Target divergence per token, in nats (default 0.02; classifier 0.05).")
    ]
    words: Annotated[
        str | None, _mitigation("ideology, gender, or a JSON file with two lists (default ideology).")
    ]
    vectors: Annotated[str | None, _mitigation("Word vectors (naive, in-glove).")]


class DebiasOptions(MitigationOptions, Measured, Writing, Loading, Recording, total=False):
    """The options of ``debias``."""

    prompt: Annotated[str | Sequence[str] | None, Option("A text to be continued; repeatable.")]
    suite: Annotated[
        str | Sequence[str] | None, Option("Audit these suites with the mitigation on.", complete="suites")
    ]
    vanilla: Annotated[bool, Option("Show what the model itself writes, too.")]


class TradeoffOptions(Mode, Measured, Size, Length, Seeded, Loading, Recording, total=False):
    """The options of ``tradeoff``."""

    strengths: Annotated[
        str | Sequence[float],
        Option("Lambdas, or shares of replaced words, comma-separated.", default=STRENGTHS, flag_type=str),
    ]
    suite: Annotated[
        str | Sequence[str] | None,
        Option("Suites that ask for distances (default political, political:direct)."),
    ]
