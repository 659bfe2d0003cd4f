"""The run in the terminal: the verdict, and the largest gaps in a table that fits 80 columns."""

from __future__ import annotations

from collections.abc import Mapping

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.report.distances import distances_verdict
from evenhand.report.findings import Findings, find
from evenhand.report.gaps import WORDS, Gap, Standing
from evenhand.report.wording import name, plain_minus
from evenhand.store.run import Run

_SIGNS: Mapping[Standing, str] = {"supported": "*", "unclear": "?", "small": "~", "missing": "-"}


def summary(run: Run, *, limit: int = 8) -> RenderableType:
    """The verdict and the largest gaps: supported ones first, then the largest of the others.

    Names go in as plain text, so that none can be taken for markup; no meaning hangs on a colour.
    """
    found = find(run)
    shown = _shown(found, limit)
    parts: list[RenderableType] = [Text(plain_minus(found.verdict), style="bold")]
    if leans := distances_verdict(run):
        parts += [Text(plain_minus(leans))]
    if shown:
        parts += [Text(""), _table(shown), Text(_legend(shown, found), style="dim")]
    return Group(*parts)


def _shown(found: Findings, limit: int) -> list[Gap]:
    order = (*found.largest, *found.standing("unclear"), *found.standing("small"))
    return list(order[:limit])


def _table(gaps: list[Gap]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    table.add_column("Group against baseline", ratio=3, overflow="fold")
    table.add_column("Measure", ratio=2, overflow="fold")
    table.add_column("Gap", justify="right", no_wrap=True)
    table.add_column(f"{gaps[0].level} interval", justify="right", no_wrap=True)
    table.add_column("Adj. p", justify="right", no_wrap=True)
    for gap in gaps:
        table.add_row(*(Text(plain_minus(cell)) for cell in _cells(gap)))
    return table


def _cells(gap: Gap) -> tuple[str, ...]:
    row = gap.comparison
    return (
        _SIGNS[gap.standing],
        # The axis is not repeated in a narrow column: the reserved baselines stay as they are spelled.
        f"{gap.group} vs {name(gap.baseline_group)}",
        gap.measure.full_title,
        "" if row.estimate is None else gap.measure.signed_gap(row.estimate),
        gap.signed_interval,
        gap.p,
    )


def _legend(shown: list[Gap], found: Findings) -> str:
    used = [f"{_SIGNS[standing]} {word}" for standing, word in WORDS.items() if _stands(shown, standing)]
    shares = ["shares in points"] if any(gap.measure.kind == "share" for gap in shown) else []
    size = max(gap.comparison.family_size for gap in shown)
    shares.append(f"p adjusted over {size:,}, intervals before correction")
    left = len(found.judged) - len(shown)
    more = [f"{left:,} more in the report"] if left else []
    return "; ".join([*used, *shares, *more])


def _stands(gaps: list[Gap], standing: Standing) -> bool:
    return any(gap.standing == standing for gap in gaps)
