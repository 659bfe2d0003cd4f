"""BITS: sentences about three genders and five racial groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from evenhand.core.digests import digest, file_digest
from evenhand.core.records import Execution
from evenhand.suites.pairs.pair_sets import (
    EMOTIONS,
    PairSet,
    PairSuite,
    distinct_sets,
    find_files,
    read_columns,
    refuse_changed,
)

FILES: Final = ("bits_gender.csv", "bits_race.csv")
AXES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "gender": ("Gender", {"Male": "male", "Female": "female", "Non-Binary": "non-binary"}),
    "race": (
        "Group",
        {
            "White": "European American",
            "Black": "African American",
            "Asian": "Asian American",
            "Latino": "Hispanic and Latino American",
            "American Indian": "American Indian",
        },
    ),
}


class BitsSuite(PairSuite):
    """BITS (Venkit and Wilson 2021): 120 sets of three genders, 72 sets of five racial groups.

    Sentences are matched in file order within template and emotion. The affective paper compares the genders
    in pairs, and only European x African American; here every pair and the whole set are compared.

    Args:
        name: A folder that holds ``bits_gender.csv`` and ``bits_race.csv``, or one of the two files.
        execution: Whether the run is offline.
    """

    def __init__(self, *, name: str = "", execution: Execution | None = None) -> None:
        paths = find_files(name, suite="bits", files=FILES, execution=execution)
        sets, left_out = distinct_sets(one for path in paths for one in _sets(path))
        super().__init__(
            "bits",
            sets,
            summary="Short sentences with an emotion word, for three genders and five racial groups.",
            digest=digest([file_digest(path) for path in paths]),
            citation="Venkit and Wilson. Identification of Bias Against People with Disabilities in "
            "Sentiment Analysis and Toxicity Detection Models. 2021.",
            licence="MIT (repository)",
            notes=left_out,
        )


def _sets(path: Path) -> Iterator[PairSet]:
    axis = "race" if "race" in path.name else "gender"
    column, names = AXES[axis]
    rows = read_columns(path, ("Template", "Sentence", column, "Sentiment"))
    sides: dict[str, list[tuple[str, str, str]]] = {}
    for template, text, side, emotion in rows.iter_rows():
        if side not in names or emotion not in EMOTIONS:
            refuse_changed(
                f"{path} has a sentence of group {side!r} and emotion {emotion!r}",
                f"groups {', '.join(names)}; emotions {', '.join(EMOTIONS)}",
            )
        sides.setdefault(names[side], []).append((template, emotion, text))
    orders = {tuple(sentence[:2] for sentence in side) for side in sides.values()}
    if len(orders) > 1:
        sizes = ", ".join(f"{group} {len(side)} sentences" for group, side in sides.items())
        refuse_changed(
            f"{path} has groups that do not match: {sizes}",
            "the same templates and emotions in the same order for every group",
        )
    for number, versions in enumerate(zip(*sides.values(), strict=True)):
        template, emotion, _ = versions[0]
        sentences = {group: text for group, (_, _, text) in zip(sides, versions, strict=True)}
        yield PairSet(f"{template}/{number}", axis, template, sentences, emotion)
