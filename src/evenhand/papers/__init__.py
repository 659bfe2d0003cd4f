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
        str | Sequence[str] | None, Option("Only these: 3 or table_3, figure_2; repeated or comma-separated.")
    ]
    model: Annotated[
        str | Sequence[str] | None, Option("A source to run, as `audit` takes it; repeat for several.")
    ]
    suite: Annotated[
        Path | str | None,
        Option(
            "regard: a TOML file with demographics and contexts of your own, which the models named are "
            "asked about too.",
            flag_type=str,
        ),
    ]
    human: Annotated[Path | str | None, Option("Human labels, for the tables that need them.")]
    max_new_tokens: Annotated[
        int | None,
        Option("bold: how many tokens a model that writes forward adds (default 30; not printed).", ge=1),
    ]
    full: Annotated[bool, Option("All of the paper's prompts, not the stated subset.")]
    jobs: Annotated[
        int | None, Option("political: conditions at once, each in a process of its own (default 1).", ge=1)
    ]
