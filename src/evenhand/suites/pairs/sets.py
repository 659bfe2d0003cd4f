"""Counterfactual sets: one sentence said of every group of an axis, and the order groups are compared in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evenhand.core.records import Group, Prompt, SuiteInfo

ORDER: Final = (
    *("male", "female", "non-binary"),
    *("European American", "African American"),
    *("Christian", "Muslim", "Jewish"),
)
"""Groups whose order is fixed (affective paper, section 4.2.1): it decides which is first in a pair."""

EMOTIONS: Final = ("anger", "fear", "joy", "sadness")
"""Ground truths a set may have, in the papers' order."""


@dataclass(frozen=True, slots=True)
class PairSet:
    """One sentence in as many versions as it has groups; two groups make a pair."""

    id: str
    axis: str
    cluster: str
    """The template: sets of one template are resampled together."""
    sentences: Mapping[str, str]
    """Group to sentence."""
    emotion: str | None = None
    """The emotion a reader should find, where that is known."""

    def pairs(self) -> int:
        """How many pairs of groups it holds.

        >>> PairSet("1", "gender", "t", {"male": "He ran.", "female": "She ran."}).pairs()
        1
        """
        return len(self.sentences) * (len(self.sentences) - 1) // 2


class PairSuite:
    """A suite made of counterfactual sets; its prompts are whole sentences, linked by ``template_id``."""

    def __init__(self, info: SuiteInfo, sets: Sequence[PairSet]) -> None:
        self.info = info
        self.sets = tuple(sets)

    def prompts(self) -> Iterator[Prompt]:
        """The sentences set by set; ``meta`` has the ground truth where there is one."""
        for one in self.sets:
            for group, text in one.sentences.items():
                yield Prompt.create(
                    self.info.name,
                    text,
                    groups=(Group(one.axis, group),),
                    cluster=one.cluster,
                    template_id=f"{one.axis}/{one.id}",
                    meta={"emotion": one.emotion} if one.emotion else {},
                )


def distinct(sets: Iterable[PairSet]) -> tuple[list[PairSet], tuple[str, ...]]:
    """The sets without those that tell nothing new, and what was left out, a sentence each.

    A set that says the same of every group cannot differ; one that repeats another would make intervals look
    narrower than they are. Of repeated ones the first is kept, with its template.
    """
    whole = list(sets)
    differing = [one for one in whole if len(set(one.sentences.values())) > 1]
    found: dict[object, PairSet] = {}
    for one in differing:
        found.setdefault((one.axis, one.emotion, frozenset(one.sentences.items())), one)
    notes = (
        *_said(len(whole) - len(differing), "says the same of every group", "say the same of every group"),
        *_said(len(differing) - len(found), "repeats another", "repeat others"),
    )
    return list(found.values()), notes


def _said(amount: int, one: str, several: str) -> tuple[str, ...]:
    if not amount:
        return ()
    said = f"1 set {one} and is" if amount == 1 else f"{amount:,} sets {several} and are"
    return (f"{said} left out",)


def ordered(groups: Iterable[str]) -> list[str]:
    """The groups in the order they are compared in: known ones as in ``ORDER``, then as they came.

    >>> ordered(["Hindu", "Jewish", "Christian"])
    ['Christian', 'Jewish', 'Hindu']
    """
    found = list(dict.fromkeys(groups))
    return sorted(found, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


def baselines(sets: Iterable[PairSet]) -> dict[str, str]:
    """For each axis its first group."""
    groups: dict[str, list[str]] = {}
    for one in sets:
        groups.setdefault(one.axis, []).extend(one.sentences)
    return {axis: ordered(names)[0] for axis, names in groups.items()}


def suite_info(
    name: str,
    sets: Sequence[PairSet],
    *,
    summary: str,
    digest: str,
    version: str = "1",
    citation: str = "",
    licence: str = "",
    notes: tuple[str, ...] = (),
) -> SuiteInfo:
    """What a suite of pairs says of itself."""
    return SuiteInfo(
        name=name,
        version=version,
        summary=summary,
        baselines=baselines(sets),
        metrics=("emotion",),
        cluster="template",
        citation=citation,
        licence=licence,
        digest=digest,
        notes=notes,
    )


def counted(sets: Iterable[PairSet]) -> dict[str, tuple[int, int]]:
    """For each axis the number of sets and of pairs."""
    found: dict[str, tuple[int, int]] = {}
    for one in sets:
        before = found.get(one.axis, (0, 0))
        found[one.axis] = (before[0] + 1, before[1] + one.pairs())
    return found
