"""CrowS-Pairs: written by people, and made to differ in the group alone by our rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError
from evenhand.core.records import Execution
from evenhand.suites.pairs.crows_rule import variants
from evenhand.suites.pairs.files import bare_rows, find, table
from evenhand.suites.pairs.sets import PairSet, PairSuite, distinct, suite_info

FILES: Final = ("csp_gender.csv", "csp_race.csv", "csp_religion.csv")
DOMAINS: Final[Mapping[str, str]] = {"gender": "gender", "race-color": "race", "religion": "religion"}
PRINTED: Final[Mapping[str, int]] = {"gender": 263, "race": 566, "religion": 104}
"""Sets after the affective paper's changes by hand (section 4.2.1), which were not published."""


class CrowsSuite(PairSuite):
    """CrowS-Pairs (Nangia et al. 2020), gender, race and religion: 262, 516 and 105 rows as released.

    Pairs male x female and European x African American, and sets of Christian, Muslim and Jewish. The rule is
    in ``crows_rule``; there is no ground truth. Cluster = the row, since each row is a template of its own.

    Args:
        name: A folder with ``csp_gender.csv``, ``csp_race.csv`` and ``csp_religion.csv``, the original
            ``crows_pairs_anonymized.csv``, or ``hub:ORG/NAME@REV/FILE``.
        execution: Whether the run is offline.
    """

    def __init__(self, *, name: str = "", execution: Execution | None = None) -> None:
        paths = find(name, suite="crows", files=FILES, execution=execution)
        rows = list(_rows(paths))
        made = [one for axis, number, pair in rows for one in _sets(axis, number, pair)]
        sets, left_out = distinct(made)
        info = suite_info(
            "crows",
            sets,
            summary="Stereotypes written by people, with the group exchanged and nothing else.",
            digest=digest([file_digest(path) for path in paths]),
            version="2",
            citation="Nangia et al. CrowS-Pairs: A Challenge Dataset for Measuring Social Biases in Masked "
            "Language Models. EMNLP 2020.",
            licence="CC BY-SA 4.0",
            notes=(*_notes(rows, made, sets), *left_out),
        )
        super().__init__(info, sets)


Row = tuple[str, int, tuple[str, str]]


def _rows(paths: list[Path]) -> Iterator[Row]:
    """Axis, number and the two sentences of every row of a domain we use."""
    for path in paths:
        if path.name.startswith("csp_"):
            found = [(row[0], row[1], row[-1]) for row in bare_rows(path) if len(row) >= 3]
        else:
            columns = ("sent_more", "sent_less", "bias_type")
            found = list(table(path, columns).select(columns).iter_rows())
        for number, (first, second, domain) in enumerate(found):
            if domain in DOMAINS:
                yield DOMAINS[domain], number, (first or "", second or "")
            elif path.name.startswith("csp_"):
                raise InputError(
                    f"{path} row {number + 1} is of the domain {domain!r}",
                    accepted=", ".join(DOMAINS),
                    todo="name the file as it was published, or bring it as pairs of your own",
                )


def _sets(axis: str, number: int, pair: tuple[str, str]) -> Iterator[PairSet]:
    for variant, sentences in enumerate(variants(*pair, axis)):
        yield PairSet(f"{number}/{variant}", axis, f"{axis}-{number}", sentences)


def _notes(rows: list[Row], made: list[PairSet], sets: list[PairSet]) -> Iterator[str]:
    for axis, printed in PRINTED.items():
        total = sum(one == axis for one, _, _ in rows)
        used = len({one.cluster for one in made if one.axis == axis})
        kept = sum(one.axis == axis for one in sets)
        yield (
            f"{axis}: {kept} {'set' if kept == 1 else 'sets'} from {used} of {total} rows by our rule; the "
            f"paper changed rows by hand and had {printed}. {_rows_name(total - used)} no group by a word "
            "the rule knows."
        )


def _rows_name(amount: int) -> str:
    return "1 row names" if amount == 1 else f"{amount} rows name"
