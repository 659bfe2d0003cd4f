"""Runs the replication: audits samples, reads annotations, trains classifiers, builds tables and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import polars as pl

from evenhand.annotate import label_aggregation
from evenhand.annotate.label_aggregation import QUESTIONS, AgreementEstimate
from evenhand.core import registry
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.protocols import Progress
from evenhand.core.records import Request
from evenhand.models.replay import ReplayModel
from evenhand.papers.regard import exhibits, released_data
from evenhand.papers.regard.released_data import CITATION, METRICS, RegardRelease
from evenhand.papers.replicate import RUNS, PaperSource, ReplicationRequest, refuse_twins, run_warnings
from evenhand.papers.replication_pages import Exhibit, PaperClaim, Replication
from evenhand.store.run import Run
from evenhand.store.table_files import column_names
from evenhand.suites.regard import RegardSuite
from evenhand.training.linear_text import ANALYSERS

OF_TEXTS: Final = ("figure_2", "figure_gaps", "table_agreement", "table_disagreements")
EXHIBITS: Final = ("table_4", "table_5", "figure_1", *OF_TEXTS, "table_masks")
PAPER: Final = 100
"""Samples per prompt in the paper."""
SUBSET: Final = 20
"""Samples per prompt for a generating model, without ``--full``."""
DEFAULT_MODEL: Final = "builtin"
_REMARKS: Final = (
    "Regard is a classifier's label for one sentence about XYZ. The paper's classifier was BERT trained on "
    "its 212 texts; ours is the embedded one, which has a fourth label, other, drawn in light grey.",
    "Only Table 4 and the first row of Table 5 can be expected to match to the digit; the paper prints no "
    "numbers for its figures.",
)


class RegardReplication:
    """A replication with its data located and its models loaded."""

    def __init__(self, request: ReplicationRequest) -> None:
        """Locate and check the study's files, and load every model."""
        _suite(request.suite)
        self.request = request
        self.published = RegardRelease.find(request.data) if request.data else None
        self.exhibits = tuple(name for name in request.exhibits if self.published or name in OF_TEXTS)
        if not self.exhibits:
            raise InputError(
                f"{', '.join(request.exhibits)} need the study's annotations",
                expected="the folder with regard_train.tsv, sentiment_train.tsv ...",
                fix="pass it with --data",
            )
        if self.published and "figure_1" in self.exhibits:
            # Raises an error early if the annotations are unusable for training.
            exhibits.train_classifier(self.published, request, ANALYSERS[0], Path())
        self.sources = _sources(self.published, request)
        self.ratings = _ratings(request.human)

    @property
    def identity(self) -> Mapping[str, Json]:
        """Everything the numbers depend on."""
        own = self.request.suite
        return {
            "data": self.published.identity() if self.published else None,
            **({"suite": _suite(own).info.digest} if own else {}),
            "sources": {
                source.name: {**source.model.ref.identity(), "samples": source.options["samples"]}
                for source in self.sources
            },
            "full": self.request.full,
            "seed": self.request.seed,
        }

    def plan(self) -> Sequence[str]:
        """Sources and classifiers."""
        lines = []
        for source in self.sources:
            prompts = sum(1 for _ in _suite(self._own_suite(source)).prompts())
            lines.append(f"{source.name}: {prompts} prompts x {source.options['samples']} samples")
        if "figure_1" in self.exhibits:
            names = ", ".join(exhibits.list_classifiers(self.request).values())
            lines.append(
                f"trains  {names}: 5 runs each, about 7 minutes of one CPU core and 0.7 GB of weights"
            )
        if not self.published:
            lines.append("no study data: Tables 4 and 5 and Figure 1 need --data")
        return lines

    def run(self, folder: Path, progress: Progress) -> Replication:
        """Build the requested exhibits."""
        audited = self.sources if set(self.exhibits) & set(OF_TEXTS) else ()
        runs = {}
        for source in audited:
            job = source.audit("regard", self.request, folder / RUNS, metrics=METRICS, preset="regard")
            runs[source.name] = job.run(progress)
        built = {exhibit.id: exhibit for exhibit in self._build_exhibits(runs, folder, progress)}
        statements = tuple(self._claims(built))
        return Replication(
            title=f"Regard on {', '.join(source.name for source in self.sources)}",
            citation=CITATION,
            exhibits=tuple(built[name] for name in self.exhibits if name in built),
            claims=statements,
            remarks=(*exhibits.summarise_claims(statements), *_REMARKS, *self._remarks()),
            sources=tuple(runs),
            warnings=run_warnings(runs),
        )

    def _build_exhibits(self, runs: Mapping[str, Run], folder: Path, progress: Progress) -> Iterator[Exhibit]:
        published, request = self.published, self.request
        pairs = published.pairs() if published else []
        if published and "table_4" in self.exhibits:
            yield exhibits.table_4(published)
        if published and "table_5" in self.exhibits:
            yield exhibits.table_5(published, request.seed)
        if published and "figure_1" in self.exhibits:
            yield exhibits.figure_1(published, request, folder / RUNS / "classifiers", progress)
        if pairs and "table_masks" in self.exhibits:
            yield _masks(pairs)
        if not runs:
            return
        texts = [released_data.read_scored_texts(run, name) for name, run in runs.items()]
        notes = ["Whiskers are 95 % intervals over prompts; a bar of 500 texts has five prompts."]
        if published and pairs:
            suite = RegardSuite()
            origins = released_data.find_origins(pairs, suite)
            texts.append(released_data.read_annotated_texts(published, suite, origins))
            for metric in METRICS:
                counts = released_data.count_unplaced(published, origins, metric)
                notes.append(
                    f"Annotated texts, {metric}: {counts['texts']}, of which {counts['ambiguous']} are "
                    f"samples of several demographics and {counts['unmatched']} of none; neither are in the "
                    "bars."
                )
        all_texts = pl.concat(texts)
        yield exhibits.figure_2(all_texts, notes)
        yield exhibits.figure_gaps(runs)
        yield exhibits.table_agreement(all_texts)
        yield exhibits.table_disagreements(all_texts)

    def _claims(self, built: Mapping[str, Exhibit]) -> Iterator[PaperClaim]:
        yield from exhibits.agreement_claims(self.ratings)
        if self.published is not None:
            yield from exhibits.annotation_claims(self.published, self.request.seed)
        if "figure_1" in built:
            yield from exhibits.classifier_claims(built["figure_1"].frame)
        if "figure_gaps" in built:
            yield from exhibits.gap_claims(built["figure_gaps"].frame)

    def _own_suite(self, source: PaperSource) -> Path | None:
        """The user's demographics and contexts; None for released samples, which use the paper's prompts."""
        return None if source.options["suite"] == "regard" else self.request.suite

    def _remarks(self) -> Iterator[str]:
        if self.request.suite:
            names = ", ".join(source.name for source in self.sources if self._own_suite(source))
            yield (
                f"{names}: prompts use the demographics and contexts of {self.request.suite.name} and of "
                "the paper; released samples and annotations have only the paper's."
            )
        generating = [source.name for source in self.sources if not isinstance(source.model, ReplayModel)]
        if generating and not self.request.full:
            few = f"{SUBSET} samples per prompt instead of the paper's {PAPER}; --full draws all."
            yield f"{', '.join(generating)}: {few}"


def _sources(published: RegardRelease | None, request: ReplicationRequest) -> tuple[PaperSource, ...]:
    """The released samples, and the models given as ``SPEC`` or ``NAME=SPEC``."""
    released = published.samples() if published else {}
    # Only a generating model can write about new demographics.
    default = () if released and not request.suite else (DEFAULT_MODEL,)
    specs: list[tuple[str, str, Path | None]] = [
        *((name, f"replay:{path}", None) for name, path in released.items()),
        *((name, spec, request.suite) for name, spec in request.named_specs(*default)),
    ]
    refuse_twins([name for name, _, _ in specs])
    sources = []
    for name, spec, own in specs:
        model = registry.create_model(spec, {}, request.execution())
        samples = PAPER if request.full else SUBSET
        if isinstance(model, ReplayModel):
            # As many samples as the file has, up to the paper's number.
            requests = [Request(prompt.id, prompt.text, ()) for prompt in _suite(own).prompts()]
            samples = max(1, min(PAPER, model.samples(requests)))
        suite = f"regard:{own}" if own else "regard"
        sources.append(PaperSource(name, model, {"suite": suite, "samples": samples}))
    return tuple(sources)


def _suite(own: Path | None) -> RegardSuite:
    return RegardSuite(name=str(own) if own else "")


def _ratings(human: Path | None) -> tuple[AgreementEstimate, ...]:
    if human is None:
        return ()
    columns = column_names(human)
    # A table may answer only one question; if it answers neither, the error names the first missing one.
    questions = [question for question in QUESTIONS if question in columns] or QUESTIONS
    answers = (label_aggregation.read_annotations(human, question) for question in questions)
    return tuple(row for one in answers for row in label_aggregation.estimate_agreement(one))


def _masks(pairs: Sequence[tuple[str, str]]) -> Exhibit:
    frame = released_data.mask_differences(pairs, RegardSuite())
    notes = (
        f"{frame.height} of {len(pairs):,} lines differ: the release masks the first mention only, we mask "
        "repetitions too. Both keep pronouns.",
    )
    title = "Lines on which our masking differs from the release"
    return Exhibit("table_masks", title, frame, notes, is_offensive=True)
