"""Runs the paper: every source through the same audit, then its tables, figures, tests and claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from evenhand.api import audit
from evenhand.core import registry
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.protocols import HumanSuite, Model, Progress
from evenhand.core.records import Execution
from evenhand.models.human import HumanModel
from evenhand.papers.bold import examples, gender, human, norms, polarity, significance, statistics
from evenhand.papers.bold.claims import claims
from evenhand.papers.bold.printed import CITATION
from evenhand.papers.bold.texts import METRICS, labelled_texts
from evenhand.papers.records import Exhibit, Replication
from evenhand.papers.replicate import RUNS, Request

DEFAULT_MODELS = ("builtin", "builtin:masked")
SUBSET = 1_720
"""Prompts a model continues without ``--full``: spread over the 43 groups, 40 or all of each."""
_DRAWN: Mapping[str, Callable[[pl.DataFrame], Exhibit]] = {
    "table_1": statistics.table_1,
    "table_3": gender.table_3,
    "table_4": norms.table_4,
    "table_5": polarity.table_5,
    "table_6": norms.table_6,
    "table_7": examples.table_7,
    "table_9": norms.table_9,
    "table_10": norms.table_10,
    "table_11": norms.table_11,
    "figure_2": gender.figure_2,
    "figure_3": polarity.figure_3,
    "figure_4": polarity.figure_4,
    "figure_5": polarity.figure_5,
    "tests": significance.tests,
}
CONTROL_CODES = ("Wikipedia", "Opinion", "Thoughts")
_OF_PEOPLE = ("table_8", "figure_6")
EXHIBITS = (*_DRAWN, *_OF_PEOPLE)
_REMARKS = (
    "Wikipedia's sentences are the paper's human baseline, and not a fair one: some kinds of people write "
    "far more of it than others, and its own texts differ between groups much as those of models do "
    "(section 7).",
    "Fascism is among the ideologies to see how extreme ideas are written of; negative texts about it are "
    "not to be read as bias (section 3.1).",
    'Rows that begin with "paper" are as printed. They come from other models and other classifiers; only '
    "Table 1 and, for WIKI, the unigram counts of Table 3 can be expected to agree to the digit.",
)


@dataclass(frozen=True, slots=True)
class Source:
    """Texts to count: a model with the paper's sampling for its kind, or the human sentences."""

    name: str
    model: Model
    preset: str | None
    limit: int | None
    control_code: str | None = None

    @property
    def folder(self) -> str:
        """The folder of its run."""
        plain = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in self.name)
        return plain.lstrip(".") or "source"

    def identity(self) -> Json:
        """What its texts depend on."""
        return {
            **self.model.ref.identity(),
            "preset": self.preset,
            "limit": self.limit,
            "code": self.control_code,
        }


@dataclass(frozen=True, slots=True)
class BoldReplication:
    """A replication with its suite and models loaded."""

    suite: HumanSuite
    sources: tuple[Source, ...]
    request: Request
    labels: pl.DataFrame | None = None
    """What people said of texts, for Table 8 and Figure 6."""

    @property
    def identity(self) -> Mapping[str, Json]:
        """What the numbers depend on."""
        return {
            "data": self.suite.info.digest,
            "sources": {source.name: source.identity() for source in self.sources},
            "metrics": list(self.metrics),
            "seed": self.request.seed,
        }

    @property
    def metrics(self) -> tuple[str, ...]:
        """The paper's metrics, each by the embedded default or by what the user put in its place."""
        given = {spec.partition("=")[0]: spec for spec in self.request.metrics}
        unknown = sorted(set(given) - set(METRICS))
        if unknown:
            raise InputError(
                f"--metrics names {unknown[0]!r}, which BOLD does not use", accepted=", ".join(METRICS)
            )
        return tuple(given.get(name, name) for name in METRICS)

    def plan(self) -> Sequence[str]:
        """Sources, texts and exhibits."""
        lines = [f"bold    {self.suite.info.digest}, metrics {', '.join(self.metrics)}"]
        for source in self.sources:
            told = self._audit(source, Path(RUNS)).plan().lines
            lines += [f"{source.name}: {line}" for line in told if line.startswith(("suite", "time"))]
        if not self.request.full:
            lines.append(
                f"subset  models continue {SUBSET:,} of 23,679 prompts, spread over the groups; --full: all"
            )
        return (*lines, f"writes  {', '.join(self._exhibits())}")

    def run(self, folder: Path, progress: Progress) -> Replication:
        """The exhibits asked for."""
        runs = [self._audit(source, folder / RUNS).run(progress) for source in self.sources]
        texts = pl.concat(
            [labelled_texts(run, source.name) for run, source in zip(runs, self.sources, strict=True)],
            how="vertical",
        )
        shared = _shared(texts)
        of_people = {} if self.labels is None else human.exhibits(self.labels)
        drawn = [
            of_people[name] if name in of_people else _DRAWN[name](shared if name == "tests" else texts)
            for name in self._exhibits()
        ]
        return Replication(
            paper="bold",
            title=f"BOLD on {', '.join(source.name for source in self.sources)}",
            citation=CITATION,
            exhibits=tuple(drawn),
            claims=claims(shared),
            remarks=(*_REMARKS, *self._subset_remarks(texts, shared)),
            sources=tuple(source.name for source in self.sources),
            warnings=tuple(
                f"{source.name}: {text}"
                for run, source in zip(runs, self.sources, strict=True)
                for text in run.manifest["warnings"]
            ),
        )

    def _exhibits(self) -> tuple[str, ...]:
        people = () if self.labels is None else _OF_PEOPLE
        return tuple(name for name in self.request.exhibits if name in _DRAWN or name in people)

    def _audit(self, source: Source, folder: Path) -> audit.Audit:
        options: audit.AuditOptions = {
            "suite": self.suite,
            "metrics": self.metrics,
            "samples": 1,
            "seed": self.request.seed,
            "preset": source.preset,
            "limit": source.limit,
            "control_code": source.control_code,
            "out": folder / source.folder,
            "device": self.request.device,
            "batch": self.request.batch,
            "offline": self.request.offline or None,
            "command": f"evenhand replicate bold, source {source.name}",
        }
        return audit.prepare(source.model, **options)

    def _subset_remarks(self, texts: pl.DataFrame, shared: pl.DataFrame) -> Sequence[str]:
        written = texts.filter(pl.col("text").is_not_null())
        sizes = {source.name: int((written["source"] == source.name).sum()) for source in self.sources}
        counted = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
        return (
            f"Texts counted: {counted}. Tests and claims use the {shared['prompt_id'].n_unique():,} prompts "
            "that all of them have. A text that a model failed to write is in a table's total, in no share.",
        )


def prepare(request: Request) -> BoldReplication:
    """The replication with BOLD found and checked, and every model loaded."""
    execution = request.execution()
    labels = human.read_labels(request.human) if request.human else None
    if labels is None and set(request.exhibits) <= set(_OF_PEOPLE):
        raise InputError(
            f"{', '.join(request.exhibits)} was asked for without labels of people",
            accepted="a file of task, text and label",
            todo="give it as --human FILE",
        )
    suite = registry.suite(f"bold:{_folder(request.data)}" if request.data else "bold", execution=execution)
    if not isinstance(suite, HumanSuite):
        raise InputError(f"the suite {suite.info.name!r} brings no human texts", accepted="bold")
    people = Source(suite.human_name, HumanModel(suite), None, None)
    limit = None if request.full else SUBSET
    models = [
        source for spec in request.models or DEFAULT_MODELS for source in _sources(spec, limit, execution)
    ]
    _refuse_twins([people, *models])
    return BoldReplication(suite, (people, *models), request, labels)


def _folder(data: Path) -> Path:
    """The folder of BOLD itself, or one that holds it as ``bold``."""
    return data / "bold" if (data / "bold").is_dir() else data


def _sources(spec: str, limit: int | None, execution: Execution) -> list[Source]:
    """The sources of ``SPEC`` or ``NAME=SPEC``; a CTRL model is three, one a control code."""
    name, _, rest = spec.rpartition("=")
    model = registry.model(rest, {}, execution)
    name = name or rest
    if set(CONTROL_CODES) <= getattr(model, "control_codes", frozenset()):
        return [Source(f"{name}-{code}", model, "bold-ctrl", limit, code) for code in CONTROL_CODES]
    return [Source(name, model, "bold-bert" if _is_masked(model) else "bold-gpt2", limit)]


def _is_masked(model: Model) -> bool:
    # Only here is torch needed: replayed texts do without it.
    try:
        from evenhand.models.masked import MaskedModel
    except ImportError:
        return False
    return isinstance(model, MaskedModel)


def _refuse_twins(sources: Sequence[Source]) -> None:
    # Names that differ in case or punctuation alone would share a folder.
    folders = [source.folder.casefold() for source in sources]
    for place, source in enumerate(sources):
        if folders[place] in folders[:place]:
            raise InputError(
                f"two sources are called {source.name!r}, or nearly so",
                accepted="a name each",
                todo="give one as --model NAME=SPEC",
            )


def _shared(texts: pl.DataFrame) -> pl.DataFrame:
    """The texts of prompts that every source continued: only these may be pooled."""
    sources = texts["source"].n_unique()
    counted = texts.group_by("prompt_id").agg(pl.col("source").n_unique())
    return texts.join(
        counted.filter(pl.col("source") == sources).select("prompt_id"), on="prompt_id", how="semi"
    )
