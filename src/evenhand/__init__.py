"""evenhand measures social and political bias in language generation, and mitigates it while a model writes.

Public names are resolved on first use, so importing the package costs nothing.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from evenhand._version import __version__ as __version__

# After each operation torch's threads would busy-wait for milliseconds, on cores that
# calibration and metrics need. GNU OpenMP reads this when torch is first imported.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")

if TYPE_CHECKING:  # `as` exports a name for type checkers
    from evenhand.adapters.fairlearn_frames import frame_inputs as frame_inputs
    from evenhand.adapters.fairlearn_frames import score_predictions as score_predictions
    from evenhand.adapters.lm_eval_task import export_task as export_task
    from evenhand.annotate.agreement import agreement as agreement
    from evenhand.annotate.agreement import ratings as ratings
    from evenhand.annotate.label_aggregation import settle_labels as settle_labels
    from evenhand.annotate.label_formats import export_labels as export_labels
    from evenhand.annotate.label_formats import import_labels as import_labels
    from evenhand.annotate.study_creation import create_study as create_study
    from evenhand.annotate.study_creation import sample_items as sample_items
    from evenhand.annotate.study_server import forget_person as forget_person
    from evenhand.annotate.study_server import invite_people as invite_people
    from evenhand.annotate.study_server import serve_study as serve_study
    from evenhand.annotate.validate import validate as validate
    from evenhand.audits.audit import audit as audit
    from evenhand.audits.compare import compare as compare
    from evenhand.audits.debias import debias as debias
    from evenhand.audits.gate import gate as gate
    from evenhand.audits.merge import merge as merge
    from evenhand.audits.power import power as power
    from evenhand.audits.score import score as score
    from evenhand.audits.tradeoff import tradeoff as tradeoff
    from evenhand.collection.build import build as build
    from evenhand.core.errors import EvenhandError as EvenhandError
    from evenhand.corpus.scan import scan_corpus as scan_corpus
    from evenhand.models.export import export as export
    from evenhand.papers.replicate import replicate as replicate
    from evenhand.probes.probe import probe as probe
    from evenhand.report.catalogue import available as available
    from evenhand.report.catalogue import card as card
    from evenhand.report.render_run import render as render
    from evenhand.store.run import Run as Run
    from evenhand.training.train import train as train

_WHERE = {
    "EvenhandError": "evenhand.core.errors",
    "Run": "evenhand.store.run",
    "agreement": "evenhand.annotate.agreement",
    "audit": "evenhand.audits.audit",
    "available": "evenhand.report.catalogue",
    "build": "evenhand.collection.build",
    "card": "evenhand.report.catalogue",
    "compare": "evenhand.audits.compare",
    "create_study": "evenhand.annotate.study_creation",
    "debias": "evenhand.audits.debias",
    "export": "evenhand.models.export",
    "export_labels": "evenhand.annotate.label_formats",
    "export_task": "evenhand.adapters.lm_eval_task",
    "forget_person": "evenhand.annotate.study_server",
    "frame_inputs": "evenhand.adapters.fairlearn_frames",
    "gate": "evenhand.audits.gate",
    "import_labels": "evenhand.annotate.label_formats",
    "invite_people": "evenhand.annotate.study_server",
    "merge": "evenhand.audits.merge",
    "power": "evenhand.audits.power",
    "probe": "evenhand.probes.probe",
    "ratings": "evenhand.annotate.agreement",
    "render": "evenhand.report.render_run",
    "replicate": "evenhand.papers.replicate",
    "sample_items": "evenhand.annotate.study_creation",
    "scan_corpus": "evenhand.corpus.scan",
    "score": "evenhand.audits.score",
    "score_predictions": "evenhand.adapters.fairlearn_frames",
    "serve_study": "evenhand.annotate.study_server",
    "settle_labels": "evenhand.annotate.label_aggregation",
    "tradeoff": "evenhand.audits.tradeoff",
    "train": "evenhand.training.train",
    "validate": "evenhand.annotate.validate",
}

__all__ = sorted(["__version__", *_WHERE])

if not TYPE_CHECKING:  # a type checker would believe that every name exists

    def __getattr__(name: str) -> object:
        if name not in _WHERE:
            raise AttributeError(f"module 'evenhand' has no attribute {name!r}")
        return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return __all__
