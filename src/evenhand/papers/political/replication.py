"""Runs the paper: every model under every mode, then its tables and Figure 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from evenhand.audits.mitigation_cost import TRAINING, VANILLA
from evenhand.audits.mitigation_sweep import METRICS, SUITES, MitigationSweep, SweepCondition, join_distances
from evenhand.audits.options import STRENGTHS
from evenhand.audits.tradeoff import sweep_conditions, tradeoff_curve
from evenhand.core import registry
from evenhand.core.digests import Json, digest, file_digest
from evenhand.core.files import safe_file_name
from evenhand.core.protocols import Model, Progress
from evenhand.mitigations.calibration import CalibrationConfig
from evenhand.papers.political.bias_tables import JUDGE, describe_findings, table_2, table_3, table_5
from evenhand.papers.political.conditions import ModelConditions, find_conditions, find_training_data
from evenhand.papers.political.judge_table import Judges, mixture_files, mixtures_table
from evenhand.papers.political.judged_texts import ConditionMeasures, ConditionTables, read_judged_texts
from evenhand.papers.political.option_tables import (
    OPTION_VALUES,
    list_conditions,
    list_option_values,
    option_table,
)
from evenhand.papers.political.published_values import CITATION
from evenhand.papers.political.reader_ratings import read_reader_answers, table_6
from evenhand.papers.political.regard_transfer import find_head, regard_changes, regard_study, regard_table
from evenhand.papers.political.umap_figure import figure_2
from evenhand.papers.replicate import RUNS, ReplicationRequest
from evenhand.papers.replication_pages import Exhibit, Replication
from evenhand.run_options import AuditOptions
from evenhand.store.cache import cached_table, run_key
from evenhand.store.run import Run

MEASURED_FOLDER = "measured"
"""Folder of a source's n-gram models, prices, changes and speeds: a second start finds them."""
EXHIBITS = (
    "table_2",
    "table_3",
    "table_5",
    "table_6",
    "figure_2",
    "gamma",
    "sigma",
    "mixtures",
    "regard",
    "judges",
)
_MODELLESS = ("table_6", "judges")
"""Exhibits that need no language model."""
DEFAULT_MODELS = ("builtin",)
PROMPTS, SAMPLES, TOKENS = 240, 1, 30
"""The subset: so many prompts of each suite, spread over all options, with fewer and shorter texts than the
paper's 10 of 100 tokens; about a quarter of an hour a model on a CPU core."""
_REMARKS = (
    "A distance is never zero in a finite sample. Every one stands beside what chance gives where keywords "
    "are dealt to options at random; bias is found where what is beyond it has an interval above 0 and p "
    "corrected for the options is below 0.05. Two or three keywords are too few for an interval: p decides.",
    "The judge that measures is never the classifier that steers, and must have learned from other articles: "
    "python -m evenhand.training.articles unread writes those the embedded judge has not learned from.",
    "The paper's news data are not public, and its scale of distances is not known: nothing here can be "
    "expected to agree with its numbers to the digit.",
)


@dataclass(frozen=True, slots=True)
class PoliticalSource:
    """A model and the modes it can write in."""

    name: str
    spec: str
    model: Model
    modes: ModelConditions

    @property
    def folder(self) -> str:
        """The folder of its runs."""
        return safe_file_name(self.name, "source")


@dataclass(frozen=True, slots=True)
class ModelResults:
    """What came out for one model."""

    source: PoliticalSource
    runs: Mapping[str, Run]
    swept_runs: Mapping[str, Run]
    varied_runs: Mapping[str, Run]
    """Modes at other values of an option."""
    tables: ConditionTables
    """What they change, and what the judge says of prompts and texts together."""
    price: pl.DataFrame
    paces: pl.DataFrame


@dataclass(frozen=True, slots=True)
class PoliticalReplication:
    """A replication with its models loaded and its mitigations tried."""

    sources: tuple[PoliticalSource, ...]
    request: ReplicationRequest
    answers: pl.DataFrame | None
    judges: Judges | None

    @property
    def identity(self) -> Mapping[str, Json]:
        """What the numbers depend on."""
        return {
            "sources": {
                source.name: {
                    "model": source.model.ref.identity(),
                    "modes": [condition.name for condition in source.modes.conditions],
                }
                for source in self.sources
            },
            "exhibits": list(self.request.exhibits),
            "human": self._human(),
            "articles": self.judges.identity() if self.judges else None,
            "full": self.request.full,
            "seed": self.request.seed,
        }

    def _human(self) -> str | None:
        if self.request.human is None or self.answers is None:
            return None
        # A study has no file of its own: what was answered so far is what counts.
        given = self.request.human
        return digest(self.answers.write_csv()) if given.is_dir() else file_digest(given)

    def plan(self) -> Sequence[str]:
        """Sources, modes, texts and exhibits."""
        lines = [] if self.sources else ["models  none: no table that needs one was asked for"]
        for source in self.sources:
            study = self._study(source)
            texts = study.audit(study.conditions[0], Path(RUNS)).plan().lines[0]
            names = ", ".join(condition.name for condition in study.conditions)
            lines.append(f"{source.name}: {texts}; each under {names}")
            lines += [f"without {mode}: {why}" for mode, why in source.modes.missing.items()]
        if "judges" in self._exhibits() and self.judges:
            lines.append(f"judges  {', '.join(self.judges.names())}, each trained on {self.judges.folder}")
        if self.sources and not self.request.full:
            lines.append(f"subset  {_subset()}; --full: all prompts, 10 texts of 100, hours on a CPU")
        left_out = [name for name, is_lacking in self._list_unavailable().items() if is_lacking]
        asked = [name for name in self.request.exhibits if name in left_out]
        if asked:
            lines.append(f"without {', '.join(asked)}: no model here has the mode, head or texts they need")
        return (*lines, f"writes  {', '.join(self._exhibits()) or 'nothing'}")

    def run(self, folder: Path, progress: Progress) -> Replication:
        """The exhibits asked for."""
        measured = [self._measure(source, folder, progress) for source in self.sources]
        drawn = dict([*self._build_exhibits(measured), *self._regard(folder, progress)])
        if "judges" in self._exhibits() and self.judges:
            drawn["judges"] = self.judges.table(folder / RUNS / "judges", progress)
        warnings = [
            f"{source.name}, without {mode}: {why}"
            for source in self.sources
            for mode, why in source.modes.missing.items()
        ]
        return Replication(
            paper="political",
            title=f"Political bias of {', '.join(source.name for source in self.sources) or 'no model'}",
            citation=CITATION,
            exhibits=tuple(drawn[name] for name in self._exhibits() if name in drawn),
            findings=self._findings(drawn),
            remarks=(*_REMARKS, *self._subset()),
            sources=tuple(source.name for source in self.sources),
            warnings=tuple(warnings),
        )

    def _build_exhibits(self, measured: Sequence[ModelResults]) -> list[tuple[str, Exhibit]]:
        wanted, drawn = self._exhibits(), list[tuple[str, Exhibit]]()
        execution, seed = self.request.execution(), self.request.seed
        if "table_6" in wanted and self.answers is not None:
            drawn.append(("table_6", table_6(self.answers)))
        if not measured:
            return drawn
        found = pl.concat([_add_source(_both_readings(one), one) for one in measured])
        changed = pl.concat([_add_source(one.tables.changes, one) for one in measured])
        judge = self._judge()
        if "table_2" in wanted:
            drawn.append(("table_2", table_2(found, changed, judge)))
        if "table_3" in wanted:
            curves = [_add_source(_curve(one), one) for one in measured if one.swept_runs]
            modes = {one.source.name: one.source.modes.swept_mode or "none" for one in measured}
            drawn += [("table_3", table_3(pl.concat(curves), changed, modes, judge))] if curves else []
        if "table_5" in wanted:
            price = pl.concat([_add_source(one.price, one) for one in measured])
            paces = pl.concat([_add_source(one.paces, one) for one in measured])
            kept = price.filter(pl.col("condition").is_in([*found["condition"].unique(), TRAINING]))
            drawn.append(("table_5", table_5(found, changed, kept, paces, judge)))
        first = measured[0]
        for dial in self._options_to_vary(first.source):
            known, price = (
                join_distances({**first.runs, **first.varied_runs}),
                _add_source(first.price, first),
            )
            modes_of = {first.source.name: first.source.modes}
            drawn.append(
                (dial, option_table(dial, modes_of, _add_source(known, first), changed, price, judge))
            )
        if "figure_2" in wanted:
            judged = {name: read_judged_texts(run) for name, run in first.runs.items()}
            drawn.append(("figure_2", figure_2(judged, first.source.name, execution, seed)))
        files = mixture_files({source.name: source.spec for source in self.sources})
        if "mixtures" in wanted and files:
            drawn.append(("mixtures", mixtures_table(files, execution)))
        return drawn

    def _measure(self, source: PoliticalSource, folder: Path, progress: Progress) -> ModelResults:
        study = self._study(source)
        inside = folder / RUNS / source.folder
        runs = study.runs(inside, progress)
        main = {name: runs[name] for name in source.modes.names}
        other = {condition.name for condition in list_conditions(self._options_to_vary(source), source.modes)}
        varied = {name: run for name, run in runs.items() if name in other}
        extra = {name: run for name, run in runs.items() if name not in main.keys() | other}
        own, mode = inside / MEASURED_FOLDER, source.modes.swept_mode
        swept = {VANILLA: runs[VANILLA], **extra, mode: runs[mode]} if extra and mode else {}
        measuring = ConditionMeasures(self.request.jobs, self.request.seed, self.request.execution())
        found = measuring.measure_all(
            runs, list(main) if "table_2" in self._exhibits() else (), own, progress
        )
        price = study.compute_costs(runs, own, source.spec, progress)
        return ModelResults(source, main, swept, varied, found, price, self._paces(study, main, own))

    def _paces(self, study: MitigationSweep, runs: Mapping[str, Run], folder: Path) -> pl.DataFrame:
        """Tokens a second of every mode, timed while nothing else runs."""
        schema = {"condition": pl.String, "tokens_per_second": pl.Float64}

        def timed(condition: SweepCondition) -> pl.DataFrame:
            row = {"condition": condition.name, "tokens_per_second": study.measure_throughput(condition)}
            return pl.DataFrame([row], schema=schema)

        wanted = [one for one in study.conditions if one.name in runs and "table_5" in self._exhibits()]
        found = [
            cached_table(folder / "pace", one.folder, run_key(runs[one.name]), partial(timed, one))
            for one in wanted
        ]
        return pl.concat([pl.DataFrame(schema=schema), *found])

    def _findings(self, drawn: Mapping[str, Exhibit]) -> tuple[str, ...]:
        names = tuple(source.name for source in self.sources)
        return describe_findings(drawn["table_5"].frame, names) if "table_5" in drawn else ()

    def _regard(self, folder: Path, progress: Progress) -> list[tuple[str, Exhibit]]:
        """The table of regard of the models that have a head for it."""
        heads = [(source, find_head(self.request.data, source.name)) for source in self.sources]
        rows = [
            regard_changes(
                regard_study(source.model, source.spec, head, self._options(), self.request.jobs),
                source.name,
                folder / RUNS / source.folder / "regard",
                progress,
            )
            for source, head in heads
            if head is not None and "regard" in self._exhibits()
        ]
        return [("regard", regard_table(pl.concat(rows)))] if rows else []

    def _study(self, source: PoliticalSource) -> MitigationSweep:
        asked = [*source.modes.conditions, *list_conditions(self._options_to_vary(source), source.modes)]
        mode = source.modes.swept_mode
        if mode and "table_3" in self._exhibits():
            asked += sweep_conditions(mode, STRENGTHS, source.modes.options(mode))[1:]
        return MitigationSweep(
            source.model, tuple(asked), self._options(), spec=source.spec, jobs=self.request.jobs
        )

    def _options(self) -> AuditOptions:
        full = self.request.full
        options: AuditOptions = {
            "suite": SUITES,
            "metrics": METRICS,
            "preset": "political",
            "limit": None if full else PROMPTS,
            "samples": None if full else SAMPLES,
            "max_new_tokens": None if full else TOKENS,
            "seed": self.request.seed,
            "device": self.request.device,
            "batch": self.request.batch,
            "offline": self.request.offline,
            "command": "evenhand replicate political",
        }
        return options

    def _exhibits(self) -> tuple[str, ...]:
        lacking = {"table_6": self.answers is None, "judges": self.judges is None, **self._list_unavailable()}
        return tuple(name for name in self.request.exhibits if not lacking.get(name, False))

    def _list_unavailable(self) -> dict[str, bool]:
        """Exhibits for which no model has what they need: a mode, a head, or texts of mixtures."""
        if not self.sources:
            return {}
        specs = {source.name: source.spec for source in self.sources}
        return {
            "table_3": not any(source.modes.swept_mode for source in self.sources),
            **{dial: not list_option_values(dial, self.sources[0].modes) for dial in OPTION_VALUES},
            "mixtures": not mixture_files(specs),
            "regard": not any(find_head(self.request.data, name) for name in specs),
        }

    def _options_to_vary(self, source: PoliticalSource) -> list[str]:
        """The options that are varied: on the first model, as Figure 2 is of it."""
        is_first = source is self.sources[0]
        return [name for name in self._exhibits() if name in OPTION_VALUES and is_first]

    def _judge(self) -> str:
        """What measures, and what the heads that steer have learned from."""
        heads = {source.name: find_training_data(source.modes) for source in self.sources}
        said = [f"that of {name} has learned from {data}" for name, data in heads.items() if data]
        return JUDGE + (f" The heads that steer: {'; '.join(said)}." if said else "")

    def _subset(self) -> Sequence[str]:
        if self.request.full or not self.sources:
            return ()
        return (f"A subset: {_subset()}. --full takes all prompts, and the paper's 10 texts of 100 tokens.",)


def prepare(request: ReplicationRequest) -> PoliticalReplication:
    """The replication with every model loaded and every mitigation tried on it."""
    execution = request.execution()
    sources = []
    is_needed = any(name not in _MODELLESS for name in request.exhibits)
    for given in (request.models or DEFAULT_MODELS) if is_needed else ():
        name, _, spec = given.rpartition("=")
        model = registry.create_model(spec, {}, execution)
        sources.append(
            PoliticalSource(
                name or spec, spec, model, find_conditions(model, request.data, name=name or spec)
            )
        )
    answers = read_reader_answers(request.human) if request.human else None
    judges = Judges.find(request) if "judges" in request.exhibits else None
    return PoliticalReplication(tuple(sources), request, answers, judges)


def _subset() -> str:
    return f"{PROMPTS} prompts of each suite, {SAMPLES} text(s) of {TOKENS} tokens a prompt"


def _both_readings(one: ModelResults) -> pl.DataFrame:
    """The distances of what the model wrote, and of prompt and text together."""
    own = join_distances(one.runs).with_columns(pl.lit("continuation").alias("reads"))
    return pl.concat([own, one.tables.full])


def _curve(one: ModelResults) -> pl.DataFrame:
    known = {VANILLA: 0.0, one.source.modes.swept_mode or "": CalibrationConfig().strength}
    strengths = {
        name: known[name] if name in known else float(name.rpartition(" ")[2]) for name in one.swept_runs
    }
    return tradeoff_curve(join_distances(one.swept_runs), one.price, strengths)


def _add_source(table: pl.DataFrame, one: ModelResults) -> pl.DataFrame:
    return table.select(pl.lit(one.source.name).alias("source"), pl.all())
