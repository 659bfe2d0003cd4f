"""``tradeoff``: bias against perplexity as a mitigation grows stronger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack, cast

import polars as pl

from evenhand.api.audit import Audit
from evenhand.api.conditions import METRICS, SUITES, Condition, Study, biases, described
from evenhand.api.debias import MODES, mitigation_options
from evenhand.api.mitigation_options import TradeoffOptions
from evenhand.api.parts import SILENT, Plan, metric_names, split_names
from evenhand.api.run_options import AuditOptions
from evenhand.core import registry
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options, fields_of
from evenhand.core.protocols import Model, Progress
from evenhand.core.records import Execution
from evenhand.core.registry import Option
from evenhand.pipeline.price import VANILLA
from evenhand.report.tradeoff import tradeoff_markdown, tradeoff_svg
from evenhand.stats.base_rates import OVERALL
from evenhand.store.atomic import replacing, write_text
from evenhand.store.folder import RunFolder, default_folder, now, stage
from evenhand.store.parquet import write_parquet
from evenhand.store.run import Run

RUNS = "runs"


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """A sweep that is ready to start."""

    study: Study
    strengths: tuple[float, ...]
    source: str | None
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool

    def plan(self) -> Plan:
        """What will be done, before it is done."""
        lines = described(self.study, self.folder / RUNS)
        return Plan(f"tradeoff {self.study.model.ref.name}", (*lines, f"folder  {self.folder}"), self.folder)

    def run(self, progress: Progress = SILENT) -> Run:
        """Audit every strength, and write ``tradeoff.parquet``, ``.md`` and ``.svg``, ``price.parquet``."""
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            folder.manifest.update(
                command=self.command, name=self.study.model.ref.name, ended=None, warnings=[]
            )
            with stage(folder, "tradeoff") as record:
                runs = self.study.runs(self.folder / RUNS, progress)
                price = self.study.prices(runs, self.folder, self.source, progress)
                table = curve(biases(runs), price, self._by_name())
                _write(table, price, self.folder)
                record["items"] = table.height
            folder.manifest["ended"] = now()
            folder.save_manifest()
            return folder.run()

    def _by_name(self) -> dict[str, float]:
        names = [condition.name for condition in self.study.conditions]
        return dict(zip(names, (0.0, *self.strengths), strict=True))


@checks_options
def tradeoff(
    model: str | Model = "builtin", *, progress: Progress = SILENT, **options: Unpack[TradeoffOptions]
) -> Run:
    """The folder with bias and perplexity at every strength; arguments are those of ``evenhand tradeoff``.

    A strength is lambda for a calibration, and the share of replaced words for ``naive`` and ``in-glove``.
    """
    return prepare(model, **options).run(progress)


@checks_options
def prepare(model: str | Model = "builtin", **options: Unpack[TradeoffOptions]) -> Tradeoff:
    """A sweep with everything loaded and checked, so that ``plan`` can be shown before ``run``."""
    mode, chosen = options["mode"], _checked(options["mode"], options["strengths"])
    execution = Execution(device=options["device"], batch=options["batch"], offline=options["offline"])
    loaded = registry.model(model, {}, execution) if isinstance(model, str) else model
    study = Study(loaded, sweep(mode, chosen, mitigation_options(options)), _shared(options))
    audits = [study.audit(condition, Path()) for condition in study.conditions]
    _check_distances(audits[0])
    identity: dict[str, Json] = {
        "command": "tradeoff",
        "conditions": [dict(audit.identity) for audit in audits],
        "size": [audits[0].tier.limit, audits[0].tier.samples],
    }
    out = options["out"]
    return Tradeoff(
        study=study,
        strengths=chosen,
        source=model if isinstance(model, str) else None,
        identity=identity,
        folder=Path(out) if out else default_folder("tradeoff", loaded.ref.name, identity),
        command=options["command"] or f"evenhand tradeoff {loaded.ref.name}",
        fresh=options["fresh"],
    )


def sweep(mode: str, strengths: Sequence[float], options: Mapping[str, Option]) -> tuple[Condition, ...]:
    """Vanilla, and the mode at every strength."""
    dial = "strength" if MODES[mode].startswith("calibration") else "share"
    grown = [Condition(f"{mode} {at:g}", MODES[mode], {**options, dial: at}) for at in strengths]
    return (Condition(VANILLA), *grown)


def curve(found: pl.DataFrame, price: pl.DataFrame, strengths: Mapping[str, float]) -> pl.DataFrame:
    """For each attribute and strength the overall bias of both kinds, and both perplexities."""
    columns = ("condition", "attribute", "bias", "estimate", "corrected", "low", "high", "p", "null_reason")
    overall = found.filter(pl.col("option") == OVERALL).select(columns)
    table = overall.with_columns(
        pl.col("condition").replace_strict(strengths, return_dtype=pl.Float64).alias("strength")
    )
    for metric in ("ngrams", "model"):
        of = price.filter((pl.col("metric") == metric) & (pl.col("output") == "perplexity"))
        named = of.select(
            "condition",
            "attribute",
            pl.col("value").alias(f"perplexity_{metric}"),
            pl.col("low").alias(f"perplexity_{metric}_low"),
            pl.col("high").alias(f"perplexity_{metric}_high"),
        )
        table = table.join(named, on=["condition", "attribute"], how="left")
    return table.sort("attribute", "bias", "strength")


def _write(table: pl.DataFrame, price: pl.DataFrame, folder: Path) -> None:
    for name, frame in (("tradeoff", table), ("price", price)):
        with replacing(folder / f"{name}.parquet") as temporary:
            write_parquet(frame, temporary)
    write_text(folder / "tradeoff.md", tradeoff_markdown(table))
    write_text(folder / "tradeoff.svg", tradeoff_svg(table))


def _checked(mode: str, given: str | Sequence[float]) -> tuple[float, ...]:
    if mode not in MODES:
        raise InputError(f"there is no mode {mode!r}", accepted=", ".join(MODES), todo="name one of these")
    strengths = _numbers(given) if isinstance(given, str) else given
    chosen = tuple(sorted({float(at) for at in strengths} - {0.0}))
    if not chosen or chosen[0] < 0:
        raise InputError(
            f"the strengths are {', '.join(f'{at:g}' for at in strengths) or 'none'}",
            accepted="one or more numbers above 0; 0, the model as it is, is always there",
            todo="for example --strengths 0.1,0.5,0.9",
        )
    return chosen


def _numbers(given: str) -> list[float]:
    try:
        return [float(part) for part in given.split(",") if part.strip()]
    except ValueError as error:
        raise InputError(
            f"--strengths is {given!r}", accepted="numbers, comma-separated", todo="for example 0.1,0.5,0.9"
        ) from error


def _check_distances(audit: Audit) -> None:
    """An error before anything is written where no suite asks for a distance of what is measured."""
    asked = {name for part in audit.parts for name in part.suite.info.distances}
    if not asked & {name.partition("=")[0] for name in audit.metrics}:
        suites = ", ".join(part.suite.info.name for part in audit.parts)
        raise InputError(
            f"there is no bias to draw: {suites} asks for no distance of {', '.join(audit.metrics)}",
            accepted="a suite that asks for distances, such as political, with the metric it asks for",
            todo=f"measure {', '.join(sorted(asked))}" if asked else "for example --suite political",
        )


def _shared(options: TradeoffOptions) -> AuditOptions:
    taken = fields_of(AuditOptions).keys() - {"out", "command"}
    shared = {name: value for name, value in options.items() if name in taken}
    shared["suite"] = split_names(options["suite"]) or SUITES
    shared["metrics"] = metric_names(options["metrics"]) or METRICS
    return cast(AuditOptions, shared)
