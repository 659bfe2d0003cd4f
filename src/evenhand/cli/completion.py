"""What the shell offers when Tab is pressed: registered names, read without importing what they name.

``evenhand --install-completion`` writes the script of bash, zsh, fish or PowerShell; ``--show-completion``
prints it.
"""

from __future__ import annotations

from collections.abc import Iterable

from evenhand.core import registry
from evenhand.core.registry import KINDS, Kind

PAPERS = ("bold", "regard", "affective", "political")
TRAINED = ("regard", "toxicity", "emotion", "ideology", "norms", "embeddings", "calibrator")
MODES = ("embedding", "classifier", "naive", "in-glove")
_WITH_A_REST = frozenset({"endpoint", "replay", "wikipedia"})
"""Back-ends that say nothing without what follows the colon."""


def metrics(incomplete: str) -> list[str]:
    """Metrics that begin so; the last of several between commas is completed."""
    return _last_of_several(incomplete, _names("metrics"))


def suites(incomplete: str) -> list[str]:
    """Suites that begin so; the last of several between commas is completed."""
    return _last_of_several(incomplete, _names("suites"))


def models(incomplete: str) -> list[str]:
    """Models that begin so; a folder or a file is left to the shell."""
    spelled = [f"{name}:" if name in _WITH_A_REST else name for name in _names("models") if name != "hub"]
    return _beginning(incomplete, [*spelled, "builtin:masked"])


def mitigations(incomplete: str) -> list[str]:
    """Mitigations that begin so."""
    return _beginning(incomplete, _names("mitigations"))


def modes(incomplete: str) -> list[str]:
    """Modes of mitigation that begin so."""
    return _beginning(incomplete, MODES)


def anything(incomplete: str) -> list[str]:
    """Every registered name that begins so."""
    return _beginning(incomplete, {name for kind in KINDS for name in _names(kind)})


def kinds(incomplete: str) -> list[str]:
    """The kinds of things that can be listed."""
    return _beginning(incomplete, KINDS)


def papers(incomplete: str) -> list[str]:
    """The papers that can be repeated."""
    return _beginning(incomplete, PAPERS)


def trained(incomplete: str) -> list[str]:
    """What can be trained."""
    return _beginning(incomplete, TRAINED)


def _names(kind: Kind) -> list[str]:
    return [entry.name for entry in registry.available(kind)]


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


def _last_of_several(incomplete: str, names: Iterable[str]) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    chosen = set(before.split(","))
    return [f"{before}{comma}{name}" for name in _beginning(last, names) if name not in chosen]
