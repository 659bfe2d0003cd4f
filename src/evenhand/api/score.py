"""``score``: the same measurement from texts you already have."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypedDict, Unpack, cast

import polars as pl

from evenhand.api.cluster import askers, ending, engine_line, open_pool
from evenhand.api.parts import (
    SILENT,
    Asked,
    Plan,
    begin,
    check_axes,
    check_baseline,
    compare_identity,
    find_metrics,
    finish,
    metric_names,
    objects_among,
    opened,
    with_earlier,
)
from evenhand.api.settings import Options, Settings, resolve
from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import InputError
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import REST
from evenhand.pipeline.actors import Pool
from evenhand.pipeline.reading import Layout, Texts, check_layout, copies, group_names, read_texts
from evenhand.store.cache import Cache
from evenhand.store.files import as_text, read_table
from evenhand.store.folder import RunFolder, default_folder, stage
from evenhand.store.run import Run

STAGE = "read"
DEFAULT_METRICS = ("sentiment", "gender_polarity")


class ArrowTable(Protocol):
    """Any table with the Arrow stream interface: pandas, Polars, PyArrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as an Arrow stream."""
        ...


class Columns(TypedDict, total=False):
    """Which column holds what."""

    text: str
    group: Mapping[str, str] | Sequence[str]
    prompt: str | None
    cluster: str | None
    id: str | None
    mentions: str | None
    join_prompt: bool


class ScoreOptions(Columns, Options, total=False):
    """The options of ``score``."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """A file of texts that is ready to be scored."""

    settings: Settings
    name: str
    table: pl.DataFrame
    layout: Layout
    metrics: Mapping[str, Metric]
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool
    objects: tuple[str, ...] = ()
    """Metrics that were given as objects."""

    def plan(self) -> Plan:
        """What will be done, before it is done."""
        axes = ", ".join(f"{axis} (column {column})" for axis, column in self.layout.groups.items())
        return Plan(
            title=f"score {self.name}",
            lines=(
                f"texts   {self.table.height:,}, groups by {axes}",
                f"metrics {', '.join(self.metrics)}",
                *engine_line(self.settings),
                f"folder  {self.folder}",
            ),
            folder=self.folder,
        )

    def run(self, progress: Progress = SILENT) -> Run:
        """Score, compare and report."""
        with opened(self.folder, self.identity, fresh=self.fresh) as (folder, cache):
            pool = open_pool(self.settings)
            with ending(pool):
                return self._work(folder, cache, progress, pool)

    def _work(self, folder: RunFolder, cache: Cache, progress: Progress, pool: Pool | None) -> Run:
        begin(folder, command=self.command, name=self.name, settings=self.settings, suites=self._suite())
        with stage(folder, STAGE) as record:
            texts = read_texts(self.table, self.layout, self.name)
            folder.write("generations", texts.generations())
            record.update(items=len(texts.rows))
        self._note(folder, texts)
        metrics = with_earlier(self.metrics, folder, self.settings)
        return finish(
            folder,
            settings=self.settings,
            metrics=Asked(metrics, askers(pool, metrics, self.settings, self.objects)),
            prompts=list(texts.prompts.values()),
            baselines={(self.name, axis): name for axis, name in self.settings.compare.baselines.items()},
            cache=cache,
            progress=progress,
            texts_stage=STAGE,
        )

    def _note(self, folder: RunFolder, texts: Texts) -> None:
        """Say what will be left out, before anything is scored."""
        reasons = Counter(str(row["failure"]) for row in texts.rows if row["failure"])
        warnings = [
            f"{count:,} of {len(texts.rows):,} texts are left out: {why}" for why, count in reasons.items()
        ]
        warnings += [
            f"{count:,} of {len(texts.rows):,} texts name no {axis}"
            for axis, count in texts.without_group.items()
        ]
        if count := copies(self.table, self.layout):
            warnings.append(
                f"{count:,} of {len(texts.rows):,} texts are copies of another of their group, and every "
                "text counts as a witness of its own: name --cluster or --prompt where texts belong together"
            )
        folder.manifest["warnings"] += warnings

    def _suite(self) -> dict[str, Json]:
        baselines = {axis: self.settings.compare.baselines.get(axis, REST) for axis in self.layout.groups}
        cluster = self.layout.cluster or self.layout.prompt or "row"
        return {
            self.name: {
                "summary": "texts from a file",
                "baselines": baselines,
                "cluster": cluster,
                "notes": [],
            }
        }


def score(
    texts: Path | str | ArrowTable, *, progress: Progress = SILENT, **options: Unpack[ScoreOptions]
) -> Run:
    """The finished run over texts from a file or a table: scores, comparisons and a report.

    Arguments are those of ``evenhand score``; ``group`` maps an axis to its column.
    """
    run = prepare(texts, **options).run(progress)
    for callback in options.get("callbacks", ()):
        callback(run)
    return run


def prepare(texts: Path | str | ArrowTable, **options: Unpack[ScoreOptions]) -> Scoring:
    """A scoring with everything read and checked, so that ``plan`` can be shown before ``run``."""
    metrics, out = options.get("metrics"), options.get("out")
    settings = resolve(options, metrics={"names": metric_names(metrics)})
    layout = _layout(options, settings)
    name, table, inputs = _opened(texts)
    check_layout(table, layout, Path(name))
    check_axes(settings.compare.baselines, layout.groups)
    for axis, baseline in settings.compare.baselines.items():
        check_baseline(axis, baseline, group_names(table, layout.groups[axis]))
    identity: dict[str, Json] = {
        "command": "score",
        "inputs": inputs,
        "columns": layout.identity(),
        "compare": compare_identity(settings),
    }
    return Scoring(
        settings=settings,
        name=name,
        table=table,
        layout=layout,
        metrics=find_metrics(metrics, settings, DEFAULT_METRICS),
        identity=identity,
        folder=Path(out) if out else default_folder("score", Path(name).stem, identity),
        command=options.get("command") or _command(texts),
        fresh=options.get("fresh", False),
        objects=objects_among(metrics),
    )


def _command(texts: Path | str | ArrowTable) -> str:
    if isinstance(texts, Path | str):
        return f"evenhand score {texts}"
    return "evenhand.score(table, ...), from Python, on a table in memory"


def _layout(options: ScoreOptions, settings: Settings) -> Layout:
    group = options.get("group") or ()
    pairs = list(group.items()) if isinstance(group, Mapping) else [_axis_and_column(item) for item in group]
    doubled = [axis for axis, count in Counter(axis for axis, _ in pairs).items() if count > 1]
    if doubled:
        raise InputError(f"--group names the axis {doubled[0]!r} twice", accepted="one column an axis")
    if not pairs:
        raise InputError(
            "no group column was named",
            accepted="at least one --group AXIS=COLUMN",
            todo="name the column that says which group a text speaks of",
        )
    return Layout(
        text=options.get("text", "text"),
        groups=dict(pairs),
        prompt=options.get("prompt"),
        cluster=options.get("cluster"),
        id=options.get("id"),
        mentions=options.get("mentions"),
        join_prompt=options.get("join_prompt", False),
        strata=settings.compare.strata,
    )


def _axis_and_column(item: str) -> tuple[str, str]:
    axis, _, column = item.partition("=")
    if not axis:
        raise InputError(f"--group {item!r} names no axis", accepted="AXIS=COLUMN or COLUMN")
    return axis, column or axis


def _opened(texts: Path | str | ArrowTable) -> tuple[str, pl.DataFrame, dict[str, Json]]:
    if isinstance(texts, Path | str):
        path = Path(texts)
        table = read_table(path)
        return path.name, table, {"file": path.name, "digest": file_digest(path)}
    table = as_text(pl.DataFrame(cast(pl.DataFrame, texts)))
    if table.height == 0:
        raise InputError("the table has no rows", accepted="at least one text")
    rows = hashlib.blake2b(table.write_ndjson().encode(), digest_size=16).hexdigest()
    return "table", table, {"file": "table", "digest": rows}
