"""What the shell offers when Tab is pressed: registered names, read without importing what they name.

``evenhand --install-completion`` writes the script of bash, zsh, fish or PowerShell; ``--show-completion``
prints it.
"""

from __future__ import annotations

from collections.abc import Iterable

from evenhand.core import registry
from evenhand.core.registry import KINDS, Kind

PAPERS = ("bold", "regard", "affective", "political")
TRAINING_TASKS = ("regard", "toxicity", "emotion", "ideology", "norms", "embeddings", "calibrator")
MODES = ("embedding", "classifier", "naive", "in-glove")
_WITH_A_REST = frozenset({"endpoint", "replay", "wikipedia"})
"""Back-ends that say nothing without what follows the colon."""


def complete_metrics(incomplete: str) -> list[str]:
    """Metrics that begin so; the last of several between commas is completed."""
    return _complete_last(incomplete, _names("metrics"))


def complete_suites(incomplete: str) -> list[str]:
    """Suites that begin so; the last of several between commas is completed."""
    return _complete_last(incomplete, _names("suites"))


def complete_models(incomplete: str) -> list[str]:
    """Models that begin so; a folder or a file is left to the shell."""
    spelled = [f"{name}:" if name in _WITH_A_REST else name for name in _names("models") if name != "hub"]
    return _with_prefix(incomplete, [*spelled, "builtin:masked"])


def complete_mitigations(incomplete: str) -> list[str]:
    """Mitigations that begin so."""
    return _with_prefix(incomplete, _names("mitigations"))


def complete_modes(incomplete: str) -> list[str]:
    """Modes of mitigation that begin so."""
    return _with_prefix(incomplete, MODES)


def complete_names(incomplete: str) -> list[str]:
    """Every registered name that begins so."""
    return _with_prefix(incomplete, {name for kind in KINDS for name in _names(kind)})


def complete_kinds(incomplete: str) -> list[str]:
    """The kinds of things that can be listed."""
    return _with_prefix(incomplete, KINDS)


def complete_papers(incomplete: str) -> list[str]:
    """The papers that can be repeated."""
    return _with_prefix(incomplete, PAPERS)


def complete_tasks(incomplete: str) -> list[str]:
    """What can be trained."""
    return _with_prefix(incomplete, TRAINING_TASKS)


def _names(kind: Kind) -> list[str]:
    return [entry.name for entry in registry.list_entries(kind)]


def _with_prefix(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


def _complete_last(incomplete: str, names: Iterable[str]) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    chosen = set(before.split(","))
    return [f"{before}{comma}{name}" for name in _with_prefix(last, names) if name not in chosen]
