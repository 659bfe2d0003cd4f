"""Runs the replication: every model under every mode, then the tables and Figure 2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from evenhand.audits.tradeoff import METRICS, SUITES, TRAINING, VANILLA, MitigationSweep, tradeoff_curve
from evenhand.core.digests import Json, digest, file_digest
from evenhand.core.protocols import Progress
from evenhand.mitigations.calibration import CalibrationConfig
from evenhand.papers.political import conditions, judge, tables
from evenhand.papers.political.conditions import OPTION_VALUES, PoliticalSource, SweepTables
from evenhand.papers.political.judge import figure_2
from evenhand.papers.replicate import RUNS, ReplicationRequest, refuse_twins
from evenhand.papers.replication_pages import Exhibit, Replication
from evenhand.run_options import AuditOptions

CITATION = (
    "Liu et al. Mitigating Political Bias in Language Models Through Reinforced Calibration. AAAI 2021. "
    "arXiv:2104.14795"
)
EXHIBITS = (
    *("table_2", "table_3", "table_5", "table_6", "figure_2"),
    *("gamma", "sigma", "mixtures", "regard", "judges"),
)
_MODELLESS = {"table_6", "judges"}
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


class PoliticalReplication:
    """A replication with its models loaded and its mitigations checked."""

    def __init__(self, request: ReplicationRequest) -> None:
        """Load every model, check every mitigation on it, and read the human answers."""
        self.request = request
        specs = request.named_specs(*DEFAULT_MODELS) if set(request.exhibits) - _MODELLESS else []
        refuse_twins([name for name, _ in specs])
        self.sources = [conditions.load_source(name, spec, request) for name, spec in specs]
        self.answers = tables.read_reader_answers(request.human) if request.human else None
        self.articles = judge.find_articles(request.data) if "judges" in request.exhibits else None
        self.mixtures = judge.mixture_files(dict(specs))
        first = self.sources[0].conditions if self.sources else {}
        available: dict[str, object] = {
            "table_3": any(source.swept_mode for source in self.sources),
            **{name: conditions.list_option_values(name, first) for name in OPTION_VALUES},
            "mixtures": self.mixtures,
            "regard": any(source.regard_head for source in self.sources),
        }
        self.lacking = [name for name in request.exhibits if self.sources and not available.get(name, True)]
        """Exhibits for which no model has the required mode, head or mixture texts."""
        available |= {"table_6": self.answers is not None, "judges": self.articles}
        self.exhibits = tuple(name for name in request.exhibits if available.get(name, True))
        self.varied = [name for name in self.exhibits if name in OPTION_VALUES]
        """The options to vary, on the first model only, like Figure 2."""
        self.sweeps = [self._sweep(source) for source in self.sources]

    @property
    def identity(self) -> Mapping[str, Json]:
        """Everything the numbers depend on."""
        human, articles = self.request.human, self.articles
        if human is not None and self.answers is not None:
            # A study is a folder: its identity is the answers collected so far.
            answers = digest(self.answers.write_csv()) if human.is_dir() else file_digest(human)
        return {
            "sources": {
                source.name: {"model": source.model.ref.identity(), "modes": list(source.conditions)}
                for source in self.sources
            },
            "exhibits": list(self.request.exhibits),
            "human": answers if human else None,
            "articles": {part: file_digest(path) for part, path in articles.items()} if articles else None,
            "full": self.request.full,
            "seed": self.request.seed,
        }

    def plan(self) -> Sequence[str]:
        """Sources, modes, texts and exhibits."""
        lines = [] if self.sources else ["models  none: no requested table needs one"]
        for source, sweep in zip(self.sources, self.sweeps, strict=True):
            texts = sweep.audit(sweep.conditions[0], Path(RUNS)).plan().lines[0]
            names = ", ".join(condition.name for condition in sweep.conditions)
            lines.append(f"{source.name}: {texts}; each under {names}")
            lines += [f"without {mode}: {reason}" for mode, reason in source.missing.items()]
        if "judges" in self.exhibits and self.articles:
            folder = self.articles["train"].parent
            names = ", ".join(judge.list_judges(self.request))
            lines.append(f"judges  {names}, each trained on {folder}")
        if self.sources and not self.request.full:
            lines.append(f"subset  {_subset()}; --full: all prompts, 10 texts of 100, hours on a CPU")
        if self.lacking:
            names = ", ".join(self.lacking)
            lines.append(f"without {names}: no model here has the required mode, head or texts")
        return lines

    def run(self, folder: Path, progress: Progress) -> Replication:
        """Build the requested exhibits."""
        exhibits = {exhibit.id: exhibit for exhibit in self._build_exhibits(folder / RUNS, progress)}
        names = tuple(source.name for source in self.sources)
        missing = ((source.name, *item) for source in self.sources for item in source.missing.items())
        remarks = list(_REMARKS)
        if self.sources and not self.request.full:
            end = "--full uses all prompts, with the paper's 10 texts of 100 tokens."
            remarks.append(f"A subset: {_subset()}. {end}")
        return Replication(
            title=f"Political bias of {', '.join(names) or 'no model'}",
            citation=CITATION,
            exhibits=tuple(exhibits[name] for name in self.exhibits),
            findings=tables.describe_findings(exhibits.get("table_5"), names),
            remarks=tuple(remarks),
            sources=names,
            warnings=tuple(f"{name}, without {mode}: {reason}" for name, mode, reason in missing),
        )

    def _build_exhibits(self, folder: Path, progress: Progress) -> Iterator[Exhibit]:
        if "table_6" in self.exhibits and self.answers is not None:
            yield tables.table_6(self.answers)
        if self.sources:
            folders = [folder / source.folder for source in self.sources]
            runs = [sweep.runs(own, progress) for sweep, own in zip(self.sweeps, folders, strict=True)]
            measured = [
                conditions.measure_sweep(*parts, self.request, progress)
                for parts in zip(self.sources, self.sweeps, runs, folders, strict=True)
            ]
            all_measured = SweepTables(*map(pl.concat, zip(*measured, strict=True)))
            for exhibit in self._build_model_exhibits(all_measured):
                yield replace(exhibit, notes=(*exhibit.notes, tables.CHANGE, self._judge()))
            if "figure_2" in self.exhibits:
                first = self.sources[0]
                texts = {name: conditions.read_judged_texts(runs[0][name]) for name in first.conditions}
                yield figure_2(texts, first.name, self.request.execution(), self.request.seed)
        if "mixtures" in self.exhibits:
            yield judge.mixtures_table(self.mixtures, self.request.execution())
        if "regard" in self.exhibits:
            shared = (self._options(), self.request.jobs, folder, progress)
            yield conditions.regard_table(
                conditions.regard_changes(source, source.regard_head, *shared)
                for source in self.sources
                if source.regard_head
            )
        if "judges" in self.exhibits and self.articles:
            yield judge.judges_table(self.articles, self.request, folder / "judges", progress)

    def _build_model_exhibits(self, measured: SweepTables) -> Iterator[Exhibit]:
        modes = {name for source in self.sources for name in source.conditions}
        continuations = measured.distances.with_columns(reads=pl.lit("continuation"))
        biases = tables.join_changes(pl.concat([continuations, measured.full]), measured.changes)
        if "table_2" in self.exhibits:
            yield tables.table_2(biases.filter(pl.col("condition").is_in(modes)))
        if "table_3" in self.exhibits:
            curves = [_curve(source, measured) for source in self.sources if source.swept_mode]
            swept = {source.name: source.swept_mode or "none" for source in self.sources}
            yield tables.table_3(pl.concat(curves), biases, swept)
        if "table_5" in self.exhibits:
            costs = measured.costs.filter(pl.col("condition").is_in([*modes, TRAINING]))
            yield tables.table_5(biases, costs, measured.speeds)
        first = self.sources[0]
        for option in self.varied:
            values = conditions.list_option_values(option, first.conditions)
            yield tables.option_table(option, first.name, values, biases, measured.costs)

    def _sweep(self, source: PoliticalSource) -> MitigationSweep:
        """The audits of a source under its modes, the values of options to vary, and all strengths."""
        options = self.varied if source is self.sources[0] else ()
        varied = conditions.list_conditions(options, source.conditions)
        swept = source.list_strengths().values() if "table_3" in self.exhibits else ()
        written = (*source.conditions.values(), *varied, *swept)
        return MitigationSweep(
            source.model, written, self._options(), spec=source.spec, jobs=self.request.jobs
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

    def _judge(self) -> str:
        """A note on the judge and the training data of the steering heads."""
        heads = {source.name: source.training_data for source in self.sources}
        trained = [f"that of {name} on {data}" for name, data in heads.items() if data]
        suffix = f" Training data of the steering heads: {'; '.join(trained)}." if trained else ""
        return tables.JUDGE + suffix


def _curve(source: PoliticalSource, measured: SweepTables) -> pl.DataFrame:
    """Overall bias and perplexity by strength of a source's swept mode."""
    swept = {condition.name: at for at, condition in source.list_strengths().items()}
    strengths = {VANILLA: 0.0, **swept, source.swept_mode or "": CalibrationConfig().strength}
    is_shown = (pl.col("source") == source.name) & pl.col("condition").is_in(list(strengths))
    curve = tradeoff_curve(measured.distances.filter(is_shown), measured.costs.filter(is_shown), strengths)
    return curve.select(pl.lit(source.name).alias("source"), pl.all())


def _subset() -> str:
    return f"{PROMPTS} prompts of each suite, {SAMPLES} text(s) of {TOKENS} tokens per prompt"
