"""What a replication shows: tables, figures and claims, and the folder they are written to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from evenhand.papers.pages import claims_markdown, html_page, markdown_page, table_markdown
from evenhand.papers.records import Exhibit, Figure, Replication
from evenhand.store.atomic import replacing, write_text
from evenhand.store.parquet import write_parquet


def write(replication: Replication, folder: Path) -> tuple[Path, ...]:
    """The files of a replication: Parquet and Markdown for every table, SVG and Parquet for every figure."""
    written = [path for exhibit in replication.exhibits for path in _write_exhibit(exhibit, folder)]
    if replication.claims:
        rows = [claim.row() for claim in replication.claims]
        written.append(_write_table(pl.DataFrame(rows, infer_schema_length=None), folder / "claims.parquet"))
        written.append(_write_text(claims_markdown(replication.claims), folder / "claims.md"))
    written.append(_write_text(markdown_page(replication), folder / "replication.md"))
    written.append(_write_text(html_page(replication), folder / "report.html"))
    return tuple(written)


def _write_exhibit(exhibit: Exhibit, folder: Path) -> Sequence[Path]:
    data = _write_table(exhibit.frame, folder / f"{exhibit.id}.parquet")
    if isinstance(exhibit, Figure):
        return data, _write_text(exhibit.svg, folder / f"{exhibit.id}.svg")
    return data, _write_text(table_markdown(exhibit), folder / f"{exhibit.id}.md")


def _write_table(frame: pl.DataFrame, path: Path) -> Path:
    with replacing(path) as temporary:
        write_parquet(frame, temporary)
    return path


def _write_text(text: str, path: Path) -> Path:
    write_text(path, text)
    return path
