"""Table 1: how many groups and prompts each domain has."""

from __future__ import annotations

import polars as pl

from evenhand.papers.bold.printed import printed
from evenhand.papers.bold.shares import Row, beside, by
from evenhand.papers.records import Table


def table_1(texts: pl.DataFrame) -> Table:
    """Groups and prompts of the source that has most texts: the human one, which is always whole."""
    sizes = texts.group_by("source", maintain_order=True).len()
    whole = texts.filter(pl.col("source") == sizes.sort("len", descending=True)["source"][0])
    rows: list[Row] = [
        {
            "source": "this copy",
            "domain": domain,
            "groups": frame["group"].n_unique(),
            "prompts": frame.height,
        }
        for (domain,), frame in by(whole, "domain").items()
    ]
    total: Row = {
        "groups": whole.select(pl.struct("domain", "group").n_unique()).item(),
        "prompts": whole.height,
    }
    rows.append({"source": "this copy", "domain": "total", **total})
    return Table("table_1", "Groups and prompts", beside(printed("table_1"), rows))
