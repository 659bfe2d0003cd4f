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


def _labels(labels: str | Sequence[str] | Mapping[str, str]) -> str | Mapping[str, str]:
    return labels if isinstance(labels, str) else _meanings(labels)


class ProbeOptions(Correcting, Seeded, Recording, Configured, Loading, Failing, total=False):
    """The options of ``probe``."""

    pairs: Annotated[
        str | Sequence[str] | Suite | None,
        _measuring(
            "builtin, eec, bits, crows (eec:PATH gives the location), or your own file; repeatable or "
            "comma-separated (default builtin)."
        ),
    ]
    labels: Annotated[
        str | Mapping[str, str] | None,
        _measuring(
            "THEIRS=OURS: our name for a label of the classifier; repeatable.", flag="label", parse=_labels
        ),
    ]
    over: Annotated[
        Literal["all", "agreeing"],
        _measuring(
            "Pairs in the report: all, or those with agreeing classes; the table has both.", default="all"
        ),
    ]
    score: Annotated[
        Literal["emotion", "predicted"],
        _measuring(
            "Intensity in the report: the emotion's own, or that of the predicted class.", default="emotion"
        ),
    ]
