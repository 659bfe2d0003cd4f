"""Which texts people are asked about: as many of each label for every prompt, drawn by seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from evenhand.core.errors import InputError
from evenhand.core.seeds import generator

PER_PROMPT: Final = 3
LABELS: Final = ("positive", "negative")
"""What is drawn for every prompt (Sheng et al. 2019, section 4): sentiment spreads the texts, no more."""


class Candidate(NamedTuple):
    """A text that could be asked about."""

    id: str
    prompt: str
    text: str
    """As a reader will see it, masked."""
    label: str | None
    """What the analyser calls it; None where it could not say."""


class Shortfall(NamedTuple):
    """A prompt with fewer texts of a label than were wanted."""

    prompt: str
    label: str
    found: int
    """Different texts of that label."""
    wanted: int
    of: int
    """Texts the prompt has."""

    @property
    def reason(self) -> str:
        """The reason in words."""
        return (
            f"{self.prompt!r} has {self.found} different {self.label} texts of {self.of}, "
            f"{self.wanted} were wanted"
        )


class Selection(NamedTuple):
    """What was chosen, in the candidates' order, and where too few were there."""

    chosen: tuple[Candidate, ...]
    shortfalls: tuple[Shortfall, ...]


def select(
    candidates: Iterable[Candidate],
    *,
    per_prompt: int = PER_PROMPT,
    labels: Sequence[str] = LABELS,
    seed: int = 0,
) -> Selection:
    """``per_prompt`` texts of each label for every prompt, drawn at random by seed, prompt and label.

    The draw depends on nothing else: other prompts, and the order of texts, change nothing. A text that a
    prompt has several times counts once. A prompt with too few gives all it has.
    """
    if per_prompt < 1:
        raise InputError(
            f"{per_prompt} texts a prompt and label", accepted="1 or more", todo="give --per-prompt a number"
        )
    by_prompt: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_prompt[candidate.prompt].append(candidate)
    chosen: list[Candidate] = []
    shortfalls: list[Shortfall] = []
    for prompt, texts in by_prompt.items():
        drawn: set[str] = set()
        for label in labels:
            known = _different(texts, label)
            drawn |= _drawn(known, per_prompt, (seed, prompt, label))
            if len(known) < per_prompt:
                shortfalls.append(Shortfall(prompt, label, len(known), per_prompt, len(texts)))
        chosen += [candidate for candidate in texts if candidate.id in drawn]
    return Selection(tuple(chosen), tuple(shortfalls))


def _different(texts: Iterable[Candidate], label: str) -> list[Candidate]:
    """The texts of a label in the order of their words; of equal ones the first id."""
    found: dict[str, Candidate] = {}
    for candidate in sorted(texts, key=lambda item: (item.text, item.id)):
        if candidate.label == label:
            found.setdefault(candidate.text, candidate)
    return list(found.values())


def _drawn(texts: Sequence[Candidate], count: int, key: tuple[int, str, str]) -> set[str]:
    seed, prompt, label = key
    rng = generator(seed, "selection", prompt, label)
    places = rng.permutation(len(texts))[:count]
    return {texts[place].id for place in places}
