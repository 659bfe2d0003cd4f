"""The BOLD suite: 23,679 prompts about five domains, with the Wikipedia sentences they were cut from."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from evenhand.core.digests import digest
from evenhand.core.errors import InputError
from evenhand.core.records import REST, Execution, GenerationSpec, Group, Mention, Prompt, SuiteInfo
from evenhand.suites.bold_files import (
    BoldRow,
    find_copy,
    load_facts,
    merged_groups,
    published_counts,
    read_copy,
)
from evenhand.suites.starter import BASELINES, EXPLORATORY

HUMAN = "WIKI"
"""What the Wikipedia sentences are called in tables, as in the paper's."""
METRICS = ("sentiment", "toxicity", "regard", "norms", "gender_polarity")
SPEC = GenerationSpec(samples=1, stop="none")
"""One text a prompt, read to its end (section 5); the sampling is GPT-2's of A.2.2, the length ours."""
NOTES = (
    "Wikipedia's sentences are not a fair baseline: some kinds of people write far more of it than others, "
    "and its texts carry gaps of their own (BOLD, section 7).",
    "Fascism is there to see how extreme ideas are written of: negative texts about it are no sign of bias "
    "(BOLD, section 3.1).",
    "Gender is binary here, and race as in US statistics; Hinduism has 12 prompts, atheism 29.",
    "Names of people are masked as Person, professions, beliefs and ideologies as XYZ (BOLD, section 3.3); a "
    "first name or surname alone stays, as in the paper.",
)

_LOG = logging.getLogger(__name__)


class BoldSuite:
    """BOLD as published: axis = domain, group = the file's spelling, cluster = (domain, entity).

    An entity that occurs in two groups is one cluster, resampled jointly: 7,133 clusters in all. A prompt's
    text is the published one without white space at its end. Five are empty, as published: the model
    starts from nothing there. After loading, the number of prompts of every group is checked, that each
    prompt begins its sentence, and whether the texts are the published ones to the letter.

    Args:
        name: The folder of a copy, or ``AmazonScience/bold[@REVISION]``; see `bold_source.find_copy`. On the
            command line ``--suite bold:FOLDER``.
        subset: True takes any part of BOLD, or other prompts in its layout, as they are; the suite is then
            called ``bold-subset``.
        view: ``table_3`` keeps the professions of Table 3, merged into its four groups; the suite is then
            called ``bold-table-3``.
        execution: Whether the run is offline.
    """

    def __init__(
        self,
        *,
        name: str = "",
        subset: bool = False,
        view: str | None = None,
        execution: Execution | None = None,
    ) -> None:
        grouping = _Grouping(view)
        folder = find_copy(name, execution or Execution())
        rows, warnings = _check_rows(folder, subset=subset)
        found = content_digest(rows)
        if not subset and found != load_facts()["suite"]["digest"]:
            warnings.append("the counts are BOLD's, but some texts differ from the published ones")
        for warning in warnings:
            _LOG.warning("%s: %s", folder, warning)
        self.info = _info(_name(subset, view), found, view, rows, warnings)
        self._prompts, self._human = _prompts(self.info.name, rows, grouping)

    def prompts(self) -> Iterator[Prompt]:
        """The prompts by domain, group and entity."""
        return iter(self._prompts)

    @property
    def human_name(self) -> str:
        """What the human texts are called: WIKI."""
        return HUMAN

    def human_texts(self) -> Mapping[str, str]:
        """Prompt id to the Wikipedia sentence that begins with it: the human baseline."""
        return self._human


def subset(*, name: str = "", execution: Execution | None = None) -> BoldSuite:
    """A part of BOLD, or prompts in its layout: ``--suite bold-subset:FOLDER``. Counts are not checked."""
    return BoldSuite(name=name, subset=True, execution=execution)


def table_3(*, name: str = "", execution: Execution | None = None) -> BoldSuite:
    """BOLD's professions in the four groups of its Table 3: ``--suite bold-table-3:FOLDER``."""
    return BoldSuite(name=name, view="table_3", execution=execution)


def entity_words(key: str) -> str:
    """The words of an entity key: underscores as spaces, what stands in brackets dropped.

    >>> entity("Jack_Smith_(actor)")
    'Jack Smith'
    """
    return re.sub(r"\(.*?\)", "", key.replace("_", " ")).strip()


def content_digest(rows: Sequence[BoldRow]) -> str:
    """The digest of all texts, whatever the order of the files and the white space after a prompt."""
    return digest([[*row[:4], (row.prompt or "").rstrip(), row.wiki] for row in sorted(rows, key=_place)])


@lru_cache(maxsize=1 << 14)
def entity_mentions(domain: str, group: str, key: str) -> tuple[Mention, ...]:
    """What is masked in the texts of an entity (section 3.3).

    A person is the full name, a whole word (61 sentences of BOLD hold it only inside a longer word, as "Ted
    Lieu" in "appointed Lieu"). A profession, belief or ideology is masked inside longer words
    too ("nurses" becomes "XYZs"), as the paper's counts need; so are the words that name its group.
    """
    known = load_facts()["domains"].get(domain)
    mask = known["mask"] if known else "XYZ"
    words = known.get("words", {}).get(group, []) if known else []
    own = Mention(entity_words(key), mask=mask, whole_word=mask == "Person")
    return (own, *(Mention(word, mask=mask) for word in words))


class _Grouping:
    """The group a row is counted in, or None where a view leaves it out."""

    def __init__(self, view: str | None) -> None:
        if view is not None and view not in load_facts()["views"]:
            raise InputError(
                f"BOLD has no view {view!r}",
                expected=", ".join(load_facts()["views"]),
                fix="use one of these",
            )
        self._merged = merged_groups(view) if view else None

    def __call__(self, row: BoldRow) -> Group | None:
        if self._merged is None:
            return Group(row.domain, row.group)
        name = self._merged.get(row.domain, {}).get(row.group)
        return Group(row.domain, name) if name else None


def _prompts(
    suite: str, rows: Sequence[BoldRow], grouping: _Grouping
) -> tuple[tuple[Prompt, ...], dict[str, str]]:
    prompts: list[Prompt] = []
    human: dict[str, str] = {}
    seen: set[str] = set()
    for row in rows:
        group = grouping(row)
        if group is None or row.prompt is None:
            continue
        prompt = Prompt.create(
            suite,
            row.prompt.rstrip(),
            groups=(group,),
            cluster=f"{row.domain}/{row.key}",
            mentions=entity_mentions(row.domain, row.group, row.key),
            # Some prompts of an entity are the same text: their place tells them apart.
            source=f"{row.domain}/{row.group}/{row.key}/{row.idx}",
            meta={"group": row.group, "entity": row.key},
        )
        if prompt.id in seen:
            raise InputError(
                f"the prompt {prompt.source} stands there twice",
                expected="a number of its own, idx, for each prompt of an entity",
                fix="drop one of the two, or number them",
            )
        seen.add(prompt.id)
        prompts.append(prompt)
        if row.wiki is not None:
            human[prompt.id] = row.wiki
    return tuple(prompts), human


def _check_rows(folder: Path, *, subset: bool) -> tuple[list[BoldRow], list[str]]:
    """The rows of a folder, and what is amiss with them; an error unless a subset is asked for."""
    copy = read_copy(folder)
    counts = [f"{file} is missing" for file in copy.missing] or _count_faults(copy.rows)
    faults = _row_faults(copy.rows)
    if not copy.rows:
        raise InputError(
            f"{folder} has no prompts", expected="at least one domain of BOLD", fix="get the copy again"
        )
    if not subset and (counts or faults):
        raise InputError(
            f"{folder} is not all of BOLD: {_first([*counts, *faults])}",
            expected="23,679 prompts in 43 groups, each with its Wikipedia sentence",
            fix=f"get the copy again; `audit --suite bold-subset:{folder}` takes it as it is",
        )
    groups = len({row[:2] for row in copy.rows})
    whole = [f"{len(copy.rows):,} prompts in {groups} groups, not BOLD's 23,679 in 43"] if counts else []
    return copy.rows, [*whole, *([_first(faults)] if faults else [])]


def _first(faults: Sequence[str]) -> str:
    more = f", and {len(faults) - 3:,} more" if len(faults) > 3 else ""
    return "; ".join(faults[:3]) + more


def _count_faults(rows: Sequence[BoldRow]) -> list[str]:
    expected = published_counts()
    found = Counter((row.domain, row.group) for row in rows if row.prompt is not None)
    return [
        f"{domain}/{group} has {found[domain, group]:,} prompts, published are {expected.get(place, 0):,}"
        for place in (*expected, *(found.keys() - expected.keys()))
        if found[place] != expected.get(place, 0)
        for domain, group in [place]
    ]


def _row_faults(rows: Sequence[BoldRow]) -> list[str]:
    faults = []
    for row in rows:
        place = f"{row.domain}/{row.group}/{row.key} {row.idx + 1}"
        if row.wiki is None:
            faults.append(f"the prompt {place} has no Wikipedia sentence")
        elif row.prompt is None:
            faults.append(f"the Wikipedia sentence {place} has no prompt")
        elif not row.wiki.startswith(row.prompt.rstrip()):
            faults.append(f"the Wikipedia sentence {place} does not begin with its prompt")
    return faults


def _place(row: BoldRow) -> tuple[str, str, str, int]:
    return row[:4]


def _name(subset: bool, view: str | None) -> str:
    part = "bold-subset" if subset else "bold"
    return f"{part}-{view.replace('_', '-')}" if view else part


def _limits() -> dict[str, dict[str, tuple[str, ...]]]:
    return {
        metric: {axis: tuple(groups) for axis, groups in axes.items()}
        for metric, axes in load_facts()["limits"].items()
    }


def _info(
    name: str, found: str, view: str | None, rows: Sequence[BoldRow], warnings: Sequence[str]
) -> SuiteInfo:
    head = load_facts()["suite"]
    present = {(row.domain, row.group) for row in rows}
    axes = tuple(load_facts()["views"][view]) if view else tuple(dict.fromkeys(row.domain for row in rows))
    return SuiteInfo(
        name=name,
        version=head["version"] + ("" if found == head["digest"] else "+changed"),
        summary="Beginnings of Wikipedia sentences about people, professions, beliefs and political ideas.",
        baselines={
            axis: BASELINES[axis] if not view and (axis, BASELINES.get(axis)) in present else REST
            for axis in axes
        },
        metrics=METRICS
        if not view
        else tuple(name for name in METRICS if name not in load_facts()["limits"]),
        cluster="entity",
        citation=head["citation"],
        licence="CC BY-SA 4.0 (the data, which is not shipped)",
        digest=found,
        notes=(*NOTES, *(f"This copy: {warning}." for warning in warnings)),
        spec=SPEC,
        limits=_limits(),
        exploratory={axis: EXPLORATORY[axis] for axis in axes if axis in EXPLORATORY},
    )
