"""Four papers, each replicated table by table, and the options of ``replicate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from evenhand.core.options import Option
from evenhand.run_options import Loading, Measured, Recording, Seeded


class ReplicateOptions(Measured, Seeded, Loading, Recording, total=False):
    """The options of ``replicate``."""

    data: Annotated[Path | str | None, Option("Folder with the paper's published data.")]
    tables: Annotated[
        str | Sequence[str] | None, Option("Exhibits: 3 or table_3, figure_2; repeated or comma-separated.")
    ]
    model: Annotated[
        str | Sequence[str] | None, Option("A source to run, as for `audit`; repeat for several.")
    ]
    suite: Annotated[
        Path | str | None,
        Option(
            "regard: a TOML file with your own demographics and contexts, which the named models are "
            "prompted with too.",
            flag_type=str,
        ),
    ]
    human: Annotated[Path | str | None, Option("Human labels, for the tables that need them.")]
    max_new_tokens: Annotated[
        int | None,
        Option("bold: new tokens of causal models (default 30; the paper does not state it).", ge=1),
    ]
    full: Annotated[bool, Option("Use all of the paper's prompts instead of the stated subset.")]
    jobs: Annotated[
        int | None, Option("political: conditions in parallel, each in its own process (default 1).", ge=1)
    ]
