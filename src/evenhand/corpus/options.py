"""The options of ``scan_corpus``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from evenhand.core.options import Option
from evenhand.run_options import RUNNING, Engine, Intervals, Recording, Seeded

_counting = partial(Option, panel="Counting")


class CorpusOptions(Seeded, Intervals, Engine, Recording, total=False):
    """The options of ``scan_corpus``."""

    terms: Annotated[
        Path | str | Sequence[Path | str] | None,
        _counting(
            "Term lists: JSON, TOML, or NAME=FILE with one term per line; repeatable (default: built in).",
            flag_type=list[str],
        ),
    ]
    preset: Annotated[Literal["paper"] | None, _counting("`paper`: split words and count as the paper does.")]
    counting: Annotated[
        Literal["flag", "distinct"] | None,
        _counting("`flag` counts a unit once, `distinct` its distinct group terms (default flag)."),
    ]
    unit: Annotated[
        Literal["sentence", "line", "document"] | None,
        _counting("sentence, line or document (default sentence)."),
    ]
    cluster: Annotated[
        Literal["document", "line", "file"] | None,
        _counting(
            "Independent observations for intervals: document, line or file (default document; line if "
            "running text has no empty line)."
        ),
    ]
    text: Annotated[str | None, _counting("Column of tables that holds the texts.")]
    samples: Annotated[int, _counting("Sentences kept per cell.", default=5, ge=0)]
    workers: Annotated[int | None, Option("Shards in parallel (default: one per core).", ge=1, panel=RUNNING)]
