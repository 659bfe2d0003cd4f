"""``tradeoff``: bias against perplexity as a mitigation grows stronger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Unpack, cast

import polars as pl
from markupsafe import Markup

from evenhand.audits.debias import MODES, check_mode, mitigation_options
from evenhand.audits.mitigation_sweep import (
    METRICS,
    SUITES,
    VANILLA,
    MitigationSweep,
    SweepCondition,
    join_distances,
)
from evenhand.audits.options import TradeoffOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, RunJob, metric_names
from evenhand.core import registry
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options, fields_of, split_names
from evenhand.core.protocols import Model, Progress
from evenhand.core.records import Execution
from evenhand.core.registry import Option
from evenhand.report.charts import Plot, element
from evenhand.report.wording import escape_markdown
from evenhand.run_options import AuditOptions
from evenhand.stats.base_rates import OVERALL
from evenhand.store.atomic_writes import replace_file, write_text
from evenhand.store.parquet import write_parquet
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, default_folder, run_stage

_WIDTH, _HEIGHT, _LEFT, _TOP = 420, 220, 60, 34
_COLOURS = {"indirect": "#1d5bb8", "direct": "#ad4706"}
_LEAST = 0.01
"""Bias that every panel reaches up to: the noise of rounding is not drawn as if it were a trend."""
NOTES = (
    "Bias is the mean distance of the options beyond what chance gives, with its interval. Perplexity is "
    "that of the half of the texts no n-gram model was trained on; at strength 0 it is the model's own text."
)


def tradeoff_markdown(table: pl.DataFrame) -> str:
    """The sweep as a table."""
    head = "| attribute | bias | strength | beyond chance | interval | p | perplexity (n-grams) | (model) |"
    lines = ["# Bias against perplexity", "", head, "|" + " --- |" * 8]
    for row in table.iter_rows(named=True):
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
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", NOTES, ""])


def tradeoff_svg(table: pl.DataFrame) -> str:
    """A panel for each attribute: perplexity to the right, bias upwards, one point a strength."""
    attributes = table["attribute"].unique(maintain_order=True).to_list()
    # A ground of its own: on a dark page black letters would not be seen.
    parts = [element("rect", width="100%", height="100%", fill="#ffffff")]
    for place, attribute in enumerate(attributes):
        parts += _draw_panel(table.filter(attribute=attribute), attribute, _TOP + place * (_HEIGHT + 80))
    drawing = element(
        "svg",
        element("title", "Bias beyond chance against perplexity, by strength"),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH + 140} {len(attributes) * (_HEIGHT + 80)}",
        role="img",
        font_family="sans-serif",
        font_size=11,
    )
    return f"{drawing}\n"


def _draw_panel(rows: pl.DataFrame, attribute: str, top: float) -> list[Markup]:
    title = element("text", attribute, x=_LEFT, y=top - 18, font_weight="bold")
    known = rows.drop_nulls(["corrected", "perplexity_ngrams"])
    if known.is_empty():
        return [title, element("text", "Not drawn: bias or perplexity is not known.", x=_LEFT, y=top + 10)]
    bias = pl.concat([known[name].drop_nulls() for name in ("corrected", "low", "high")])
    plot = Plot(
        x=_widen(known["perplexity_ngrams"]),
        y=_widen([0.0, _LEAST, *bias]),
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        top=top,
    )
    ends = {"low": f"{plot.x[0]:.1f}", "high": f"{plot.x[1]:.1f}"}
    ends |= {"bottom": f"{plot.y[0]:.3f}", "top": f"{plot.y[1]:.3f}"}
    frame = plot.frame(**ends, across="perplexity (n-grams)", upward="bias beyond chance")
    parts = [
        title,
        frame,
        plot.segment((plot.x[0], 0.0), (plot.x[1], 0.0), stroke="#17191d", stroke_dasharray="3 3"),
    ]
    for number, (name, colour) in enumerate(_COLOURS.items()):
        points = known.filter(bias=name)
        for row in points.iter_rows(named=True):
            x, y = row["perplexity_ngrams"], row["corrected"]
            left, upper = plot.at(x, y)
            if row["low"] is not None:
                interval = (x, row["low"]), (x, row["high"])
                parts.append(plot.segment(*interval, stroke=colour, opacity=0.5))
            parts.append(plot.dot(x, y, size=3.5, fill=colour))
            parts.append(element("text", f"{row['strength']:g}", x=left + 5, y=upper - 5, fill=colour))
        if not points.is_empty():
            key = {"x": _LEFT + _WIDTH + 10, "y": top + 12 + 16 * number}
            parts.append(element("text", name, **key, fill=colour))
    return parts


def _widen(values: Sequence[float] | pl.Series) -> tuple[float, float]:
    """The range of values with a margin on either side."""
    low, high = float(min(values)), float(max(values))
    margin = (high - low) * 0.08 or 0.5
    return low - margin, high + margin


def _number(value: object, digits: int = 4) -> str:
    return f"{value:z.{digits}f}" if isinstance(value, float) else ""


RUNS = "runs"


def _sweep(
    sweep: MitigationSweep,
    strengths: Sequence[float],
    source: str | None,
    named: Mapping[str, str],
    folder: RunFolder,
    progress: Progress,
) -> None:
    """Audit every strength, and write ``tradeoff.parquet``, ``.md`` and ``.svg``, ``price.parquet``."""
    folder.manifest.update(**named, ended=None, warnings=[])
    with run_stage(folder, "tradeoff") as record:
        runs = sweep.runs(folder.path / RUNS, progress)
        price = sweep.compute_costs(runs, folder.path, source, progress)
        of_run = dict(zip(runs, (0.0, *strengths), strict=True))
        table = tradeoff_curve(join_distances(runs), price, of_run)
        for stem, frame in (("tradeoff", table), ("price", price)):
            with replace_file(folder.path / f"{stem}.parquet") as temporary:
                write_parquet(frame, temporary)
        write_text(folder.path / "tradeoff.md", tradeoff_markdown(table))
        write_text(folder.path / "tradeoff.svg", tradeoff_svg(table))
        record["items"] = table.height


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
def prepare(model: str | Model = "builtin", **options: Unpack[TradeoffOptions]) -> RunJob:
    """A sweep with everything loaded and checked, so that ``plan`` can be shown before ``run``."""
    mode, chosen = options["mode"], _check_strengths(options["mode"], options["strengths"])
    execution = Execution(device=options["device"], batch=options["batch"], offline=options["offline"])
    loaded = registry.create_model(model, {}, execution) if isinstance(model, str) else model
    audited = fields_of(AuditOptions).keys() - {"out", "command"}
    shared = cast(AuditOptions, {name: value for name, value in options.items() if name in audited})
    shared["suite"] = split_names(options["suite"]) or SUITES
    shared["metrics"] = metric_names(options["metrics"]) or METRICS
    sweep = MitigationSweep(loaded, sweep_conditions(mode, chosen, mitigation_options(options)), shared)
    audits = {condition.name: sweep.audit(condition, Path()) for condition in sweep.conditions}
    first = audits[VANILLA]
    requested = {name for part in first.parts for name in part.suite.info.distances}
    if requested.isdisjoint(name.partition("=")[0] for name in first.metrics):
        suites = ", ".join(part.suite.info.name for part in first.parts)
        raise InputError(
            f"there is no bias to draw: {suites} measures no distances of {', '.join(first.metrics)}",
            expected="a suite that measures distances, such as political, with the metric it needs",
            fix=f"measure {', '.join(sorted(requested))}" if requested else "for example --suite political",
        )
    identity: dict[str, Json] = {
        "command": "tradeoff",
        "conditions": [dict(audit.identity) for audit in audits.values()],
        "size": [first.sample_tier.limit, first.sample_tier.samples],
    }
    name, source = loaded.ref.name, model if isinstance(model, str) else None
    folder = Path(options["out"] or default_folder("tradeoff", name, identity))
    lines = (f"{condition}: {audit.size[0]}" for condition, audit in audits.items())
    named = {"command": options["command"] or f"evenhand tradeoff {name}", "name": name}
    return RunJob(
        title=f"tradeoff {name}",
        lines=(*lines, f"folder  {folder}"),
        identity=identity,
        folder=folder,
        fresh=options["fresh"],
        work=partial(_sweep, sweep, chosen, source, named),
        formats=(),
    )


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
