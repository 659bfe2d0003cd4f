"""Runs the paper: every model under every mode, then its tables and Figure 2."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from evenhand.audits.mitigation_sweep import (
    METRICS,
    SUITES,
    TRAINING,
    VANILLA,
    MitigationSweep,
    SweepCondition,
    join_distances,
)
from evenhand.audits.options import STRENGTHS
from evenhand.audits.tradeoff import sweep_conditions, tradeoff_curve
from evenhand.core import registry
from evenhand.core.digests import Json, digest, file_digest
from evenhand.core.protocols import Progress
from evenhand.mitigations.calibration import CalibrationConfig
from evenhand.papers.political.bias_tables import (
    JUDGE,
    describe_findings,
    option_table,
    table_2,
    table_3,
    table_5,
)
from evenhand.papers.political.conditions import (
    OPTION_VALUES,
    ModelConditions,
    find_conditions,
    find_training_data,
    list_conditions,
    list_option_values,
)
from evenhand.papers.political.judge_table import Judges, mixture_files, mixtures_table
from evenhand.papers.political.judged_texts import ConditionTables, measure_conditions, read_judged_texts
from evenhand.papers.political.reader_ratings import read_reader_answers, table_6
from evenhand.papers.political.regard_transfer import find_head, regard_changes, regard_study, regard_table
from evenhand.papers.political.umap_figure import figure_2
from evenhand.papers.replicate import RUNS, PaperSource, ReplicationRequest, refuse_twins
from evenhand.papers.replication_pages import Exhibit, Replication
from evenhand.run_options import AuditOptions
from evenhand.store.cache import cached_table, run_key
from evenhand.store.run import Run

CITATION = (
    "Liu et al. Mitigating Political Bias in Language Models Through Reinforced Calibration. AAAI 2021. "
    "arXiv:2104.14795"
)
MEASURED_FOLDER = "measured"
"""Folder of a source's n-gram models, prices, changes and speeds: a second start finds them."""
EXHIBITS = (
    *("table_2", "table_3", "table_5", "table_6", "figure_2"),
    *("gamma", "sigma", "mixtures", "regard", "judges"),
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
class PoliticalSource(PaperSource):
    """A model and the modes it can write in."""

    spec: str
    modes: ModelConditions


@dataclass(frozen=True, slots=True)
class ModelResults:
    """The runs and tables of one model."""

    source: PoliticalSource
    runs: Mapping[str, Run]
    swept_runs: Mapping[str, Run]
    """The mode whose strength is varied, at every strength."""
    varied_runs: Mapping[str, Run]
    """Modes at other values of an option."""
    tables: ConditionTables
    price: pl.DataFrame
    paces: pl.DataFrame

    def distances(self) -> pl.DataFrame:
        """The distances of what the model wrote, and of prompt and text together."""
        own = join_distances(self.runs).with_columns(pl.lit("continuation").alias("reads"))
        return pl.concat([own, self.tables.full])

    def curve(self) -> pl.DataFrame:
        """Overall bias and perplexity by the strength of the swept mode."""
        known = {VANILLA: 0.0, self.source.modes.swept_mode or "": CalibrationConfig().strength}
        strengths = {
            name: known[name] if name in known else float(name.rpartition(" ")[2]) for name in self.swept_runs
        }
        return tradeoff_curve(join_distances(self.swept_runs), self.price, strengths)

    def with_source(self, table: pl.DataFrame) -> pl.DataFrame:
        """A table of the model with its name as first column."""
        return table.select(pl.lit(self.source.name).alias("source"), pl.all())


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
            # A study has no file of its own: the answers it has so far count.
            "human": self._human(),
            "articles": self.judges.identity() if self.judges else None,
            "full": self.request.full,
            "seed": self.request.seed,
        }

    def _human(self) -> str | None:
        human, answers = self.request.human, self.answers
        if human is None or answers is None:
            return None
        return digest(answers.write_csv()) if human.is_dir() else file_digest(human)

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
        missing = [name for name in self.request.exhibits if name in left_out]
        if missing:
            lines.append(f"without {', '.join(missing)}: no model here has the mode, head or texts they need")
        return (*lines, f"writes  {', '.join(self._exhibits()) or 'nothing'}")

    def run(self, folder: Path, progress: Progress) -> Replication:
        """The exhibits asked for."""
        results = [self._measure(source, folder, progress) for source in self.sources]
        exhibits = {exhibit.id: exhibit for exhibit in self._build_exhibits(results, folder, progress)}
        names = tuple(source.name for source in self.sources)
        return Replication(
            paper="political",
            title=f"Political bias of {', '.join(names) or 'no model'}",
            citation=CITATION,
            exhibits=tuple(exhibits[name] for name in self._exhibits() if name in exhibits),
            findings=describe_findings(exhibits["table_5"].frame, names) if "table_5" in exhibits else (),
            remarks=(*_REMARKS, *self._subset()),
            sources=names,
            warnings=tuple(
                f"{source.name}, without {mode}: {why}"
                for source in self.sources
                for mode, why in source.modes.missing.items()
            ),
        )

    def _build_exhibits(
        self, results: Sequence[ModelResults], folder: Path, progress: Progress
    ) -> Iterator[Exhibit]:
        wanted, execution = self._exhibits(), self.request.execution()
        if "table_6" in wanted and self.answers is not None:
            yield table_6(self.answers)
        if results:
            yield from self._of_models(results, wanted)
        if "mixtures" in wanted:
            files = mixture_files({source.name: source.spec for source in self.sources})
            yield mixtures_table(files, execution)
        if "regard" in wanted:
            yield self._regard(folder, progress)
        if "judges" in wanted and self.judges:
            yield self.judges.table(folder / RUNS / "judges", progress)

    def _of_models(self, results: Sequence[ModelResults], wanted: Sequence[str]) -> Iterator[Exhibit]:
        def stack(table: Callable[[ModelResults], pl.DataFrame]) -> pl.DataFrame:
            return pl.concat(one.with_source(table(one)) for one in results)

        distances, changes = stack(ModelResults.distances), stack(lambda one: one.tables.changes)
        judge, first = self._judge(), results[0]
        if "table_2" in wanted:
            yield table_2(distances, changes, judge)
        if curves := [one.with_source(one.curve()) for one in results if one.swept_runs]:
            modes = {one.source.name: one.source.modes.swept_mode or "none" for one in results}
            yield table_3(pl.concat(curves), changes, modes, judge)
        if "table_5" in wanted:
            is_shown = pl.col("condition").is_in([*distances["condition"].unique(), TRAINING])
            price, paces = stack(lambda one: one.price).filter(is_shown), stack(lambda one: one.paces)
            yield table_5(distances, changes, price, paces, judge)
        for option in self._options_to_vary(first.source):
            varied = first.with_source(join_distances({**first.runs, **first.varied_runs}))
            modes_of = {first.source.name: first.source.modes}
            yield option_table(option, modes_of, varied, changes, first.with_source(first.price), judge)
        if "figure_2" in wanted:
            texts = {name: read_judged_texts(run) for name, run in first.runs.items()}
            yield figure_2(texts, first.source.name, self.request.execution(), self.request.seed)

    def _measure(self, source: PoliticalSource, folder: Path, progress: Progress) -> ModelResults:
        study, inside = self._study(source), folder / RUNS / source.folder
        runs, own, mode = study.runs(inside, progress), inside / MEASURED_FOLDER, source.modes.swept_mode
        main = {name: runs[name] for name in source.modes.names}
        other = {condition.name for condition in list_conditions(self._options_to_vary(source), source.modes)}
        varied = {name: run for name, run in runs.items() if name in other}
        extra = {name: run for name, run in runs.items() if name not in main.keys() | other}
        swept = {VANILLA: runs[VANILLA], **extra, mode: runs[mode]} if extra and mode else {}
        tables = measure_conditions(
            runs,
            whole=list(main) if "table_2" in self._exhibits() else (),
            folder=own,
            request=self.request,
            progress=progress,
        )
        price = study.compute_costs(runs, own, source.spec, progress)
        return ModelResults(source, main, swept, varied, tables, price, self._paces(study, main, own))

    def _paces(self, study: MitigationSweep, runs: Mapping[str, Run], folder: Path) -> pl.DataFrame:
        """Tokens per second of every mode, timed while nothing else runs."""
        schema = {"condition": pl.String, "tokens_per_second": pl.Float64}

        def measure(condition: SweepCondition) -> pl.DataFrame:
            return pl.DataFrame(
                [(condition.name, study.measure_throughput(condition))], schema=schema, orient="row"
            )

        tables = [
            cached_table(folder / "pace", one.folder, run_key(runs[one.name]), partial(measure, one))
            for one in study.conditions
            if one.name in runs and "table_5" in self._exhibits()
        ]
        return pl.concat([pl.DataFrame(schema=schema), *tables])

    def _regard(self, folder: Path, progress: Progress) -> Exhibit:
        """The table of regard of the models that have a head for it."""
        heads = [(source, find_head(self.request.data, source.name)) for source in self.sources]
        return regard_table(
            pl.concat(
                regard_changes(
                    regard_study(source.model, source.spec, head, self._options(), self.request.jobs),
                    source.name,
                    folder / RUNS / source.folder / "regard",
                    progress,
                )
                for source, head in heads
                if head is not None
            )
        )

    def _study(self, source: PoliticalSource) -> MitigationSweep:
        conditions = [*source.modes.conditions, *list_conditions(self._options_to_vary(source), source.modes)]
        mode = source.modes.swept_mode
        if mode and "table_3" in self._exhibits():
            conditions += sweep_conditions(mode, STRENGTHS, source.modes.options(mode))[1:]
        return MitigationSweep(
            source.model, tuple(conditions), self._options(), spec=source.spec, jobs=self.request.jobs
        )

    def _options(self) -> AuditOptions:
        full = self.request.full
        return {
            "suite": SUITES,
            "metrics": METRICS,
            "preset": "political",
            "limit": None if full else PROMPTS,
            "samples": None if full else SAMPLES,
            "max_new_tokens": None if full else TOKENS,
            **self.request.audit_options("political"),
        }

    def _exhibits(self) -> tuple[str, ...]:
        lacking = {"table_6": self.answers is None, "judges": self.judges is None, **self._list_unavailable()}
        return tuple(name for name in self.request.exhibits if not lacking.get(name, False))

    def _list_unavailable(self) -> dict[str, bool]:
        """Whether no model has what an exhibit needs: a mode, a head, or texts of mixtures."""
        if not self.sources:
            return {}
        specs = {source.name: source.spec for source in self.sources}
        return {
            "table_3": not any(source.modes.swept_mode for source in self.sources),
            **{name: not list_option_values(name, self.sources[0].modes) for name in OPTION_VALUES},
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
        learned = [f"that of {name} has learned from {data}" for name, data in heads.items() if data]
        return JUDGE + (f" The heads that steer: {'; '.join(learned)}." if learned else "")

    def _subset(self) -> Sequence[str]:
        if self.request.full or not self.sources:
            return ()
        return (f"A subset: {_subset()}. --full takes all prompts, and the paper's 10 texts of 100 tokens.",)


def prepare(request: ReplicationRequest) -> PoliticalReplication:
    """The replication with every model loaded and every mitigation tried on it."""
    execution = request.execution()
    is_needed = any(name not in _MODELLESS for name in request.exhibits)
    specs = request.named_specs(*DEFAULT_MODELS) if is_needed else []
    refuse_twins([name for name, _ in specs])
    sources = []
    for name, spec in specs:
        model = registry.create_model(spec, {}, execution)
        sources.append(PoliticalSource(name, model, spec, find_conditions(model, request.data, name=name)))
    answers = read_reader_answers(request.human) if request.human else None
    judges = Judges.find(request) if "judges" in request.exhibits else None
    return PoliticalReplication(tuple(sources), request, answers, judges)


def _subset() -> str:
    return f"{PROMPTS} prompts of each suite, {SAMPLES} text(s) of {TOKENS} tokens a prompt"
