"""Runs the replication: the same audit for every source, then tables, figures, tests and claims.

Sources are the human sentences, and models with the paper's sampling for their kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from evenhand.audits import audit
from evenhand.audits.run_setup import format_duration
from evenhand.core import registry
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.protocols import HumanSuite, Model, Progress
from evenhand.models import replay
from evenhand.papers.bold import group_tables, human_validation
from evenhand.papers.bold.claims import claims, test_table
from evenhand.papers.bold.group_tables import METRICS, OUTPUTS
from evenhand.papers.replicate import RUNS, ReplicationRequest
from evenhand.papers.replication_pages import Exhibit, Replication
from evenhand.papers.sources import PaperSource, read_texts, refuse_twins, run_warnings
from evenhand.run_options import AuditOptions

CITATION = (
    "Dhamala et al. BOLD: Dataset and Metrics for Measuring Biases in Open-Ended Language Generation. "
    "FAccT 2021. arXiv:2101.11718"
)
CONTROL_CODES = ("Wikipedia", "Opinion", "Thoughts")
DEFAULT_MODELS = ("builtin", "builtin:masked")
SUBSET = 1_720
"""Prompts per model without ``--full``: spread over the 43 groups, 40 or all of each."""
DEFAULT_SCORING_RATE = 150.0
"""Texts per second that the embedded metrics score and compare on two cores, if nothing was measured."""
_NORMS = ("norms",)
_BUILDERS: Mapping[str, tuple[Callable[[pl.DataFrame], Exhibit], tuple[str, ...]]] = {
    "table_3": (group_tables.table_3, ("gender_polarity",)),
    "table_4": (partial(group_tables.gap_table, "table_4"), _NORMS),
    "table_5": (group_tables.table_5, ("regard",)),
    "table_6": (partial(group_tables.gap_table, "table_6"), _NORMS),
    "table_7": (group_tables.table_7, ("sentiment", "toxicity", "regard", "gender_polarity")),
    "table_9": (partial(group_tables.share_table, "table_9"), _NORMS),
    "table_10": (partial(group_tables.share_table, "table_10"), _NORMS),
    "table_11": (partial(group_tables.share_table, "table_11"), _NORMS),
    "figure_2": (group_tables.figure_2, ("gender_polarity",)),
    "figure_3": (group_tables.figure_3, ("sentiment", "toxicity")),
    "figure_4": (partial(group_tables.sentiment_figure, "figure_4"), ("sentiment",)),
    "figure_5": (partial(group_tables.sentiment_figure, "figure_5"), ("sentiment",)),
    "tests": (test_table, ("sentiment", "toxicity", "regard")),
}
"""The exhibits built from texts, with the metrics each needs: no others are scored."""
_COUNT_TABLE = "table_1"
"""The exhibit built from the prompts alone."""
_CLAIMS = "claims"
_OF_PEOPLE = ("table_8", "figure_6")
EXHIBITS = (_COUNT_TABLE, *_BUILDERS, *_OF_PEOPLE, _CLAIMS)
_REMARKS = (
    "Wikipedia's sentences are the paper's human baseline, but not a neutral one: some demographics write "
    "far more of it than others, and its own texts differ between groups much as those of models do "
    "(section 7).",
    "Fascism is included to show how models write about extreme ideologies; negative texts about it should "
    "not be read as bias (section 3.1).",
    'Rows that begin with "paper" are as printed. They come from other models and other classifiers; only '
    "Table 1 and, for WIKI, the unigram counts of Table 3 can be expected to match to the digit.",
    "The paper states neither GPT-2's size nor the length of its texts and CTRL's: causal models generate "
    "30 tokens here unless --max-new-tokens is given, masked models the 15 that it states.",
)


@dataclass(frozen=True, slots=True)
class BoldReplication:
    """A replication with its suite and models loaded."""

    suite: HumanSuite
    sources: tuple[PaperSource, ...]
    """Empty if no requested exhibit needs texts."""
    request: ReplicationRequest
    labels: pl.DataFrame | None = None
    """Human labels of texts, for Table 8 and Figure 6."""

    @property
    def identity(self) -> Mapping[str, Json]:
        """Everything the numbers depend on."""
        return {
            "data": self.suite.info.digest,
            "sources": {source.name: _identity(source) for source in self.sources},
            "metrics": list(self.metrics),
            "seed": self.request.seed,
        }

    @property
    def metrics(self) -> tuple[str, ...]:
        """The paper's metrics, each as the embedded default or as the user's replacement."""
        replacements = {spec.partition("=")[0]: spec for spec in self.request.metrics}
        unknown = sorted(set(replacements) - set(METRICS))
        if unknown:
            raise InputError(
                f"--metrics names {unknown[0]!r}, which BOLD does not use", expected=", ".join(METRICS)
            )
        return tuple(replacements.get(name, name) for name in METRICS)

    @property
    def required_metrics(self) -> tuple[str, ...]:
        """The metrics that the requested exhibits need."""
        exhibits = self.request.exhibits
        needed = {name for exhibit in exhibits if exhibit in _BUILDERS for name in _BUILDERS[exhibit][1]}
        return tuple(spec for spec in self.metrics if _CLAIMS in exhibits or spec.partition("=")[0] in needed)

    def plan(self) -> Sequence[str]:
        """Sources, texts, exhibits and the estimated time."""
        lines = [f"bold    {self.suite.info.digest}, metrics {', '.join(self.required_metrics) or 'none'}"]
        audits = [self._audit(source, Path(RUNS)) for source in self.sources]
        for source, prepared in zip(self.sources, audits, strict=True):
            planned = prepared.plan().lines
            lines += [f"{source.name}: {line}" for line in planned if line.startswith(("suite", "time"))]
        lines += [self._scoring(audits)] if audits else ["texts   none needed, no model is run"]
        if self.sources and not self.request.full:
            lines.append(
                f"subset  models continue {SUBSET:,} of 23,679 prompts, spread over the groups; --full: all"
            )
        return (*lines, f"writes  {', '.join(self._list_written())}")

    def run(self, folder: Path, progress: Progress) -> Replication:
        """Build the requested exhibits."""
        runs = {source.name: self._audit(source, folder / RUNS).run(progress) for source in self.sources}
        parts = [read_texts(run, name, OUTPUTS).rename({"axis": "domain"}) for name, run in runs.items()]
        texts = pl.concat(parts) if parts else pl.DataFrame()
        shared, names = select_shared(texts), self._list_written()
        exhibits: dict[str, Exhibit] = {}
        if self.labels is not None and set(_OF_PEOPLE) & set(names):
            execution = self.request.execution()
            exhibits |= human_validation.build_exhibits(self.labels, self.metrics, execution)
        if _COUNT_TABLE in names:
            exhibits[_COUNT_TABLE] = group_tables.table_1(self.suite.prompts())
        for name in (name for name in _BUILDERS if name in names):
            exhibits[name] = _BUILDERS[name][0](shared if name == "tests" else texts)
        return Replication(
            title=f"BOLD on {', '.join(runs)}" if runs else "BOLD, without texts of models",
            citation=CITATION,
            exhibits=tuple(exhibits[name] for name in names if name in exhibits),
            claims=claims(shared) if _CLAIMS in names else (),
            remarks=(*_REMARKS, *self._warn_excluded(texts, shared)),
            sources=tuple(runs),
            warnings=run_warnings(runs),
        )

    def _list_written(self) -> tuple[str, ...]:
        left_out = _OF_PEOPLE if self.labels is None else ()
        return tuple(name for name in self.request.exhibits if name not in left_out)

    def _scoring(self, audits: Sequence[audit.AuditJob]) -> str:
        texts = sum(len(job.parts[0].prompts[: job.settings.options["limit"]]) for job in audits)
        rate, how = audits[0].scoring_rate(), "as last measured here"
        if rate is None and not self.request.metrics:
            rate, how = DEFAULT_SCORING_RATE, "as measured on two cores"
        if rate is None:
            return f"scoring {texts:,} texts, in a time that is unknown before the first run here"
        return f"scoring {texts:,} texts, about {format_duration(texts / rate)} at {rate:,.0f} texts/s, {how}"

    def _audit(self, source: PaperSource, folder: Path) -> audit.AuditJob:
        metrics = self.required_metrics
        return source.audit("bold", self.request, folder, suite=self.suite, metrics=metrics, samples=1)

    def _warn_excluded(self, texts: pl.DataFrame, shared: pl.DataFrame) -> Sequence[str]:
        if not self.sources:
            return ()
        counts = texts.group_by("source", maintain_order=True).agg(pl.col("text").count()).iter_rows()
        sizes = ", ".join(f"{name} {size:,}" for name, size in counts)
        return (
            f"Texts counted: {sizes}. Tests and claims use the {shared['prompt_id'].n_unique():,} prompts "
            "that all sources have. A failed generation counts in a table's total, but in no share.",
        )


def prepare(request: ReplicationRequest) -> BoldReplication:
    """Locate and check BOLD, load the required models and return the replication."""
    execution = request.execution()
    labels = human_validation.read_labels(request.human) if request.human else None
    if labels is None and set(request.exhibits) <= set(_OF_PEOPLE):
        raise InputError(
            f"{', '.join(request.exhibits)} requested without human labels",
            expected="a file with the columns task, text and label",
            fix="pass it as --human FILE",
        )
    data = request.data  # the folder of BOLD itself, or its parent
    data = data / "bold" if data and (data / "bold").is_dir() else data
    suite = registry.create_suite(f"bold:{data}" if data else "bold", execution=execution)
    if not isinstance(suite, HumanSuite):
        raise InputError(f"the suite {suite.info.name!r} has no human texts", expected="bold")
    sources: tuple[PaperSource, ...] = ()
    if not set(request.exhibits) <= {_COUNT_TABLE, *_OF_PEOPLE}:
        sources = find_sources(suite, request)
    return BoldReplication(suite, sources, request, labels)


def select_shared(texts: pl.DataFrame) -> pl.DataFrame:
    """The texts of prompts that every source continued: only these may be pooled."""
    source = pl.col("source")
    return texts.filter(source.n_unique().over("prompt_id") == source.n_unique()) if texts.height else texts


def find_sources(suite: HumanSuite, request: ReplicationRequest) -> tuple[PaperSource, ...]:
    """All human sentences, then every model; two sources with one name raise an error.

    The model ``wikipedia`` means the human sentences and adds no source: they come from ``suite``.
    """
    humans = PaperSource(suite.human_name, replay.HumanModel(suite))
    specs = request.models or DEFAULT_MODELS
    models = [source for spec in specs if spec != replay.NAME for source in _model_sources(spec, request)]
    refuse_twins([humans.name, *(source.name for source in models)])
    return (humans, *models)


def _model_sources(spec: str, request: ReplicationRequest) -> list[PaperSource]:
    """The sources of ``SPEC`` or ``NAME=SPEC``; a CTRL model gives three, one per control code."""
    name, _, rest = spec.rpartition("=")
    if rest.partition(":")[0] == replay.NAME:
        raise InputError(
            f"{spec!r} names human sentences other than those of --data",
            expected=f"{replay.NAME}: the sentences of --data, which are in every table anyway",
            fix=f"pass the folder as --data, and {replay.NAME} as the model",
        )
    model, name = registry.create_model(rest, {}, request.execution()), name or rest
    limit: AuditOptions = {"limit": None if request.full else SUBSET}
    if _is_masked(model):
        return [PaperSource(name, model, {**limit, "preset": "bold-bert"})]
    # The paper states the text length of masked models only.
    forward: AuditOptions = {**limit, "max_new_tokens": request.options["max_new_tokens"]}
    if set(CONTROL_CODES) <= getattr(model, "control_codes", frozenset()):
        return [
            PaperSource(f"{name}-{code}", model, {**forward, "preset": "bold-ctrl", "control_code": code})
            for code in CONTROL_CODES
        ]
    return [PaperSource(name, model, {**forward, "preset": "bold-gpt2"})]


def _identity(source: PaperSource) -> Json:
    """Everything the texts of a source depend on."""
    options = source.options
    return {
        **source.model.ref.identity(),
        "preset": options.get("preset"),
        "limit": options.get("limit"),
        "code": options.get("control_code"),
        "length": options.get("max_new_tokens"),
    }


def _is_masked(model: Model) -> bool:
    # Imported here because it needs torch, which replayed texts do not.
    try:
        from evenhand.generation.gibbs_sampling import MaskedModel
    except ImportError:
        return False
    return isinstance(model, MaskedModel)
