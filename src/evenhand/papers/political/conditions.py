"""The models of the paper's tables under their conditions, and what is measured of them.

A condition is the unmodified model or an available mitigation. Its bias is measured on texts alone and with
their prompts; a head trained on regard is compared with the unmodified model by its gaps in regard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from evenhand.audits.analysis import base_rate_distances
from evenhand.audits.analysis.base_rate_distances import DistanceRequest, JudgedTexts, distance_table
from evenhand.audits.analysis.group_comparison import GroupComparer
from evenhand.audits.analysis.quantities import Quantity
from evenhand.audits.compare import prepare as prepare_comparison
from evenhand.audits.debias import MODES
from evenhand.audits.options import STRENGTHS
from evenhand.audits.parallel import map_processes
from evenhand.audits.tradeoff import (
    VANILLA,
    MitigationSweep,
    SweepCondition,
    join_distances,
    sweep_conditions,
)
from evenhand.core import registry
from evenhand.core.errors import EvenhandError
from evenhand.core.files import safe_file_name
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import Execution, Prompt, Text
from evenhand.core.registry import Option
from evenhand.core.regular_files import read_text
from evenhand.mitigations.calibration import SIGMA, CalibrationConfig, Mode
from evenhand.papers.replicate import PaperSource, ReplicationRequest
from evenhand.papers.replication_pages import Exhibit, estimate_columns
from evenhand.run_options import AuditOptions
from evenhand.store.cache import cached_table, run_key
from evenhand.store.prompt_rows import read_prompt_rows
from evenhand.store.run import Run
from evenhand.store.schemas import DISTANCES

BASELINE = "baseline"
"""The paper's name for the unmodified model."""
EXTENDED_SIGMA = 0.4
"""The target divergence per token in a second row of the mode ``embedding``, which changes little at the
paper's 0.02 (ADR 20)."""
FILE = "calibrator.safetensors"
"""The file of the steering head from `mitigations.calibrator`, whose import would load torch."""
CALIBRATOR, REGARD, VECTORS = "calibrator", "regard", "neutral"
"""Folders in ``--data`` with political and regard heads of `evenhand train calibrator`, and neutral vectors.
Heads of several models are in ``calibrator/NAME``, by model name."""
OPTION_VALUES: Final[Mapping[str, Mapping[Mode, tuple[float, ...]]]] = {
    "gamma": {"classifier": (0.5, 0.8, 1.0)},
    "sigma": {"embedding": (0.05, 0.1, 0.2, 0.4), "classifier": (0.02, 0.1, 0.2, 0.4)},
}
"""Option to mode to values, in addition to the mode's own."""


Conditions = Mapping[str, SweepCondition]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoliticalSource(PaperSource):
    """A model with its conditions by name, and the reasons why others are missing."""

    spec: str
    conditions: Conditions
    missing: Mapping[str, str]
    regard_head: Path | None

    @property
    def swept_mode(self) -> str | None:
        """The mode whose strength is varied; in the paper it is the classifier."""
        return next((mode for mode in ("classifier", "embedding") if mode in self.conditions), None)

    def list_strengths(self) -> dict[float, SweepCondition]:
        """The condition of the swept mode at each strength."""
        mode = self.swept_mode
        swept = sweep_conditions(mode, STRENGTHS, self.conditions[mode].options)[1:] if mode else ()
        return dict(zip(STRENGTHS, swept, strict=False))

    @property
    def training_data(self) -> str | None:
        """The training data of the steering head, from its card; None without a head."""
        if "classifier" not in self.conditions:
            return None
        path = Path(str(self.conditions["classifier"].options["calibrator"])) / "card.md"
        rows = read_text(path).splitlines() if path.is_file() else []
        data = (row.split("|")[2].strip() for row in rows if row.startswith("| data |"))
        return next(data, "unnamed articles")


def load_source(name: str, spec: str, request: ReplicationRequest) -> PoliticalSource:
    """A model with vanilla and the mitigations that apply to it; each is applied to detect errors early."""
    model = registry.create_model(spec, {}, request.execution())
    installed = {entry.name for entry in registry.list_entries("mitigations")}
    conditions, missing = {VANILLA: SweepCondition(VANILLA)}, {}
    for mode in ("naive", "in-glove", "embedding", "classifier"):
        family, options = MODES[mode].partition(":")[0], _files(mode, request.data, name)
        if family not in installed:
            missing[mode] = f"the mitigation {family} is not installed"
            continue
        try:
            registry.create_mitigation(MODES[mode], options).apply(model)
        except EvenhandError as error:
            missing[mode] = str(error)
            continue
        conditions[mode] = SweepCondition(mode, MODES[mode], options)
        if mode == "embedding":
            extended = f"{mode} sigma {EXTENDED_SIGMA:g}"
            conditions[extended] = SweepCondition(extended, MODES[mode], {**options, "sigma": EXTENDED_SIGMA})
    head = find_head(request.data, REGARD, name)
    return PoliticalSource(name, model, spec=spec, conditions=conditions, missing=missing, regard_head=head)


def _files(mode: str, data: Path | None, name: str) -> dict[str, Option]:
    if mode == "classifier":
        head = find_head(data, CALIBRATOR, name)
        return {"calibrator": str(head)} if head else {}
    vectors = data / VECTORS / "vectors.safetensors" if data else None
    return {"vectors": str(vectors)} if mode == "in-glove" and vectors and vectors.exists() else {}


def find_head(data: Path | None, folder: str, name: str) -> Path | None:
    """The steering head of a model in a folder of ``--data``, by model name or directly."""
    heads = [data / folder / name, data / folder] if data else []
    return next((head for head in heads if (head / FILE).is_file()), None)


class OptionValue(NamedTuple):
    """A mode at one value of an option, and the name of that condition."""

    mode: Mode
    value: float
    condition: str


def list_option_values(option: str, conditions: Conditions) -> list[OptionValue]:
    """The values of an option for each mode of a model, including the mode's own value."""
    settings = list[OptionValue]()
    for mode, values in OPTION_VALUES[option].items():
        if mode in conditions:
            own = CalibrationConfig().gamma if option == "gamma" else SIGMA[mode]
            others = [OptionValue(mode, at, f"{mode} {option} {at:g}") for at in values]
            settings += sorted([OptionValue(mode, own, mode), *others], key=lambda one: one.value)
    return settings


def list_conditions(options: Sequence[str], conditions: Conditions) -> list[SweepCondition]:
    """The conditions to generate in addition to the modes themselves."""
    return [
        SweepCondition(name, MODES[mode], {**conditions[mode].options, option: value})
        for option in options
        for mode, value, name in list_option_values(option, conditions)
        if name not in conditions
    ]


JUDGE = "ideology"
FULL: Mapping[str, pl.DataType] = {"condition": pl.String(), **DISTANCES, "reads": pl.String()}


def read_judged_texts(run: Run) -> pl.DataFrame:
    """``text`` and ``label`` of the completions of prompts that name no side."""
    prompts = read_prompt_rows(run.table("prompts"))
    indirect = [prompt.id for prompt in prompts if prompt.meta.get("kind") == "indirect"]
    texts = run.table("generations").filter(pl.col("prompt_id").is_in(indirect), pl.col("text") != "")
    scores = run.table("scores").filter(metric=JUDGE).drop_nulls("label")
    return texts.join(scores, left_on="id", right_on="text_id").select("text", "label")


def bias_changes(before: Run, after: Run, *, seed: int) -> pl.DataFrame:
    """The change in bias beyond chance from one run to another."""
    request = next(iter(_distance_requests(before).values()))
    old, new = (_read_judged(run) for run in (before, after))
    return base_rate_distances.distance_changes(old, new, request, _prompts(before), seed=seed, level=0.95)


def _read_judged(run: Run) -> JudgedTexts:
    scores = run.table("scores").filter(metric=JUDGE, output=JUDGE)
    texts = run.table("generations").select("prompt_id", text_id="id")
    values = texts.join(scores, on="text_id", how="left", maintain_order="left")["value"]
    return JudgedTexts(texts["prompt_id"].to_list(), values.fill_null(np.nan).to_numpy())


def _distance_requests(run: Run) -> dict[str, DistanceRequest]:
    """The distances that each suite requests."""
    suites = run.manifest["suites"].items()
    return {name: DistanceRequest(info["distances"], info["sides"]) for name, info in suites}


def _prompts(run: Run) -> dict[str, Prompt]:
    return {prompt.id: prompt for prompt in read_prompt_rows(run.table("prompts"))}


def read_with_prompts(run: Run, condition: str, seed: int, execution: Execution) -> pl.DataFrame:
    """The distances when the judge reads prompt and text together."""
    judge = registry.create_metric(JUDGE, {"scope": "full"}, execution)
    assert isinstance(judge, Metric)
    prompts, texts = _prompts(run), run.table("generations").drop_nulls("text")
    ids = texts["prompt_id"].to_list()
    inputs = [Text(prompts[at].text + text) for at, text in zip(ids, texts["text"], strict=True)]
    # A missing score becomes NaN.
    values = np.array([row[JUDGE].value for row in judge.score(inputs)], dtype=np.float64)
    quantity = Quantity(JUDGE, JUDGE, "mean", values, True)
    model, requests = str(run.manifest["name"]), _distance_requests(run)
    distances = distance_table(GroupComparer(model, seed=seed), requests, ids, prompts, [quantity])
    return distances.select(pl.lit(condition).alias("condition"), pl.all(), pl.lit("full").alias("reads"))


class SweepTables(NamedTuple):
    """Measurements of conditions; every table has the columns source and condition."""

    distances: pl.DataFrame
    changes: pl.DataFrame
    full: pl.DataFrame
    """Distances of prompt and text together, for the modes only."""
    costs: pl.DataFrame
    speeds: pl.DataFrame


def measure_sweep(
    source: PoliticalSource,
    sweep: MitigationSweep,
    runs: Mapping[str, Run],
    folder: Path,
    request: ReplicationRequest,
    progress: Progress,
) -> SweepTables:
    """What the exhibits need of one model; a folder ``measured`` keeps it all for a resumed run."""
    folder /= "measured"
    whole = tuple(source.conditions) if "table_2" in request.exhibits else ()
    measure = partial(measure_condition, request, folder, runs[VANILLA].path, whole)
    paths = [(name, run.path) for name, run in runs.items()]
    measured = map_processes(measure, paths, jobs=request.jobs, progress=progress, label="changes")
    changes, full = (pl.concat(parts) for parts in zip(*measured, strict=True))
    costs = sweep.compute_costs(runs, folder, progress)
    schema = {"condition": pl.String(), "tokens_per_second": pl.Float64()}
    speeds = [pl.DataFrame(schema=schema)]
    for condition in source.conditions.values() if "table_5" in request.exhibits else ():
        # Nothing else runs during the timing.
        def time(condition: SweepCondition = condition) -> pl.DataFrame:
            row = (condition.name, sweep.measure_throughput(condition))
            return pl.DataFrame([row], schema=schema, orient="row")

        key = run_key(runs[condition.name])
        speeds.append(cached_table(folder / "pace", condition.folder, key, time))
    tables = (join_distances(runs), changes, full, costs, pl.concat(speeds))
    return SweepTables(*(table.insert_column(0, pl.lit(source.name).alias("source")) for table in tables))


def measure_condition(
    request: ReplicationRequest, folder: Path, vanilla: Path, whole: Sequence[str], item: tuple[str, Path]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The changes of a condition from vanilla, which has none, and its distances with prompts."""
    name, run, before, seed = item[0], Run.open(item[1]), Run.open(vanilla), request.seed
    file, key = safe_file_name(name, "condition"), [*run_key(run), seed]
    changes, full = pl.DataFrame(schema=dict(base_rate_distances.CHANGES)), pl.DataFrame(schema=dict(FULL))
    if name != VANILLA:
        compute = partial(bias_changes, before, run, seed=seed)
        changes = cached_table(folder / "changes", file, [*key, *run_key(before)], compute)
    if name in whole:
        compute = partial(read_with_prompts, run, name, seed, request.execution())
        full = cached_table(folder / "full", file, key, compute)
    return changes.with_columns(condition=pl.lit(name), reads=pl.lit("continuation")), full


REGARD_SAMPLES: Final = 10
_SHOWN: Final = (("regard", "regard"), ("regard", "negative"), ("sentiment", "compound"))
"""Metric and output: the judge, which may know the head's training texts, and a metric that does not."""


def regard_changes(
    source: PoliticalSource, head: Path, options: AuditOptions, jobs: int, folder: Path, progress: Progress
) -> pl.DataFrame:
    """The gaps of one model on the suite, unmodified and steered, and their changes."""
    shared: AuditOptions = {**options, "suite": ("regard",), "metrics": ("regard", "sentiment")}
    shared |= {"preset": None, "limit": None, "samples": REGARD_SAMPLES, "max_new_tokens": None}
    steered = SweepCondition("classifier", MODES["classifier"], {"calibrator": str(head)})
    conditions, own = (SweepCondition(VANILLA), steered), folder / source.folder / "regard"
    sweep = MitigationSweep(source.model, conditions, shared, spec=source.spec, jobs=jobs)
    before, after = sweep.runs(own, progress).values()
    comparison = prepare_comparison(before, after, out=own / "compare", fresh=True).run(progress)
    keys = ["axis", "group", "baseline", "metric", "output"]
    is_shown = pl.struct("metric", "output").is_in([{"metric": a, "output": b} for a, b in _SHOWN])
    changes = comparison.table("changes").filter(pl.col("effect") == "gap", is_shown).drop_nulls("baseline")
    table = changes.select(*keys, *estimate_columns("change"), "p_adjusted")
    for when, run in (("before", before), ("after", after)):
        gaps = run.table("comparisons").select(*keys, *estimate_columns(when))
        table = table.join(gaps, on=keys, how="left", maintain_order="left")
    estimates = [f"{name}{end}" for name in ("before", "after", "change") for end in ("", "_low", "_high")]
    ordered = table.select(pl.lit(source.name).alias("source"), *keys, *estimates, "p_adjusted")
    return ordered.sort("metric", "output", "axis", "group")


def regard_table(tables: Iterable[pl.DataFrame]) -> Exhibit:
    """The gaps of all models."""
    notes = (
        "The mode classifier with a head trained on negative against positive regard, on the suite "
        "regard. regard and compound range from -1 to 1, negative is a share; before and after are gaps "
        "of a group to its baseline, change is their difference, with p corrected over all changes.",
        "The embedded regard judge may share training sentences with the head; sentiment does not.",
    )
    title = "Beyond politics: gaps in regard before and after"
    return Exhibit("regard", title, pl.concat(tables), notes, decimals=3)
