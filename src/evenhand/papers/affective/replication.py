"""Runs the paper: corpora counted, classifiers probed on its pairs, then its tables and figures."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evenhand.core import registry
from evenhand.core.digests import Json, digest, file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import safe_file_name
from evenhand.core.protocols import Progress, Suite
from evenhand.papers.affective import corpus_tables, prediction_tables
from evenhand.papers.affective.claims import claims
from evenhand.papers.affective.published_values import CITATION, CORPORA, MODELS
from evenhand.papers.replicate import RUNS, ReplicationRequest
from evenhand.papers.replication_pages import Exhibit, Replication
from evenhand.probes import probe
from evenhand.store.run import Run
from evenhand.suites.pairs.pair_sets import FilesMissingError

DEFAULT_MODELS: Final = ("emotion",)
RELEASED: Final = "eec_emotion_only_bert_predictions.csv"
"""Predictions of an early BERT run on EEC, the only ones that were released."""
_OF_CORPORA: Final = ("table_2", "table_3", "table_4")
_SUMMARIES: Final = ("summary_5_1", "summary_5_4")
_FIGURES: Final = ("figure_2", "figure_3")
EXHIBITS: Final = (*_OF_CORPORA, "table_5", *MODELS, *_FIGURES, *_SUMMARIES)
_REMARKS: Final = (
    "Tables 6 to 9 cannot be reproduced: neither the fine-tuned models nor their predictions were "
    "released. The "
    "presets affective-bert, affective-gpt2, affective-xlnet and affective-t5 of `evenhand train emotion` "
    "train "
    "the same models; name their folders with --model.",
    "CrowS-Pairs was changed by hand in the paper; ours follow a written rule, with other counts.",
    "The p-values of Tables 6 to 9 are of single cells; with hundreds of cells some fall below 0.05 by "
    "chance. "
    "Ours have a corrected p beside them.",
)


@dataclass(frozen=True, slots=True)
class AffectiveReplication:
    """A replication with its data found and its pairs read."""

    data: Path
    corpora: corpus_tables.Corpora
    suites: Mapping[str, Suite]
    classifiers: Mapping[str, str]
    """Source to the classifier's spec."""
    request: ReplicationRequest

    @property
    def identity(self) -> Mapping[str, Json]:
        """What the numbers depend on."""
        return {
            "pairs": {name: suite.info.digest for name, suite in self.suites.items()},
            "classifiers": dict(self.classifiers),
            "corpora": {
                name: digest([_file_digest(path) for path in paths])
                for name, paths in self.corpora.paths.items()
            },
            "seed": self.request.seed,
        }

    def plan(self) -> Sequence[str]:
        """Corpora, pairs and classifiers."""
        return (
            f"corpora {', '.join(self.corpora.paths) or 'none at hand'}",
            f"pairs   {', '.join(self.suites) or 'none at hand'}",
            *(f"note    {name}: {note}" for name, suite in self.suites.items() for note in suite.info.notes),
            f"probes  {', '.join(self.classifiers)}",
            f"writes  {', '.join(self.request.exhibits)}",
        )

    def run(self, folder: Path, progress: Progress) -> Replication:
        """The exhibits asked for, as far as the data allows."""
        exhibits = [
            *self._of_corpora(folder / RUNS, progress),
            *self._of_classifiers(folder / RUNS, progress),
        ]
        order = {name: place for place, name in enumerate(EXHIBITS)}
        return Replication(
            paper="affective",
            title=f"Affective bias, on {', '.join(self.classifiers)}",
            citation=CITATION,
            exhibits=tuple(sorted(exhibits, key=lambda exhibit: order[exhibit.id])),
            claims=claims(list(self.suites.values())),
            remarks=(*_REMARKS, *corpus_tables.describe_missing(self.corpora), *self._missing_pairs()),
            sources=tuple(self.classifiers),
        )

    def _of_corpora(self, folder: Path, progress: Progress) -> Iterator[Exhibit]:
        wanted = [name for name in _OF_CORPORA if name in self.request.exhibits]
        runs = [scan.run(progress) for scan in self.corpora.scans(folder)] if wanted else []
        if runs:
            made = {
                "table_2": corpus_tables.table_2,
                "table_3": corpus_tables.table_3,
                "table_4": corpus_tables.table_4,
            }
            yield from (made[name](runs) for name in wanted)
        if "table_5" in self.request.exhibits:
            yield corpus_tables.table_5(self.data)

    def _of_classifiers(self, folder: Path, progress: Progress) -> Iterator[Exhibit]:
        wanted = [name for name in (*MODELS, *_FIGURES, *_SUMMARIES) if name in self.request.exhibits]
        if not wanted or not self.suites:
            return
        runs = {source: self._probe(source, folder, progress) for source in self.classifiers}
        ours = prediction_tables.measure_cells(runs)
        shown = next((source for source in runs if "bert" in source.lower()), next(iter(runs)))
        first = next(iter(runs))
        for name in wanted:
            if name in MODELS:
                yield prediction_tables.model_table(name, ours)
            elif name == "figure_2":
                yield prediction_tables.figure_2(runs[shown], shown)
            elif name == "figure_3":
                yield prediction_tables.figure_3(runs[first], first)
            elif name == "summary_5_1":
                yield prediction_tables.summary_table(
                    ours, "source", name, "Affective bias by model (section 5.1)"
                )
            else:
                yield prediction_tables.summary_table(
                    ours, "corpus", name, "By evaluation corpus (section 5.4)"
                )

    def _probe(self, source: str, folder: Path, progress: Progress) -> Run:
        spec = self.classifiers[source]
        # The released predictions are of EEC alone.
        names = ["eec"] if spec.endswith(RELEASED) else list(self.suites)
        pairs = [f"{name}:{self.data}" for name in names]
        safe = safe_file_name(source, "classifier")
        prepared = probe.prepare(
            spec,
            pairs=pairs,
            seed=self.request.seed,
            device=self.request.device,
            batch=self.request.batch,
            offline=self.request.offline,
            out=folder / safe,
        )
        return prepared.run(progress)

    def _missing_pairs(self) -> Iterator[str]:
        missing = [printed for name, printed in CORPORA.items() if name not in self.suites]
        if missing:
            yield f"Not at hand, and left out of Tables 6 to 9: {', '.join(missing)}."


def prepare(request: ReplicationRequest) -> AffectiveReplication:
    """The replication with its data found: ``--data``, else ``EVENHAND_DATA``."""
    named = os.environ.get("EVENHAND_DATA")
    data = request.data or (Path(named) if named else None)
    if data is None:
        raise InputError(
            "no folder with the paper's published data was named",
            expected="--data DIR, or EVENHAND_DATA, with affective/eec.csv, bits, csp and semeval files; "
            "WikiEn, BookCorpus, WebText and C4-Val are optional",
            fix="see the how-to on probing for where they are published",
        )
    suites = dict(_suites(data))
    found = corpus_tables.find_corpora(data)
    if not suites and not found.paths:
        raise InputError(
            f"{data} has none of the paper's data",
            expected="affective/eec.csv, bits, csp or semeval files, or a corpus named WikiEn, BookCorpus, "
            "WebText or C4-Val",
            fix="check the path",
        )
    return AffectiveReplication(data, found, suites, dict(_classifiers(data, suites, request)), request)


def _suites(data: Path) -> Iterator[tuple[str, Suite]]:
    for name in CORPORA:
        try:
            yield name, registry.create_suite(name, {"name": str(data)})
        except FilesMissingError:
            # Each set of pairs is optional; what is missing is said in the remarks.
            continue
        except InputError as error:
            raise InputError(
                f"the pairs {CORPORA[name]} are damaged: {error.problem}",
                expected=error.expected,
                fix="get the file again, or take it away to go without these pairs",
            ) from error


def _classifiers(
    data: Path, suites: Mapping[str, Suite], request: ReplicationRequest
) -> Iterator[tuple[str, str]]:
    for spec in request.models or DEFAULT_MODELS:
        yield spec if len(spec) < 60 else Path(spec).name, spec
    released = next(
        (path for path in (data / RELEASED, data / "affective" / RELEASED) if path.is_file()), None
    )
    if released is not None and "eec" in suites and not request.models:
        yield "BERT (released predictions)", f"replay:{released}"


def _file_digest(path: Path) -> Json:
    return file_digest(path) if path.is_file() else sorted(str(item.name) for item in path.glob("*"))
