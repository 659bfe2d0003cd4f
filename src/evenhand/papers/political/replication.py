"""Runs the replication: every model under every mode, then the tables and Figure 2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl

from evenhand.audits.options import STRENGTHS
from evenhand.audits.tradeoff import (
    METRICS,
    SUITES,
    TRAINING,
    VANILLA,
    MitigationSweep,
    SweepCondition,
    join_distances,
    sweep_conditions,
    tradeoff_curve,
)
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
    find_head,
    find_training_data,
    list_conditions,
    list_option_values,
)
from evenhand.papers.political.judge_table import Judges, mixture_files, mixtures_table
from evenhand.papers.political.judged_texts import measure_conditions, read_judged_texts
from evenhand.papers.political.reader_ratings import read_reader_answers, table_6
from evenhand.papers.political.regard_transfer import (
    HEADS_FOLDER,
    regard_changes,
    regard_study,
    regard_table,
)
from evenhand.papers.political.umap_figure import figure_2
from evenhand.papers.replicate import RUNS, ReplicationRequest
from evenhand.papers.replication_pages import Exhibit, Replication
from evenhand.papers.sources import PaperSource, refuse_twins
from evenhand.run_options import AuditOptions
from evenhand.store.cache import cached_table, run_key
from evenhand.store.run import Run

CITATION = (
    "Liu et al. Mitigating Political Bias in Language Models Through Reinforced Calibration. AAAI 2021. "
    "arXiv:2104.14795"
)
MEASURED_FOLDER = "measured"
"""Folder with a source's n-gram models, costs, changes and speeds, reused when a run is resumed."""
EXHIBITS = (
    *("table_2", "table_3", "table_5", "table_6", "figure_2"),
    *("gamma", "sigma", "mixtures", "regard", "judges"),
)
_MODELLESS = ("table_6", "judges")
"""Exhibits that need no language model."""
DEFAULT_MODELS = ("builtin",)
PROMPTS, SAMPLES, TOKENS = 240, 1, 30
"""The subset: this many prompts of each suite, spread over all options, with fewer and shorter texts than the
paper's 10 of 100 tokens; about a quarter of an hour per model on a CPU core."""
_REMARKS = (
    "A distance is never zero in a finite sample. Each is compared with its mean when keywords are assigned "
    "to options at random; bias is found if the excess has an interval above 0 and p corrected for the "
    "options is below 0.05. With two or three keywords there is no interval: p alone decides.",
    "The judge is never the steering classifier, and the two must be trained on different articles: "
    "python -m evenhand.training.articles unread writes those the embedded judge was not trained on.",
    "The paper's news data are not public, and its scale of distances is unknown: no number here can be "
    "expected to match the paper's to the digit.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoliticalSource(PaperSource):
    """A model and the modes available for it."""

    spec: str
    modes: ModelConditions


class SweepTables(NamedTuple):
    """Measurements of all models and conditions; every table has the columns source and condition."""

    distances: pl.DataFrame
    changes: pl.DataFrame
    full: pl.DataFrame
    """Distances of prompt and text together, for the modes only."""
    costs: pl.DataFrame
    speeds: pl.DataFrame


@dataclass(frozen=True, slots=True)
class PoliticalReplication:
    """A replication with its models loaded and its mitigations checked."""

    sources: tuple[PoliticalSource, ...]
    request: ReplicationRequest
    answers: pl.DataFrame | None
    judges: Judges | None

    @property
    def identity(self) -> Mapping[str, Json]:
        """Everything the numbers depend on."""
        return {
            "sources": {
                source.name: {"model": source.model.ref.identity(), "modes": list(source.modes.conditions)}
                for source in self.sources
            },
            "exhibits": list(self.request.exhibits),
            # A study is a folder: its identity is the answers collected so far.
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
        lines = [] if self.sources else ["models  none: no requested table needs one"]
        for source in self.sources:
            study = self._study(source)
            texts = study.audit(study.conditions[0], Path(RUNS)).plan().lines[0]
            names = ", ".join(condition.name for condition in study.conditions)
            lines.append(f"{source.name}: {texts}; each under {names}")
            lines += [f"without {mode}: {reason}" for mode, reason in source.modes.missing.items()]
        if "judges" in self._exhibits() and self.judges:
            lines.append(f"judges  {', '.join(self.judges.names())}, each trained on {self.judges.folder}")
        if self.sources and not self.request.full:
            lines.append(f"subset  {_subset()}; --full: all prompts, 10 texts of 100, hours on a CPU")
        unavailable = self._list_unavailable()
        if missing := [name for name in self.request.exhibits if unavailable.get(name)]:
            lines.append(f"without {', '.join(missing)}: no model here has the required mode, head or texts")
        return (*lines, f"writes  {', '.join(self._exhibits()) or 'nothing'}")

    def run(self, folder: Path, progress: Progress) -> Replication:
        """Build the requested exhibits."""
        exhibits = {exhibit.id: exhibit for exhibit in self._build_exhibits(folder, progress)}
        names = tuple(source.name for source in self.sources)
        return Replication(
            title=f"Political bias of {', '.join(names) or 'no model'}",
            citation=CITATION,
            exhibits=tuple(exhibits[name] for name in self._exhibits() if name in exhibits),
            findings=describe_findings(exhibits["table_5"].frame, names) if "table_5" in exhibits else (),
            remarks=(*_REMARKS, *self._subset()),
            sources=names,
            warnings=tuple(
                f"{source.name}, without {mode}: {reason}"
                for source in self.sources
                for mode, reason in source.modes.missing.items()
            ),
        )

    def _build_exhibits(self, folder: Path, progress: Progress) -> Iterator[Exhibit]:
        requested = self._exhibits()
        if "table_6" in requested and self.answers is not None:
            yield table_6(self.answers)
        if self.sources:
            runs = [
                self._study(source).runs(folder / RUNS / source.folder, progress) for source in self.sources
            ]
            tables = [
                self._measure(source, own, folder / RUNS / source.folder / MEASURED_FOLDER, progress)
                for source, own in zip(self.sources, runs, strict=True)
            ]
            yield from self._build_model_exhibits(SweepTables(*map(pl.concat, zip(*tables, strict=True))))
            if "figure_2" in requested:
                first = self.sources[0]
                texts = {name: read_judged_texts(runs[0][name]) for name in first.modes.conditions}
                yield figure_2(texts, first.name, self.request.execution(), self.request.seed)
        if "mixtures" in requested:
            yield mixtures_table(mixture_files(self._specs()), self.request.execution())
        if "regard" in requested:
            yield self._regard(folder, progress)
        if "judges" in requested and self.judges:
            yield self.judges.table(folder / RUNS / "judges", progress)

    def _build_model_exhibits(self, tables: SweepTables) -> Iterator[Exhibit]:
        requested, judge, changes = self._exhibits(), self._judge(), tables.changes
        modes = {name for source in self.sources for name in source.modes.conditions}
        continuations = tables.distances.with_columns(reads=pl.lit("continuation"))
        distances = pl.concat([continuations.filter(pl.col("condition").is_in(modes)), tables.full])
        if "table_2" in requested:
            yield table_2(distances, changes, judge)
        if "table_3" in requested:
            curves = [_curve(source, tables) for source in self.sources if source.modes.swept_mode]
            swept = {source.name: source.modes.swept_mode or "none" for source in self.sources}
            yield table_3(pl.concat(curves), changes, swept, judge)
        if "table_5" in requested:
            costs = tables.costs.filter(pl.col("condition").is_in([*modes, TRAINING]))
            yield table_5(distances, changes, costs, tables.speeds, judge)
        first = self.sources[0]
        for option in self._options_to_vary():
            yield option_table(option, {first.name: first.modes}, continuations, changes, tables.costs, judge)

    def _measure(
        self, source: PoliticalSource, runs: Mapping[str, Run], folder: Path, progress: Progress
    ) -> SweepTables:
        study, modes = self._study(source), source.modes.conditions
        whole = modes if "table_2" in self._exhibits() else ()
        tables = measure_conditions(runs, whole=whole, folder=folder, request=self.request, progress=progress)
        costs = study.compute_costs(runs, folder, progress)
        schema = {"condition": pl.String(), "tokens_per_second": pl.Float64()}
        speeds = [pl.DataFrame(schema=schema)]
        for condition in modes.values() if "table_5" in self._exhibits() else ():
            # Nothing else runs during the timing.
            def measure(condition: SweepCondition = condition) -> pl.DataFrame:
                row = (condition.name, study.measure_throughput(condition))
                return pl.DataFrame([row], schema=schema, orient="row")

            key = run_key(runs[condition.name])
            speeds.append(cached_table(folder / "pace", condition.folder, key, measure))
        measured = (join_distances(runs), *tables, costs, pl.concat(speeds))
        return SweepTables(
            *(table.insert_column(0, pl.lit(source.name).alias("source")) for table in measured)
        )

    def _regard(self, folder: Path, progress: Progress) -> Exhibit:
        """The regard table of all models that have a regard head."""
        tables = []
        for source in self.sources:
            if head := find_head(self.request.data, HEADS_FOLDER, source.name):
                study = regard_study(source.model, source.spec, head, self._options(), self.request.jobs)
                own_folder = folder / RUNS / source.folder / "regard"
                tables.append(regard_changes(study, source.name, own_folder, progress))
        return regard_table(pl.concat(tables))

    def _study(self, source: PoliticalSource) -> MitigationSweep:
        options = self._options_to_vary() if source is self.sources[0] else ()
        varied = list_conditions(options, source.modes)
        swept = _sweep(source) if "table_3" in self._exhibits() else []
        return MitigationSweep(
            source.model,
            (*source.modes.conditions.values(), *varied, *swept),
            self._options(),
            spec=source.spec,
            jobs=self.request.jobs,
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
        missing = {"table_6": self.answers is None, "judges": self.judges is None, **self._list_unavailable()}
        return tuple(name for name in self.request.exhibits if not missing.get(name, False))

    def _list_unavailable(self) -> dict[str, bool]:
        """Whether an exhibit is unavailable because no model has the required mode, head or mixture texts."""
        if not self.sources:
            return {}
        return {
            "table_3": not any(source.modes.swept_mode for source in self.sources),
            **{name: not list_option_values(name, self.sources[0].modes) for name in OPTION_VALUES},
            "mixtures": not mixture_files(self._specs()),
            "regard": not any(find_head(self.request.data, HEADS_FOLDER, name) for name in self._specs()),
        }

    def _specs(self) -> dict[str, str]:
        return {source.name: source.spec for source in self.sources}

    def _options_to_vary(self) -> list[str]:
        """The options to vary, on the first model only, like Figure 2."""
        return [name for name in self._exhibits() if name in OPTION_VALUES]

    def _judge(self) -> str:
        """A note on the judge and the training data of the steering heads."""
        heads = {source.name: find_training_data(source.modes) for source in self.sources}
        trained = [f"that of {name} on {data}" for name, data in heads.items() if data]
        return JUDGE + (f" Training data of the steering heads: {'; '.join(trained)}." if trained else "")

    def _subset(self) -> Sequence[str]:
        if self.request.full or not self.sources:
            return ()
        return (f"A subset: {_subset()}. --full uses all prompts, with the paper's 10 texts of 100 tokens.",)


def prepare(request: ReplicationRequest) -> PoliticalReplication:
    """Load every model, check every mitigation on it and return the replication."""
    execution = request.execution()
    is_needed = any(name not in _MODELLESS for name in request.exhibits)
    specs = request.named_specs(*DEFAULT_MODELS) if is_needed else []
    refuse_twins([name for name, _ in specs])
    sources = []
    for name, spec in specs:
        model = registry.create_model(spec, {}, execution)
        modes = find_conditions(model, request.data, name)
        sources.append(PoliticalSource(name, model, spec=spec, modes=modes))
    answers = read_reader_answers(request.human) if request.human else None
    judges = Judges.find(request) if "judges" in request.exhibits else None
    return PoliticalReplication(tuple(sources), request, answers, judges)


def _sweep(source: PoliticalSource) -> Sequence[SweepCondition]:
    """The conditions of a source's swept mode at all strengths."""
    mode = source.modes.swept_mode
    return sweep_conditions(mode, STRENGTHS, source.modes.conditions[mode].options)[1:] if mode else ()


def _curve(source: PoliticalSource, tables: SweepTables) -> pl.DataFrame:
    """Overall bias and perplexity by strength of a source's swept mode."""
    swept = {condition.name: at for at, condition in zip(STRENGTHS, _sweep(source), strict=True)}
    strengths = {VANILLA: 0.0, **swept, source.modes.swept_mode or "": CalibrationConfig().strength}
    is_shown = (pl.col("source") == source.name) & pl.col("condition").is_in(list(strengths))
    curve = tradeoff_curve(tables.distances.filter(is_shown), tables.costs.filter(is_shown), strengths)
    return curve.select(pl.lit(source.name).alias("source"), pl.all())


def _subset() -> str:
    return f"{PROMPTS} prompts of each suite, {SAMPLES} text(s) of {TOKENS} tokens per prompt"
