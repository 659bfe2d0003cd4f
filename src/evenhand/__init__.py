"""evenhand measures social and political bias in language generation, and mitigates it while a model writes.

The public names are resolved when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from evenhand._version import __version__

# After every operation the threads of torch would wait in a busy loop for milliseconds, on cores where
# calibration and metrics want to run. GNU's OpenMP reads this when torch is first imported.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")

if TYPE_CHECKING:
    from evenhand.adapters.frames import frame_inputs, score_predictions
    from evenhand.adapters.task_files import export_task
    from evenhand.api.agreement import agreement
    from evenhand.api.audit import audit
    from evenhand.api.build import build
    from evenhand.api.catalogue import available, card
    from evenhand.api.collecting import forget_person, invite_people, serve_study
    from evenhand.api.compare import compare
    from evenhand.api.corpus import scan_corpus
    from evenhand.api.debias import debias
    from evenhand.api.exchange import export_labels, import_labels
    from evenhand.api.export import export
    from evenhand.api.gate import gate
    from evenhand.api.items import sample_items
    from evenhand.api.merge import merge
    from evenhand.api.power import power
    from evenhand.api.probe import probe
    from evenhand.api.ratings import ratings
    from evenhand.api.render import render
    from evenhand.api.score import score
    from evenhand.api.settle import settle_labels
    from evenhand.api.study import create_study
    from evenhand.api.tradeoff import tradeoff
    from evenhand.api.train import train
    from evenhand.api.validate import validate
    from evenhand.core.errors import EvenhandError
    from evenhand.papers.replicate import replicate
    from evenhand.store.run import Run

__all__ = [
    "EvenhandError",
    "Run",
    "__version__",
    "agreement",
    "audit",
    "available",
    "build",
    "card",
    "compare",
    "create_study",
    "debias",
    "export",
    "export_labels",
    "export_task",
    "forget_person",
    "frame_inputs",
    "gate",
    "import_labels",
    "invite_people",
    "merge",
    "power",
    "probe",
    "ratings",
    "render",
    "replicate",
    "sample_items",
    "scan_corpus",
    "score",
    "score_predictions",
    "serve_study",
    "settle_labels",
    "tradeoff",
    "train",
    "validate",
]

_WHERE = {
    "EvenhandError": "evenhand.core.errors",
    "Run": "evenhand.store.run",
    "agreement": "evenhand.api.agreement",
    "audit": "evenhand.api.audit",
    "available": "evenhand.api.catalogue",
    "build": "evenhand.api.build",
    "card": "evenhand.api.catalogue",
    "compare": "evenhand.api.compare",
    "create_study": "evenhand.api.study",
    "debias": "evenhand.api.debias",
    "export": "evenhand.api.export",
    "export_labels": "evenhand.api.exchange",
    "export_task": "evenhand.adapters.task_files",
    "forget_person": "evenhand.api.collecting",
    "frame_inputs": "evenhand.adapters.frames",
    "gate": "evenhand.api.gate",
    "import_labels": "evenhand.api.exchange",
    "invite_people": "evenhand.api.collecting",
    "merge": "evenhand.api.merge",
    "power": "evenhand.api.power",
    "probe": "evenhand.api.probe",
    "ratings": "evenhand.api.ratings",
    "render": "evenhand.api.render",
    "replicate": "evenhand.papers.replicate",
    "sample_items": "evenhand.api.items",
    "scan_corpus": "evenhand.api.corpus",
    "score": "evenhand.api.score",
    "score_predictions": "evenhand.adapters.frames",
    "serve_study": "evenhand.api.collecting",
    "settle_labels": "evenhand.api.settle",
    "tradeoff": "evenhand.api.tradeoff",
    "train": "evenhand.api.train",
    "validate": "evenhand.api.validate",
}


if not TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> object:
        if name not in _WHERE:
            raise AttributeError(f"module 'evenhand' has no attribute {name!r}")
        return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return __all__
