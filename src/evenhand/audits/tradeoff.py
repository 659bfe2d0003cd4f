"""``tradeoff``: bias against perplexity as a mitigation grows stronger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Unpack, cast

import polars as pl

from evenhand.audits.audit import AuditJob
from evenhand.audits.debias import MODES, check_mode, mitigation_options
from evenhand.audits.mitigation_cost import VANILLA
from evenhand.audits.mitigation_sweep import (
    METRICS,
    SUITES,
    MitigationSweep,
    SweepCondition,
    join_distances,
)
from evenhand.audits.options import TradeoffOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan, metric_names
from evenhand.core import registry
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options, fields_of, split_names
from evenhand.core.protocols import Model, Progress
from evenhand.core.records import Execution
from evenhand.core.registry import Option
from evenhand.report.charts import AxisScale
from evenhand.report.wording import escape_markdown
from evenhand.run_options import AuditOptions
from evenhand.stats.base_rates import OVERALL
from evenhand.store.atomic_writes import replace_file, write_text
from evenhand.store.parquet import write_parquet
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, default_folder, run_stage, utc_timestamp

_WIDTH, _HEIGHT, _LEFT, _TOP = 420, 220, 60, 34
_COLOURS = {"indirect": "#1d5bb8", "direct": "#ad4706"}
_LEAST = 0.01
"""Bias that every panel reaches up to: the noise of rounding is not drawn as if it were a trend."""
NOTES = (
    "Bias is the mean distance of the options beyond what chance gives, with its interval. Perplexity is "
    "that of the half of the texts no n-gram model was trained on; at strength 0 it is the model's own text."
)
Row = Mapping[str, object]


def tradeoff_markdown(table: pl.DataFrame) -> str:
    """The sweep as a table."""
    head = "| attribute | bias | strength | beyond chance | interval | p | perplexity (n-grams) | (model) |"
    lines = [_line(row) for row in table.iter_rows(named=True)]
    return "\n".join(["# Bias against perplexity", "", head, "|" + " --- |" * 8, *lines, "", NOTES, ""])


def tradeoff_svg(table: pl.DataFrame) -> str:
    """A panel for each attribute: perplexity to the right, bias upwards, one point a strength."""
    attributes = table["attribute"].unique(maintain_order=True).to_list()
    panels = [
        _panel(table.filter(pl.col("attribute") == attribute), attribute, place)
        for place, attribute in enumerate(attributes)
    ]
    height = len(attributes) * (_HEIGHT + 80)
    # A ground of its own: on a dark page black letters would not be seen.
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH + 140} {height}" role="img" '
        'font-family="sans-serif" font-size="11"><title>Bias beyond chance against perplexity, by strength'
        f'</title><rect width="100%" height="100%" fill="#ffffff"/>{"".join(panels)}</svg>\n'
    )


def _line(row: Row) -> str:
    interval = escape_markdown(str(row.get("null_reason") or ""))
    if row["low"] is not None:
        interval = f"{_number(row['low'])} to {_number(row['high'])}"
    cells = (
        escape_markdown(str(row["attribute"])),
        escape_markdown(str(row["bias"])),
        f"{row['strength']:g}",
        _number(row["corrected"]),
        interval,
        _number(row["p"], 3),
        _number(row["perplexity_ngrams"], 1),
        _number(row["perplexity_model"], 1),
    )
    return f"| {' | '.join(cells)} |"


def _panel(rows: pl.DataFrame, attribute: str, place: int) -> str:
    known = rows.drop_nulls(["corrected", "perplexity_ngrams"])
    title = f'<text x="0" y="-14" font-weight="bold">{escape(attribute)}</text>'
    shift = f'<g transform="translate({_LEFT},{_TOP + place * (_HEIGHT + 80)})">{title}'
    if known.is_empty():
        return f'{shift}<text y="10">Not drawn: bias or perplexity is not known.</text></g>'
    across = _scale(known["perplexity_ngrams"].to_list())
    upward = _scale(
        [0.0, _LEAST, *known["corrected"], *known["low"].drop_nulls(), *known["high"].drop_nulls()]
    )
    series = [
        _series(known.filter(pl.col("bias") == bias), colour, across, upward, number)
        for number, (bias, colour) in enumerate(_COLOURS.items())
    ]
    zero = _HEIGHT - _HEIGHT * upward.at(0.0) / 100
    axes = (
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="none" stroke="#c9ccd1"/>'
        f'<line x2="{_WIDTH}" y1="{zero:.1f}" y2="{zero:.1f}" stroke="#17191d" stroke-dasharray="3 3"/>'
        f'<text x="-6" y="10" text-anchor="end">{upward.high:.3f}</text>'
        f'<text x="-6" y="{_HEIGHT}" text-anchor="end">{upward.low:.3f}</text>'
        f'<text y="{_HEIGHT + 16}">{across.low:.1f}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + 16}" text-anchor="end">{across.high:.1f}</text>'
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT + 30}" text-anchor="middle">perplexity (n-grams)</text>'
        f'<text transform="translate(-44,{_HEIGHT / 2}) rotate(-90)" text-anchor="middle">bias beyond chance'
        "</text>"
    )
    return f"{shift}{axes}{''.join(series)}</g>"


def _series(rows: pl.DataFrame, colour: str, across: AxisScale, upward: AxisScale, number: int) -> str:
    if rows.is_empty():
        return ""
    points = []
    for row in rows.iter_rows(named=True):
        x = _WIDTH * across.at(row["perplexity_ngrams"]) / 100
        y = _HEIGHT - _HEIGHT * upward.at(row["corrected"]) / 100
        if row["low"] is not None:
            low, high = (_HEIGHT - _HEIGHT * upward.at(row[end]) / 100 for end in ("low", "high"))
            ends = f'y1="{low:.1f}" y2="{high:.1f}"'
            points.append(f'<line x1="{x:.1f}" x2="{x:.1f}" {ends} stroke="{colour}" opacity=".5"/>')
        points.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>')
        points.append(f'<text x="{x + 5:.1f}" y="{y - 5:.1f}" fill="{colour}">{row["strength"]:g}</text>')
    name = escape(str(rows["bias"][0]))
    key = f'<text x="{_WIDTH + 10}" y="{12 + 16 * number}" fill="{colour}">{name}</text>'
    return key + "".join(points)


def _scale(values: list[float]) -> AxisScale:
    low, high = min(values), max(values)
    margin = (high - low) * 0.08 or 0.5
    return AxisScale(low - margin, high + margin, ())


def _number(value: object, digits: int = 4) -> str:
    return f"{value:z.{digits}f}" if isinstance(value, float) else ""


RUNS = "runs"


@dataclass(frozen=True, slots=True)
class TradeoffJob:
    """A sweep that is ready to start."""

    options: TradeoffOptions
    study: MitigationSweep
    strengths: tuple[float, ...]
    source: str | None
    """The model by name, for its own perplexity."""
    identity: Mapping[str, Json]
    folder: Path

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        audits = {one.name: self.study.audit(one, self.folder / RUNS) for one in self.study.conditions}
        lines = (f"{name}: {audit.plan().lines[0]}" for name, audit in audits.items())
        title = f"tradeoff {self.study.model.ref.name}"
        return RunPlan(title, (*lines, f"folder  {self.folder}"), self.folder)

    def run(self, progress: Progress = SILENT_PROGRESS) -> Run:
        """Audit every strength, and write ``tradeoff.parquet``, ``.md`` and ``.svg``, ``price.parquet``."""
        name = self.study.model.ref.name
        with RunFolder(self.folder, identity=self.identity, fresh=self.options["fresh"]) as folder:
            command = self.options["command"] or f"evenhand tradeoff {name}"
            folder.manifest.update(command=command, name=name, ended=None, warnings=[])
            with run_stage(folder, "tradeoff") as record:
                runs = self.study.runs(self.folder / RUNS, progress)
                price = self.study.compute_costs(runs, self.folder, self.source, progress)
                strengths = dict(zip(runs, (0.0, *self.strengths), strict=True))
                table = tradeoff_curve(join_distances(runs), price, strengths)
                for stem, frame in (("tradeoff", table), ("price", price)):
                    with replace_file(self.folder / f"{stem}.parquet") as temporary:
                        write_parquet(frame, temporary)
                write_text(self.folder / "tradeoff.md", tradeoff_markdown(table))
                write_text(self.folder / "tradeoff.svg", tradeoff_svg(table))
                record["items"] = table.height
            folder.manifest["ended"] = utc_timestamp()
            folder.save_manifest()
            return Run(folder.path, folder.manifest)


@checks_options
def tradeoff(
    model: str | Model = "builtin",
    *,
    progress: Progress = SILENT_PROGRESS,
    **options: Unpack[TradeoffOptions],
) -> Run:
    """The folder with bias and perplexity at every strength; arguments are those of ``evenhand tradeoff``.

    A strength is lambda for a calibration, and the share of replaced words for ``naive`` and ``in-glove``.
    """
    return prepare(model, **options).run(progress)


@checks_options
def prepare(model: str | Model = "builtin", **options: Unpack[TradeoffOptions]) -> TradeoffJob:
    """A sweep with everything loaded and checked, so that ``plan`` can be shown before ``run``."""
    mode, chosen = options["mode"], _check_strengths(options["mode"], options["strengths"])
    execution = Execution(device=options["device"], batch=options["batch"], offline=options["offline"])
    loaded = registry.create_model(model, {}, execution) if isinstance(model, str) else model
    audited = fields_of(AuditOptions).keys() - {"out", "command"}
    shared = cast(AuditOptions, {name: value for name, value in options.items() if name in audited})
    shared["suite"] = split_names(options["suite"]) or SUITES
    shared["metrics"] = metric_names(options["metrics"]) or METRICS
    study = MitigationSweep(loaded, sweep_conditions(mode, chosen, mitigation_options(options)), shared)
    audits = [study.audit(condition, Path()) for condition in study.conditions]
    _check_distances(audits[0])
    tier = audits[0].sample_tier
    identity: dict[str, Json] = {
        "command": "tradeoff",
        "conditions": [dict(audit.identity) for audit in audits],
        "size": [tier.limit, tier.samples],
    }
    folder = Path(options["out"] or default_folder("tradeoff", loaded.ref.name, identity))
    return TradeoffJob(options, study, chosen, model if isinstance(model, str) else None, identity, folder)


def sweep_conditions(
    mode: str, strengths: Sequence[float], options: Mapping[str, Option]
) -> tuple[SweepCondition, ...]:
    """Vanilla, and the mode at every strength."""
    dial = "strength" if MODES[mode].startswith("calibration") else "share"
    grown = [SweepCondition(f"{mode} {at:g}", MODES[mode], {**options, dial: at}) for at in strengths]
    return (SweepCondition(VANILLA), *grown)


def tradeoff_curve(
    distances: pl.DataFrame, price: pl.DataFrame, strengths: Mapping[str, float]
) -> pl.DataFrame:
    """For each attribute and strength the overall bias of both kinds, and both perplexities."""
    columns = ("condition", "attribute", "bias", "estimate", "corrected", "low", "high", "p", "null_reason")
    table = distances.filter(option=OVERALL).select(
        *columns, strength=pl.col("condition").replace_strict(strengths, return_dtype=pl.Float64)
    )
    for metric in ("ngrams", "model"):
        suffixes = {"value": "", "low": "_low", "high": "_high"}
        perplexity = price.filter(metric=metric, output="perplexity").select(
            "condition",
            "attribute",
            *(pl.col(name).alias(f"perplexity_{metric}{suffix}") for name, suffix in suffixes.items()),
        )
        table = table.join(perplexity, on=["condition", "attribute"], how="left")
    return table.sort("attribute", "bias", "strength")


def _check_strengths(mode: str, given: str | Sequence[float]) -> tuple[float, ...]:
    check_mode(mode)
    try:
        strengths = (
            [float(part) for part in given.split(",") if part.strip()] if isinstance(given, str) else given
        )
    except ValueError as error:
        raise InputError(
            f"--strengths is {given!r}", expected="numbers, comma-separated", fix="for example 0.1,0.5,0.9"
        ) from error
    chosen = tuple(sorted({float(at) for at in strengths} - {0.0}))
    if not chosen or chosen[0] < 0:
        raise InputError(
            f"the strengths are {', '.join(f'{at:g}' for at in strengths) or 'none'}",
            expected="one or more numbers above 0; 0, the model as it is, is always there",
            fix="for example --strengths 0.1,0.5,0.9",
        )
    return chosen


def _check_distances(audit: AuditJob) -> None:
    """An error before anything is written where no suite asks for a distance of what is measured."""
    asked = {name for part in audit.parts for name in part.suite.info.distances}
    if not asked & {name.partition("=")[0] for name in audit.metrics}:
        suites = ", ".join(part.suite.info.name for part in audit.parts)
        raise InputError(
            f"there is no bias to draw: {suites} asks for no distance of {', '.join(audit.metrics)}",
            expected="a suite that asks for distances, such as political, with the metric it asks for",
            fix=f"measure {', '.join(sorted(asked))}" if asked else "for example --suite political",
        )
