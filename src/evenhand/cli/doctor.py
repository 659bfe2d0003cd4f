"""``evenhand doctor``."""

from __future__ import annotations

from evenhand.cli.console import output


def command() -> None:
    """Say what this machine can run."""
    from rich.table import Table
    from rich.text import Text

    from evenhand.cli.installation import examine_installation

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for finding in examine_installation():
        table.add_row(finding.name, Text(finding.text))
    output.print(table)
