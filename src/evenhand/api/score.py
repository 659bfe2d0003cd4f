"""``score``: the same measurement from texts you already have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from evenhand.api.cluster import askers, ending, engine_line, open_pool
from evenhand.api.parts import (
    SILENT,
    Asked,
    Plan,
    begin,
    check_axes,
    check_baseline,
    find_metrics,
    finish,
    metric_names,
    objects_among,
    opened,
    with_earlier,
)
from evenhand.api.run_options import ScoreOptions, TextColumns
from evenhand.api.settings import Settings, resolve
from evenhand.api.texts import ArrowTable, Given, layout_of, named_columns, open_texts
from evenhand.api.tracking import Callback, callbacks
from evenhand.core.assets import asset
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options, fields_of
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import RESERVED_GROUPS, REST
from evenhand.pipeline.actors import Pool
from evenhand.pipeline.reading import Layout, Texts, check_layout, copies, group_names, read_texts
from evenhand.store.cache import Cache
from evenhand.store.folder import RunFolder, default_folder, stage
from evenhand.store.run import Run

STAGE = "read"
COLUMNS = fields_of(TextColumns)
DEFAULT_METRICS = ("sentiment", "gender_polarity")


@dataclass(frozen=True, slots=True)
class Scoring:
    """A file of texts that is ready to be scored."""

    settings: Settings
    given: Given
    layout: Layout
    metrics: Mapping[str, Metric]
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool
    objects: tuple[str, ...] = ()
    """Metrics that were given as objects."""
    callbacks: tuple[Callback, ...] = ()
    """Each is called with the finished run."""

    @property
    def name(self) -> str:
        """What the texts are called in tables."""
        return self.given.name

    def plan(self) -> Plan:
        """What will be done, before it is done."""
        axes = ", ".join(f"{axis} (column {column})" for axis, column in self.layout.groups.items())
        return Plan(
            title=f"score {self.name}",
            lines=(
                *((f"reads   {log.summary}",) if (log := self.given.log) else ()),
                f"texts   {self.given.table.height:,}, groups by {axes}",
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
                run = self._work(folder, cache, progress, pool)
        for callback in self.callbacks:
            callback(run)
        return run

    def _work(self, folder: RunFolder, cache: Cache, progress: Progress, pool: Pool | None) -> Run:
        begin(folder, command=self.command, name=self.name, settings=self.settings, suites=self._suite())
        with stage(folder, STAGE) as record:
            texts = read_texts(self.given.table, self.layout, self.name)
            folder.write("generations", texts.generations())
            record.update(items=len(texts.rows))
        self._note(folder, texts)
        metrics = with_earlier(self.metrics, folder, self.settings)
        return finish(
            folder,
            settings=self.settings,
            metrics=Asked(metrics, askers(pool, metrics, self.settings, self.objects)),
            prompts=list(texts.prompts.values()),
            baselines={(self.name, axis): name for axis, name in self.settings.options["baseline"].items()},
            cache=cache,
            progress=progress,
            texts_stage=STAGE,
        )

    def _note(self, folder: RunFolder, texts: Texts) -> None:
        """Say what will be left out, before anything is scored."""
        reasons = Counter(str(row["failure"]) for row in texts.rows if row["failure"])
        warnings = list(self.given.log.warnings) if self.given.log else []
        warnings += [
            f"{count:,} of {len(texts.rows):,} texts are left out: {why}" for why, count in reasons.items()
        ]
        # Prompts of a suite speak of one axis each; a file with such gaps may have lost something.
        if not (self.given.log and self.given.log.groups):
            warnings += [
                f"{count:,} of {len(texts.rows):,} texts name no {axis}"
                for axis, count in texts.without_group.items()
            ]
        if count := copies(self.given.table, self.layout):
            warnings.append(f"{count:,} of {len(texts.rows):,} texts are copies of {_copied(self.layout)}")
        folder.manifest["warnings"] += warnings

    def _suite(self) -> dict[str, Json]:
        baselines = {axis: self.settings.options["baseline"].get(axis, REST) for axis in self.layout.groups}
        cluster = self.layout.cluster or self.layout.prompt or "row"
        return {
            self.name: {
                "summary": f"texts from a log of {self.given.log.tool}"
                if self.given.log
                else "texts from a file",
                "baselines": baselines,
                "cluster": cluster,
                "notes": [],
            }
        }


@checks_options
def score(
    texts: Path | str | ArrowTable | None = None,
    *,
    progress: Progress = SILENT,
    **options: Unpack[ScoreOptions],
) -> Run:
    """The finished run over texts from a file or a table: scores, comparisons and a report.

    Arguments are those of ``evenhand score``; ``group`` maps an axis to its column. Without ``texts`` the
    embedded example is scored.
    """
    return prepare(texts, **options).run(progress)


@checks_options
def prepare(texts: Path | str | ArrowTable | None = None, **options: Unpack[ScoreOptions]) -> Scoring:
    """A scoring with everything read and checked, so that ``plan`` can be shown before ``run``."""
    then = tuple(callbacks(options))
    if texts is None:
        texts, options = _example(options)
    metrics, out = options["metrics"], options["out"]
    settings = resolve(options, metrics={"names": metric_names(metrics)})
    strata = tuple(settings.options["strata"])
    given = open_texts(texts, named_columns(options, strata=strata))
    name, table = given.name, given.table
    layout = layout_of(options, given, strata=strata)
    check_layout(table, layout, Path(name))
    settings = _with_baselines(settings, given, layout)
    check_axes(settings.options["baseline"], layout.groups)
    for axis, baseline in settings.options["baseline"].items():
        check_baseline(axis, baseline, group_names(table, layout.groups[axis]))
    identity: dict[str, Json] = {
        "command": "score",
        "inputs": given.inputs,
        "columns": layout.identity(),
        "compare": settings.compare_identity(),
    }
    return Scoring(
        settings=settings,
        given=given,
        layout=layout,
        metrics=find_metrics(metrics, settings, DEFAULT_METRICS),
        identity=identity,
        folder=Path(out) if out else default_folder("score", Path(name).stem, identity),
        command=options["command"] or _command(texts),
        fresh=options["fresh"],
        objects=objects_among(metrics),
        callbacks=then,
    )


def _example(options: ScoreOptions) -> tuple[Path, ScoreOptions]:
    """The texts that are scored where none are named, and their columns."""
    if any(options.get(name) not in (field.option.default, None, []) for name, field in COLUMNS.items()):
        raise InputError(
            "columns were named, but no file", accepted="evenhand score FILE --group AXIS=COLUMN"
        )
    columns: TextColumns = {"group": ["profession=group"], "prompt": "prompt", "id": "id"}
    return asset("examples", "texts.csv"), {**options, **columns}


def _copied(layout: Layout) -> str:
    """Of what texts are copies, and what to do about it."""
    if layout.cluster:
        return (
            "another of their group, prompt and all, and each lies in a cluster that counts as a witness of "
            "its own: name a --cluster in which they belong together"
        )
    return (
        "another of their group, and every text counts as a witness of its own: name --cluster or --prompt "
        "where texts belong together"
    )


def _command(texts: Path | str | ArrowTable) -> str:
    if isinstance(texts, Path | str):
        return f"evenhand score {texts}"
    return "evenhand.score(table, ...), from Python, on a table in memory"


def _with_baselines(settings: Settings, given: Given, layout: Layout) -> Settings:
    """The settings with the baselines that a log declares and has texts of; what the user names wins."""
    declared = given.log.baselines if given.log else {}
    known = {
        axis: baseline
        for axis, baseline in declared.items()
        if axis in layout.groups
        and baseline in (*group_names(given.table, layout.groups[axis]), *RESERVED_GROUPS)
    }
    together = {**known, **settings.options["baseline"]}
    return replace(settings, options={**settings.options, "baseline": together})
