"""``ratings``: what people say of several methods, each against a baseline over the same people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from evenhand.annotate.agreement import Rule
from evenhand.annotate.collected import Collected
from evenhand.annotate.methods import baseline_of, method_table
from evenhand.api.agreement import (
    begin_people,
    described,
    end_people,
    people_identity,
    read_source,
)
from evenhand.api.parts import SILENT, Plan
from evenhand.api.people_options import RatingOptions
from evenhand.core.digests import Json
from evenhand.core.options import checks_options
from evenhand.core.protocols import Progress
from evenhand.store.folder import RunFolder, default_folder, stage
from evenhand.store.run import Run

COMMAND = "ratings"


@dataclass(frozen=True, slots=True)
class Rating:
    """Ratings of methods that are read and checked."""

    collected: Collected
    baseline: str
    level: float
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool

    def plan(self) -> Plan:
        """What will be done, before it is done."""
        methods = self.collected.rows["method"].drop_nulls().unique(maintain_order=True).to_list()
        return Plan(
            f"ratings of {self.collected.name}",
            (
                *described(self.collected),
                f"methods  {', '.join(methods)}; against {self.baseline}",
                f"folder   {self.folder}",
            ),
            self.folder,
        )

    def run(self, progress: Progress = SILENT) -> Run:
        """Write the table and the report."""
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            begin_people(folder, self.command, self.collected)
            with stage(folder, COMMAND) as record, progress.step("comparing methods", None):
                table = method_table(self.collected, baseline=self.baseline, level=self.level)
                folder.write("methods", table)
                record["items"] = table.height
            return end_people(folder)


@checks_options
def ratings(source: Path | str, *, progress: Progress = SILENT, **options: Unpack[RatingOptions]) -> Run:
    """The finished run with every method's mean and paired t test, as ``evenhand annotate ratings`` makes it.

    ``source`` is a study whose texts have methods, or a table with a column ``method``. A participant's
    ratings of one method are averaged before they are compared (Liu et al. 2021, Table 6).
    """
    return prepare(source, **options).run(progress)


@checks_options
def prepare(source: Path | str, **options: Unpack[RatingOptions]) -> Rating:
    """The ratings read and checked, so that ``plan`` can be shown before ``run``."""
    collected, level = read_source(source, options), options["level"]
    baseline = baseline_of(collected, options["baseline"])
    identity = people_identity(COMMAND, collected, Rule()) | {"baseline": baseline, "level": level}
    out = options["out"]
    return Rating(
        collected=collected,
        baseline=baseline,
        level=level,
        identity=identity,
        folder=Path(out) if out else default_folder(COMMAND, collected.name, identity),
        command=options["command"] or f"evenhand annotate ratings {source}",
        fresh=options["fresh"],
    )
