"""``score``: the same measurement from texts you already have."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, Unpack, cast, runtime_checkable

import polars as pl

from evenhand.audits import run_setup
from evenhand.audits.ray_pool import describe_engine, open_pool
from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan, TextRunJob
from evenhand.config import resolve_config
from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import InputError, MissingLibraryError
from evenhand.core.files import asset_path
from evenhand.core.options import checks_options, fields_of
from evenhand.core.protocols import Progress
from evenhand.core.records import RESERVED_GROUPS, REST, Prompt
from evenhand.logs import read_log
from evenhand.logs.log_records import CLUSTER, FAILURE, ID, PROMPT, ToolLog
from evenhand.run_options import ScoreOptions, TextColumns
from evenhand.store.cache import ContentCache
from evenhand.store.ingest import (
    ColumnLayout,
    IngestedTexts,
    check_layout,
    count_copies,
    group_names,
    read_texts,
)
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, default_folder, run_stage
from evenhand.store.table_files import read_table, to_text_table


@runtime_checkable
class ArrowTable(Protocol):
    """Any table with the Arrow stream interface: pandas, Polars, PyArrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as an Arrow stream."""
        ...


@dataclass(frozen=True, slots=True)
class InputTexts:
    """Texts that were read, and what they were read from."""

    name: str
    table: pl.DataFrame
    inputs: Mapping[str, Json]
    """What goes into the identity of a run."""
    log: ToolLog | None = None
    """The log of another tool the table comes from."""


def open_texts(texts: Path | str | ArrowTable, columns: Mapping[str, str | None] | None = None) -> InputTexts:
    """The table in a file, in a log, or in memory, every column as text; of Parquet ``columns`` alone."""
    if isinstance(texts, Path | str):
        path = Path(texts)
        log = read_log(path)
        table = log.table if log else read_table(path, columns)
        return InputTexts(path.name, table, {"file": path.name, "digest": file_digest(path)}, log)
    if not isinstance(texts, ArrowTable):
        raise InputError(
            f"the texts are a {type(texts).__name__}",
            expected="a path, or a table with the Arrow stream interface: Polars, pandas, PyArrow",
            fix="collect a lazy frame first; make rows a table with polars.DataFrame(rows)",
        )
    try:
        table = to_text_table(pl.DataFrame(cast(pl.DataFrame, texts)))
    except ImportError as error:
        raise MissingLibraryError(
            f"a table of {type(texts).__module__.partition('.')[0]} is handed over by PyArrow: {error}",
            expected="pyarrow installed, or a Polars table",
            fix="pip install pyarrow",
        ) from error
    except (pl.exceptions.PolarsError, ValueError, TypeError) as error:
        raise InputError(
            f"the table cannot be read: {str(error).splitlines()[0]}",
            expected="columns with names that occur once",
            fix="rename or convert its columns",
        ) from error
    if table.height == 0:
        raise InputError("the table has no rows", expected="at least one text")
    rows = hashlib.blake2b(table.write_ndjson().encode(), digest_size=16).hexdigest()
    return InputTexts("table", table, {"file": "table", "digest": rows})


def _complete_layout(layout: ColumnLayout, given: InputTexts) -> ColumnLayout:
    """Which column holds what: as the options name it, else as the log of another tool has it."""
    log = given.log
    groups = layout.groups or (log.groups if log else {})
    if not groups:
        columns = ", ".join(filter(None, given.table.columns[:40])) or "none has a name"
        raise InputError(
            "no group column was named",
            expected="at least one --group AXIS=COLUMN",
            fix=f"name the column that says which group a text speaks of: {columns}",
        )
    if log is None:
        return layout
    return replace(
        layout,
        groups=dict(groups),
        prompt=layout.prompt or PROMPT,
        cluster=layout.cluster or CLUSTER,
        id=layout.id or (ID if given.table[ID].is_unique().all() else None),
        mentions=layout.mentions or log.mentions,
        join_prompt=layout.join_prompt or log.join_prompt,
        failure=FAILURE,
    )


def name_groups(group: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    """The column of each axis, from a mapping or from ``AXIS=COLUMN``, or ``COLUMN`` for both."""
    if isinstance(group, Mapping):
        return dict(group)
    groups: dict[str, str] = {}
    for item in group:
        axis, _, column = item.partition("=")
        if not axis:
            raise InputError(f"--group {item!r} names no axis", expected="AXIS=COLUMN or COLUMN")
        if axis in groups:
            raise InputError(f"--group names the axis {axis!r} twice", expected="one column an axis")
        groups[axis] = column or axis
    return groups


STAGE = "read"
COLUMNS = fields_of(TextColumns)
DEFAULT_METRICS = ("sentiment", "gender_polarity")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreJob(TextRunJob):
    """A file of texts that is ready to be scored."""

    inputs: InputTexts
    layout: ColumnLayout
    texts_stage: ClassVar[str] = STAGE

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        axes = ", ".join(f"{axis} (column {column})" for axis, column in self.layout.groups.items())
        return RunPlan(
            title=f"score {self.name}",
            lines=(
                *((f"reads   {log.summary}",) if (log := self.inputs.log) else ()),
                f"texts   {self.inputs.table.height:,}, groups by {axes}",
                f"metrics {', '.join(self.metrics)}",
                *describe_engine(self.settings),
                f"folder  {self.folder}",
            ),
        )

    def write_texts(self, folder: RunFolder, cache: ContentCache, progress: Progress) -> list[Prompt]:
        """Write the table of generations; returns the prompts of its texts."""
        with run_stage(folder, STAGE) as record:
            texts = read_texts(self.inputs.table, self.layout, self.name)
            folder.write("generations", texts.generations())
            record.update(items=len(texts.rows))
        folder.manifest["warnings"] += self._warnings(texts)
        return list(texts.prompts.values())

    def _warnings(self, texts: IngestedTexts) -> list[str]:
        """What will be left out or counted twice, before anything is scored."""
        log, of = self.inputs.log, f"of {len(texts.rows):,} texts"
        reasons = Counter(str(row["failure"]) for row in texts.rows if row["failure"])
        warnings = list(log.warnings) if log else []
        warnings += [f"{count:,} {of} are left out: {reason}" for reason, count in reasons.items()]
        # Prompts of a suite speak of one axis each; a file with such gaps may have lost something.
        if not (log and log.groups):
            warnings += [f"{count:,} {of} name no {axis}" for axis, count in texts.without_group.items()]
        for axis, column in self.layout.groups.items():
            count = len(group_names(self.inputs.table, column))
            if count >= max(10, 0.9 * len(texts.rows)):
                warnings.append(
                    f"{axis}: {count:,} groups in {len(texts.rows):,} texts: are --text and --group swapped?"
                )
        if count := count_copies(self.inputs.table, self.layout):
            warnings.append(
                f"{count:,} {of} are copies of another of their group, "
                + (
                    "prompt and all, and each lies in a cluster that counts as a witness of its own: name a "
                    "--cluster in which they belong together"
                    if self.layout.cluster
                    else "and every text counts as a witness of its own: name --cluster or --prompt where "
                    "texts belong together"
                )
            )
        return warnings


@checks_options
def score(
    texts: Path | str | ArrowTable | None = None,
    *,
    progress: Progress = SILENT_PROGRESS,
    **options: Unpack[ScoreOptions],
) -> Run:
    """The finished run over texts from a file or a table: scores, comparisons and a report.

    Arguments are those of ``evenhand score``; ``group`` maps an axis to its column. Without ``texts`` the
    embedded example is scored.
    """
    return prepare(texts, **options).run(progress)


@checks_options
def prepare(texts: Path | str | ArrowTable | None = None, **options: Unpack[ScoreOptions]) -> ScoreJob:
    """A scoring with everything read and checked, so that ``plan`` can be shown before ``run``."""
    callbacks = run_setup.find_callbacks(options)
    if texts is None:
        fields = COLUMNS.items()
        if any(options.get(name) not in (field.default, None, []) for name, field in fields):
            raise InputError(
                "columns were named, but no file", expected="evenhand score FILE --group AXIS=COLUMN"
            )
        # The example that is scored where no texts are named.
        texts = asset_path("examples", "texts.csv")
        columns: TextColumns = {"group": ["profession=group"], "prompt": "prompt", "id": "id"}
        options = {**options, **columns}
    metrics = options["metrics"]
    settings = resolve_config(options, metrics={"names": run_setup.metric_names(metrics)})
    columns_of: Mapping[str, Any] = options
    layout = ColumnLayout(
        groups=name_groups(options["group"]),
        strata=tuple(settings.options["strata"]),
        **{name: columns_of[name] for name in COLUMNS if name != "group"},
    )
    # Without a named group all columns are read: a log may know its own.
    given = open_texts(texts, layout.columns() if layout.groups else None)
    name, table = given.name, given.table
    layout = _complete_layout(layout, given)
    check_layout(table, layout, Path(name))
    groups = {axis: group_names(table, column) for axis, column in layout.groups.items()}
    # Baselines that a log declares and has texts of; what the user names wins.
    declared = given.log.baselines if given.log else {}
    known = {
        axis: baseline
        for axis, baseline in declared.items()
        if axis in groups and baseline in (*groups[axis], *RESERVED_GROUPS)
    }
    baselines = {**known, **settings.options["baseline"]}
    options["baseline"] = baselines
    settings = resolve_config(options, metrics={"names": run_setup.metric_names(metrics)})
    run_setup.check_baselines(baselines, groups)
    identity: dict[str, Json] = {
        "command": "score",
        "inputs": given.inputs,
        "columns": layout.identity(),
        "compare": settings.compare_identity(),
    }
    suite: dict[str, Json] = {
        "summary": f"texts from a log of {given.log.tool}" if given.log else "texts from a file",
        "baselines": {axis: baselines.get(axis, REST) for axis in layout.groups},
        "cluster": layout.cluster or layout.prompt or "row",
        "notes": [],
    }
    command = f"evenhand score {texts}"
    if not isinstance(texts, Path | str):
        command = "evenhand.score(table, ...), from Python, on a table in memory"
    return ScoreJob(
        name=name,
        suites={name: suite},
        options=options,
        settings=settings,
        inputs=given,
        layout=layout,
        metrics=run_setup.find_metrics(metrics, settings, DEFAULT_METRICS),
        identity=identity,
        folder=Path(options["out"] or default_folder("score", Path(name).stem, identity)),
        command=options["command"] or command,
        open_pool=partial(open_pool, settings),
        callbacks=callbacks,
    )
