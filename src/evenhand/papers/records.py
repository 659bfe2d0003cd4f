"""The records of a replication: what stands in the paper, and what came out here."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import polars as pl

from evenhand.core.digests import Json


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the paper, in long form: the paper's columns in snake case, and ``source``."""

    id: str
    """``table_3``."""
    title: str
    frame: pl.DataFrame
    """Rows of ours and, where the paper prints them, rows with the source ``paper: NAME`` beside them."""
    notes: tuple[str, ...] = ()
    decimals: int = 2
    """Digits shown after the point; the Parquet file keeps all."""
    is_offensive: bool = False
    """Whether it shows texts that may offend: they are then behind a notice."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the paper, with the numbers it draws."""

    id: str
    title: str
    frame: pl.DataFrame
    svg: str
    alt: str
    """What the figure shows, in a sentence, for readers who do not see it."""
    notes: tuple[str, ...] = ()
    narrow: str = ""
    """The same for a narrow screen, as SVG; where there is none the wide one is scrolled."""


Exhibit = Table | Figure


@dataclass(frozen=True, slots=True)
class Claim:
    """One number of the paper's text, beside ours."""

    section: str
    claim: str
    """What is claimed, in our words."""
    paper: str
    """As printed."""
    ours: str | None
    """With its interval and n; None where it cannot be computed, with the reason in ``remark``."""
    source: str = ""
    """Which texts or model ours is from."""
    remark: str = ""

    def row(self) -> dict[str, Json]:
        """The claim as a row of ``claims.parquet``."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Replication:
    """All that one paper's replication shows."""

    paper: str
    title: str
    """What was replicated, on which sources, in a sentence."""
    citation: str
    exhibits: tuple[Exhibit, ...]
    claims: tuple[Claim, ...] = ()
    findings: tuple[str, ...] = ()
    """What came out, in a few sentences; shown first."""
    remarks: tuple[str, ...] = ()
    """What a reader must know before quoting a number: the subset, what differs from the paper, and why."""
    sources: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
