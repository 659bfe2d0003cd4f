"""What the kernel counts into."""

from __future__ import annotations

from typing import NamedTuple

from evenhand.corpus.matcher import I64, U64

(
    MASK,
    UNIT,
    HITS,
    HAS_WORDS,
    AT_LINE_START,
    UNITS,
    WORDS,
    BAD_BYTES,
    FIRST_BAD,
    UNIT_START,
    UNIT_FIRST,
    EXTRA,
    DOCUMENTS,
    DOCUMENT_KEY,
    DOCUMENT_UNITS,
    DOCUMENT_BLOCK,
    DOCUMENT_FIRST,
    NOTED,
    ENDED,
    SIZE,
) = range(20)
"""Places in `Tally.state`."""


class Tally(NamedTuple):
    """What the kernel writes; it goes on from one stretch of bytes to the next."""

    state: I64
    histogram: I64
    """Units by the set of their categories; one cell where there are too many categories for that."""
    pairs: I64
    """Units by emotion and group; the last row is all units, the last column units with the emotion."""
    distinct: I64
    """Distinct target terms by emotion and group."""
    axes: I64
    """Units by emotion and axis named; the last row is all units, the last column units with any group."""
    hits: I64
    """The distinct terms of the unit."""
    term_seen: I64
    category_seen: I64
    priority: U64
    """The lowest priorities of each cell: a sample that does not depend on the order of work."""
    sample: I64
    """For each of them: stretch number, first and last byte."""
    worst: U64
    blocks: I64
    """Counts by block of documents; no rows where none are kept. `Layout` names the columns."""
    noted: U64
    """What documents add to blocks, until it is moved there: sets of categories, or columns."""
    ended: I64
    """Documents of `noted` that have ended: where, their units, print and block (-1: by the print)."""
