"""The options of ``probe``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Literal

from evenhand.core.options import Option, pairs
from evenhand.core.protocols import Suite
from evenhand.run_options import MEASURING, Configured, Correcting, Failing, Loading, Recording, Seeded

_measuring = partial(Option, panel=MEASURING)
_meanings = pairs("--label", "THEIRS=OURS, such as LABEL_0=anger", last=True)


def _labels(given: str | Sequence[str] | Mapping[str, str]) -> str | Mapping[str, str]:
    return given if isinstance(given, str) else _meanings(given)


class ProbeOptions(Correcting, Seeded, Recording, Configured, Loading, Failing, total=False):
    """The options of ``probe``."""

    pairs: Annotated[
        str | Sequence[str] | Suite | None,
        _measuring(
            "builtin, eec, bits, crows (eec:PATH says where), or a file of your own; repeated or "
            "comma-separated (default builtin)."
        ),
    ]
    labels: Annotated[
        str | Mapping[str, str] | None,
        _measuring(
            "THEIRS=OURS: what a label of the classifier means; repeatable.", flag="label", parse=_labels
        ),
    ]
    over: Annotated[
        Literal["all", "agreeing"],
        _measuring(
            "Pairs the report shows: all, or agreeing in their class; the table has both.", default="all"
        ),
    ]
    score: Annotated[
        Literal["emotion", "predicted"],
        _measuring(
            "Intensity the report shows: the emotion's own, or that of the class predicted.",
            default="emotion",
        ),
    ]
