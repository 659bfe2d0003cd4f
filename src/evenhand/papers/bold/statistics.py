"""Table 1: how many groups and prompts each domain has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from evenhand.core.records import Prompt
from evenhand.papers.bold.printed import printed
from evenhand.papers.bold.shares import Row, beside
from evenhand.papers.records import Table


def table_1(prompts: Iterable[Prompt]) -> Table:
    """Groups and prompts of the copy that was loaded, beside those of the paper."""
    sizes = Counter((group.axis, group.name) for prompt in prompts for group in prompt.groups)
    rows = [
        _row(domain, {place: count for place, count in sizes.items() if place[0] == domain})
        for domain in dict.fromkeys(axis for axis, _ in sizes)
    ]
    return Table("table_1", "Groups and prompts", beside(printed("table_1"), [*rows, _row("total", sizes)]))


def _row(domain: str, sizes: dict[tuple[str, str], int]) -> Row:
    return {"source": "this copy", "domain": domain, "groups": len(sizes), "prompts": sum(sizes.values())}
