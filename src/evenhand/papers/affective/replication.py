"""Runs the replication: counts corpora, probes classifiers on the pairs, builds tables and figures."""

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
from evenhand.papers.affective.prediction_tables import CORPORA, claims
from evenhand.papers.replicate import RUNS, ReplicationRequest
from evenhand.papers.replication_pages import Exhibit, Replication
from evenhand.probes import probe
from evenhand.store.run import Run
from evenhand.suites.pairs.pair_sets import FilesMissingError

CITATION: Final = (
    "Kadan, Deepak, Bhadra, Gangan and Lajish. Understanding latent affective bias in large pre-trained "
    "neural language models. Natural Language Processing Journal, 2024. doi:10.1016/j.nlp.2024.100062"
)
DEFAULT_MODELS: Final = ("emotion",)
RELEASED: Final = "eec_emotion_only_bert_predictions.csv"
"""Predictions of an early BERT run on EEC, the only ones released."""
EXHIBITS: Final = (*corpus_tables.BUILDERS, "table_5", *prediction_tables.EXHIBITS)
_REMARKS: Final = (
    "Tables 6 to 9 cannot be reproduced: neither the fine-tuned models nor their predictions were released. "
    "The presets affective-bert, affective-gpt2, affective-xlnet and affective-t5 of `evenhand train "
    "emotion` train the same models; pass their folders with --model.",
    "The paper edited CrowS-Pairs by hand; ours follows a written rule, so its counts differ.",
    "The p-values of Tables 6 to 9 are for single cells; with hundreds of cells some fall below 0.05 by "
    "chance. Ours come with a corrected p.",
)


@dataclass(frozen=True, slots=True)
class AffectiveReplication:
    """A replication with its data located and its pairs loaded."""

    data: Path
    corpora: corpus_tables.Corpora
    suites: Mapping[str, Suite]
    classifiers: Mapping[str, str]
    """Source name to classifier spec."""
    request: ReplicationRequest

    @property
    def identity(self) -> Mapping[str, Json]:
        """Everything the numbers depend on."""
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
            f"corpora {', '.join(self.corpora.paths) or 'none available'}",
            f"pairs   {', '.join(self.suites) or 'none available'}",
            *(f"note    {name}: {note}" for name, suite in self.suites.items() for note in suite.info.notes),
            f"probes  {', '.join(self.classifiers)}",
            f"writes  {', '.join(self.request.exhibits)}",
        )

    def run(self, folder: Path, progress: Progress) -> Replication:
        """Build the requested exhibits, as far as the data allows."""
        requested, runs_folder = self.request.exhibits, folder / RUNS
        exhibits: dict[str, Exhibit] = {}
        builders = {name: build for name, build in corpus_tables.BUILDERS.items() if name in requested}
        scans = self.corpora.scans(runs_folder) if builders else []
        if runs := [scan.run(progress) for scan in scans]:
            exhibits |= {name: build(runs) for name, build in builders.items()}
        if "table_5" in requested:
            exhibits["table_5"] = corpus_tables.table_5(self.data)
        if set(prediction_tables.EXHIBITS) & set(requested) and self.suites:
            probes = {source: self._probe(source, runs_folder, progress) for source in self.classifiers}
            exhibits |= prediction_tables.build_exhibits(probes, requested)
        missing = ", ".join(printed for name, printed in CORPORA.items() if name not in self.suites)
        without_pairs = (f"Not available, and left out of Tables 6 to 9: {missing}.",) if missing else ()
        return Replication(
            title=f"Affective bias, on {', '.join(self.classifiers)}",
            citation=CITATION,
            exhibits=tuple(exhibits[name] for name in requested if name in exhibits),
            claims=tuple(claims(list(self.suites.values()))),
            remarks=(*_REMARKS, *corpus_tables.describe_missing(self.corpora), *without_pairs),
            sources=tuple(self.classifiers),
        )

    def _probe(self, source: str, folder: Path, progress: Progress) -> Run:
        spec = self.classifiers[source]
        # The released predictions cover EEC only.
        names = ["eec"] if spec.endswith(RELEASED) else list(self.suites)
        return probe.prepare(
            spec,
            pairs=[f"{name}:{self.data}" for name in names],
            seed=self.request.seed,
            device=self.request.options["device"],
            batch=self.request.options["batch"],
            offline=self.request.options["offline"],
            out=folder / safe_file_name(source, "classifier"),
        ).run(progress)


def prepare(request: ReplicationRequest) -> AffectiveReplication:
    """Locate the data, in ``--data`` or else ``EVENHAND_DATA``, and return the replication."""
    variable = os.environ.get("EVENHAND_DATA")
    data = request.data or (Path(variable) if variable else None)
    if data is None:
        raise InputError(
            "no folder with the paper's published data was given",
            expected="--data DIR, or EVENHAND_DATA, with affective/eec.csv, bits, csp and semeval files; "
            "WikiEn, BookCorpus, WebText and C4-Val are optional",
            fix="see the how-to on probing for where they are published",
        )
    suites, corpora = dict(_suites(data)), corpus_tables.find_corpora(data)
    if not suites and not corpora.paths:
        raise InputError(
            f"{data} contains none of the paper's data",
            expected="affective/eec.csv, bits, csp or semeval files, or a corpus named WikiEn, BookCorpus, "
            "WebText or C4-Val",
            fix="check the path",
        )
    return AffectiveReplication(data, corpora, suites, dict(_classifiers(data, suites, request)), request)


def _suites(data: Path) -> Iterator[tuple[str, Suite]]:
    for name in CORPORA:
        try:
            yield name, registry.create_suite(name, {"name": str(data)})
        except FilesMissingError:
            # Each set of pairs is optional; the remarks list the missing ones.
            continue
        except InputError as error:
            raise InputError(
                f"the pairs {CORPORA[name]} are damaged: {error.problem}",
                expected=error.expected,
                fix="download the file again, or remove it to skip these pairs",
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
