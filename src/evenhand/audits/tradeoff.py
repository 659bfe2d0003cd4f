"""``tradeoff``: bias against perplexity as a mitigation grows stronger.

The same audit of one model without and with mitigations shows what changes and what it costs: perplexity,
diversity and length. n-gram models are trained on half of the vanilla texts, one per axis (Liu et al. 2021,
6.2). Scored on that half they flatter it; so the other half is scored too, and mitigated texts are those of
its prompts and samples: a mitigation draws with the same random numbers, and would else repeat what was
trained on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Unpack, cast

import numpy as np
import polars as pl
from markupsafe import Markup
from scipy.stats import t as student

from evenhand._version import __version__
from evenhand.audits.audit import AuditJob
from evenhand.audits.audit import prepare as prepare_audit
from evenhand.audits.debias import MODES, check_mode, mitigation_options
from evenhand.audits.options import TradeoffOptions
from evenhand.audits.parallel import map_processes
from evenhand.audits.run_setup import SILENT_PROGRESS, RunJob, metric_names
from evenhand.config import resolve_config
from evenhand.core import registry
from evenhand.core.digests import Json, digest, file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import safe_file_name
from evenhand.core.options import checks_options, fields_of, split_names
from evenhand.core.protocols import Cell, Metric, Model, Progress, ScoringModel, SetMetric
from evenhand.core.records import Estimate, Execution, Request, Text, Value
from evenhand.core.registry import Option
from evenhand.report.charts import Plot, element
from evenhand.report.wording import escape_markdown
from evenhand.run_options import AuditOptions
from evenhand.stats.base_rates import OVERALL
from evenhand.stats.results import NO_VALUES, ONE_CLUSTER
from evenhand.store.atomic_writes import replace_file, write_text
from evenhand.store.cache import cached_table, run_key
from evenhand.store.parquet import write_parquet
from evenhand.store.prompt_rows import read_prompt_rows
from evenhand.store.run import MANIFEST, Run, read_manifest
from evenhand.store.run_folder import RunFolder, default_folder, run_stage
from evenhand.text.ngram_model import train_ngram_model
from evenhand.text.word_tokens import tokenize

SUITES = ("political", "political:direct")
METRICS = ("ideology",)
TRIAL = 32
"""Prompts of a trial of speed: a batch of the paper's bar."""
VANILLA = "vanilla"
TRAINING = "vanilla (training half)"
NGRAMS, PRICES = "ngrams", "prices"
"""The folders of the ARPA files, and of what each condition costs."""
COST_SCHEMA: Mapping[str, pl.DataType] = {
    **dict.fromkeys(("condition", "attribute", "metric", "output"), pl.String()),
    **dict.fromkeys(("value", "low", "high"), pl.Float64()),
    **dict.fromkeys(("n", "n_clusters"), pl.Int64()),
    "null_reason": pl.String(),
}
LEVEL = 0.95
METHOD = "cluster jackknife"
BLOCKS = 20
"""At most so many blocks of clusters are left out, one at a time."""


@dataclass(frozen=True, slots=True)
class SweepCondition:
    """One way the model writes: as it is, or with a mitigation."""

    name: str
    mitigation: str | None = None
    options: Mapping[str, Option] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The folder of its run."""
        return safe_file_name(self.name, "condition")


@dataclass(frozen=True, slots=True)
class MitigationSweep:
    """A model under several conditions, vanilla first."""

    model: Model | str
    conditions: tuple[SweepCondition, ...]
    options: AuditOptions
    """What all audits share: suites, metrics, sampling, seed."""
    spec: str | None = None
    """The model by name, as other processes and its own perplexity load it; None leaves both out."""
    jobs: int = 1
    """Conditions at once."""

    def audit(self, condition: SweepCondition, folder: Path) -> AuditJob:
        """The audit of one condition."""
        shared: AuditOptions = {**self.options, "out": folder / condition.folder}
        if condition.mitigation:
            shared["mitigate"] = condition.mitigation
            shared["mitigation_options"] = dict(condition.options)
        return prepare_audit(self.model, **shared)

    def runs(self, folder: Path, progress: Progress) -> dict[str, Run]:
        """The finished run of every condition, by name; a second start goes on where the first one ended."""
        if self.spec is None or self.jobs < 2:
            return {one.name: _run(self.audit(one, folder), progress) for one in self.conditions}
        # Other processes load the model by its name.
        work = partial(_run_elsewhere, replace(self, model=self.spec), folder)
        paths = map_processes(work, self.conditions, jobs=self.jobs, progress=progress, label="conditions")
        return {one.name: Run.open(path) for one, path in zip(self.conditions, paths, strict=True)}

    def compute_costs(self, runs: Mapping[str, Run], folder: Path, progress: Progress) -> pl.DataFrame:
        """What the mitigations cost: for each condition, axis and output a number with its interval.

        The n-gram models and the prices go to ``folder``, where a second start finds them.
        """
        own = None
        if self.spec is not None and isinstance(self.model, ScoringModel):
            # Under the vanilla model itself, as it gives log-probabilities.
            execution = resolve_config(self.options).execution()
            own = partial(registry.create_metric, "perplexity", {"source": self.spec}, execution)
        half = _read_texts(runs[VANILLA]).filter(~pl.col("held_out"))
        texts = {axis: half.filter(axis=axis)["text"].to_list() for axis in half["axis"].unique().sort()}
        paths = {axis: folder / NGRAMS / f"{axis}.arpa" for axis in texts}
        training = [(paths[axis], of_axis) for axis, of_axis in texts.items()]
        map_processes(_train_ngrams, training, jobs=self.jobs, progress=progress, label="n-gram models")
        work = partial(_compute_costs, runs[VANILLA].path, folder / PRICES, paths, own)
        named = [(name, run.path) for name, run in {VANILLA: runs[VANILLA], **runs}.items()]
        tables = map_processes(work, named, jobs=self.jobs, progress=progress, label="prices")
        _load_ngrams.cache_clear()
        return pl.concat([pl.DataFrame(schema=dict(COST_SCHEMA)), *tables])

    def measure_throughput(self, condition: SweepCondition) -> float | None:
        """Tokens a second of one batch, after one to warm up; None where the model counts no tokens."""
        audit = self.audit(condition, Path())
        part = audit.parts[0]
        requests = [Request(prompt.id, prompt.text, (0,)) for prompt in part.prompts[:TRIAL]]
        for _ in range(2):
            start = time.perf_counter()
            tokens = sum(done.new_tokens or 0 for done in audit.model.generate(requests, part.spec))
            seconds = time.perf_counter() - start
        return tokens / seconds if tokens else None


def _run_elsewhere(sweep: MitigationSweep, folder: Path, condition: SweepCondition) -> Path:
    """The folder of a condition's finished run."""
    return _run(sweep.audit(condition, folder), SILENT_PROGRESS).path


def _run(audit: AuditJob, progress: Progress) -> Run:
    """The finished run of an audit; one that is there already is read, not compared again."""
    if audit.options["fresh"] or not (audit.folder / MANIFEST).is_file():
        return audit.run(progress)
    manifest = read_manifest(audit.folder)
    known = manifest.get("metrics") or {}
    same = ("version", "weights", "options")
    # As a manifest has them: with lists for tuples.
    identity, infos = json.loads(
        json.dumps([audit.identity, {name: asdict(metric.info) for name, metric in audit.metrics.items()}])
    )
    is_finished = (
        manifest.get("ended")
        and manifest["package"] == __version__
        and manifest["identity"] == identity
        and manifest["growth"] == [asdict(audit.sample_tier)]
        and infos.keys() <= known.keys()
        and all(known[name].get(key) == info.get(key) for name, info in infos.items() for key in same)
    )
    return Run.open(audit.folder) if is_finished else audit.run(progress)


def join_distances(runs: Mapping[str, Run]) -> pl.DataFrame:
    """The tables ``distances`` of all runs, with their ``condition``."""
    condition = {name: pl.lit(name).alias("condition") for name in runs}
    return pl.concat([run.table("distances").insert_column(0, condition[name]) for name, run in runs.items()])


def _train_ngrams(task: tuple[Path, list[str]]) -> None:
    """Write the n-gram model of texts, unless there is one."""
    path, texts = task
    mark, wanted = path.with_suffix(".digest"), digest(list(texts))
    if path.is_file() and mark.is_file() and mark.read_text(encoding="utf-8") == wanted:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    mark.unlink(missing_ok=True)
    train_ngram_model([tokenize(text) for text in texts]).write(path)
    mark.write_text(wanted, encoding="utf-8")


def _compute_costs(
    vanilla: Path,
    folder: Path,
    ngrams: Mapping[str, Path],
    model: Callable[[], Metric | SetMetric] | None,
    condition: tuple[str, Path],
) -> pl.DataFrame:
    """The prices of one condition; of vanilla, those of both halves."""
    name, run = condition[0], Run.open(condition[1])
    depends_on = [*run_key(run), *run_key(Run.open(vanilla)), model is not None, LEVEL]
    costs = partial(_costs_of_run, name, run, ngrams, model)
    return cached_table(folder, safe_file_name(name, "condition"), depends_on, costs)


def _costs_of_run(
    condition: str, run: Run, ngrams: Mapping[str, Path], model: Callable[[], Metric | SetMetric] | None
) -> pl.DataFrame:
    texts = _read_texts(run)
    sets = {condition: texts.filter(pl.col("held_out"))}
    if condition == VANILLA:
        sets = {TRAINING: texts.filter(~pl.col("held_out")), **sets}
    own = {"model": model()} if model else {}
    rows: list[dict[str, object]] = []
    for axis, path in sorted(ngrams.items()):
        cells = {
            Cell(axis, name): [
                (Text(text), cluster)
                for text, cluster in table.filter(axis=axis).select("text", "cluster").iter_rows()
            ]
            for name, table in sets.items()
        }
        surprise, diversity = _load_ngrams(str(path), file_digest(path)), registry.create_metric("diversity")
        metrics = {"ngrams": surprise, "diversity": diversity, **own}
        for name, metric in metrics.items():
            for cell, outputs in estimate_sets(cast(SetMetric, metric), cells).items():
                known = {"condition": cell.group, "attribute": cell.axis, "metric": name}
                rows += [{**known, "output": output, **asdict(item)} for output, item in outputs.items()]
    return pl.DataFrame(rows, schema=dict(COST_SCHEMA))


@lru_cache(maxsize=3)
def _load_ngrams(path: str, _digest: str) -> Metric | SetMetric:
    """The metric of an ARPA file; reading one takes as long as a condition's texts."""
    return registry.create_metric(f"perplexity={path}")


def _read_texts(run: Run) -> pl.DataFrame:
    """The texts of a run by axis, and whether they are of the half that is held out.

    Every second sample; with one sample a prompt, every second prompt.
    """
    prompts = read_prompt_rows(run.table("prompts"))
    rows = [
        (prompt.id, place, group.axis, prompt.cluster)
        for place, prompt in enumerate(sorted(prompts, key=lambda prompt: prompt.id))
        for group in prompt.groups
    ]
    of_prompt = pl.DataFrame(rows, schema=["prompt_id", "place", "axis", "cluster"], orient="row")
    texts = run.table("generations").filter(pl.col("text").is_not_null())
    half = pl.col("sample") if (texts["sample"].max() or 0) else pl.col("place")
    joined = texts.select("prompt_id", "sample", "text").join(of_prompt, on="prompt_id")
    return joined.with_columns((half % 2 == 1).alias("held_out")).sort("prompt_id", "sample")


def estimate_sets(
    metric: SetMetric, cells: Mapping[Cell, Sequence[tuple[Text, str]]]
) -> dict[Cell, dict[str, Estimate]]:
    """For each set of texts, each with its cluster, and each output its number, with a jackknife interval.

    Each block of clusters is left out in turn; clusters are dealt to blocks in order of name. A bootstrap
    repeats texts, and repeated texts hold no new n-gram: distinct-n would come out too low.
    """
    whole = metric.measure({cell: [text for text, _ in rows] for cell, rows in cells.items()})
    estimates: dict[Cell, dict[str, Estimate]] = {}
    for cell, rows in cells.items():
        names = sorted({cluster for _, cluster in rows})
        block = {name: place % BLOCKS for place, name in enumerate(names)}
        parts = []
        for left_out in range(min(BLOCKS, len(names))) if len(names) > 1 else ():
            texts = [text for text, cluster in rows if block[cluster] != left_out]
            parts.append(metric.measure({cell: texts})[cell])
        known = partial(Estimate, level=LEVEL, method=METHOD, n=len(rows), n_null=0, n_clusters=len(names))
        estimates[cell] = {
            output: _estimate(value, [part[output].value for part in parts], known)
            for output, value in whole[cell].items()
        }
    return estimates


def _estimate(value: Value, parts: Sequence[float | None], estimate: Callable[..., Estimate]) -> Estimate:
    if value.value is None:
        return estimate(None, None, None, null_reason=value.null_reason or NO_VALUES)
    known = np.array([part for part in parts if part is not None])
    if known.size < 2:
        return estimate(value.value, None, None, null_reason=ONE_CLUSTER)
    error = np.sqrt((known.size - 1) / known.size * np.sum((known - known.mean()) ** 2))
    half = float(student.ppf((1 + LEVEL) / 2, known.size - 1) * error)
    return estimate(value.value, value.value - half, value.value + half)


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
        names = [escape_markdown(str(row[name])) for name in ("attribute", "bias")]
        bias = [f"{row['strength']:g}", _number(row["corrected"]), interval, _number(row["p"], 3)]
        costs = [_number(row[f"perplexity_{metric}"], 1) for metric in ("ngrams", "model")]
        lines.append(f"| {' | '.join(names + bias + costs)} |")
    return "\n".join([*lines, "", NOTES, ""])


def tradeoff_svg(table: pl.DataFrame) -> str:
    """A panel for each attribute: perplexity to the right, bias upwards, one point a strength."""
    attributes = table["attribute"].unique(maintain_order=True).to_list()
    # A ground of its own: on a dark page black letters would not be seen.
    parts = [element("rect", width="100%", height="100%", fill="#ffffff")]
    for place, attribute in enumerate(attributes):
        parts += _draw_panel(table.filter(attribute=attribute), attribute, _TOP + place * (_HEIGHT + 80))
    title = element("title", "Bias beyond chance against perplexity, by strength")
    view = f"0 0 {_WIDTH + 140} {len(attributes) * (_HEIGHT + 80)}"
    page = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": view, "role": "img"}
    return f"{element('svg', title, *parts, **page, font_family='sans-serif', font_size=11)}\n"


def _draw_panel(rows: pl.DataFrame, attribute: str, top: float) -> list[Markup]:
    title = element("text", attribute, x=_LEFT, y=top - 18, font_weight="bold")
    known = rows.drop_nulls(["corrected", "perplexity_ngrams"])
    if known.is_empty():
        return [title, element("text", "Not drawn: bias or perplexity is not known.", x=_LEFT, y=top + 10)]
    bias = pl.concat([known[name].drop_nulls() for name in ("corrected", "low", "high")])
    across, upward = _widen(known["perplexity_ngrams"]), _widen([0.0, _LEAST, *bias])
    plot = Plot(x=across, y=upward, width=_WIDTH, height=_HEIGHT, left=_LEFT, top=top)
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
    named: Mapping[str, str],
    folder: RunFolder,
    progress: Progress,
) -> None:
    """Audit every strength, and write ``tradeoff.parquet``, ``.md`` and ``.svg``, ``price.parquet``."""
    folder.manifest.update(**named, ended=None, warnings=[])
    with run_stage(folder, "tradeoff") as record:
        runs = sweep.runs(folder.path / RUNS, progress)
        price = sweep.compute_costs(runs, folder.path, progress)
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
    conditions = sweep_conditions(mode, chosen, mitigation_options(options))
    sweep = MitigationSweep(loaded, conditions, shared, spec=model if isinstance(model, str) else None)
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
    name = loaded.ref.name
    folder = Path(options["out"] or default_folder("tradeoff", name, identity))
    lines = (f"{condition}: {audit.size[0]}" for condition, audit in audits.items())
    named = {"command": options["command"] or f"evenhand tradeoff {name}", "name": name}
    return RunJob(
        title=f"tradeoff {name}",
        lines=(*lines, f"folder  {folder}"),
        identity=identity,
        folder=folder,
        fresh=options["fresh"],
        work=partial(_sweep, sweep, chosen, named),
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
