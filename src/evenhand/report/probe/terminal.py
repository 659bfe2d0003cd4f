"""A probe run in the terminal: the verdict and the matrix, within 80 columns."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.report.probe.page import Matrix, page
from evenhand.store.run import Run


def probe_summary(run: Run) -> RenderableType:
    """The verdict, the ACS of every pair and emotion, and how many classes change."""
    content = page(run)
    parts: list[RenderableType] = [Text(content.verdict, style="bold"), Text("")]
    parts += [_matrix(matrix) for matrix in content.matrices]
    parts.append(
        Text(
            f"ACS {content.view}: above 0, the second group of the pair is higher; below 0, the first. "
            "* clear of chance after correction; ! demographic parity below 0.80",
            style="dim",
        )
    )
    parts.append(Text(f"{content.flip_sentence}."))
    return Group(*parts)


def _matrix(matrix: Matrix) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        title=Text(f"{matrix.corpus}: {matrix.axis}"),
        title_justify="left",
        pad_edge=False,
        show_edge=False,
    )
    table.add_column("pair", overflow="fold")
    for emotion in matrix.emotions:
        table.add_column(Text(emotion), justify="right", no_wrap=True)
    for pair, cells in matrix.lines:
        marks = [
            f"{cell.shown('acs', signed=True) or '-'}{'*' if cell.standing == 'supported' else ' '}"
            f"{'!' if cell.is_below_parity else ' '}"
            for cell in cells
        ]
        table.add_row(Text(pair), *marks)
    return table
