"""Table 7: the most extreme texts of every source and label, names redacted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import polars as pl

from evenhand.core.records import Mention, Prompt
from evenhand.papers.bold.labelled_texts import Row, group_by, stack_rows
from evenhand.papers.bold.published_values import load_published
from evenhand.papers.replication_pages import PaperTable
from evenhand.text.rendering import mask_mentions

EACH = 2
"""Texts shown for a source and a label."""
_LABELS = (
    ("negative sentiment", "sentiment_value", "sentiment", "negative", None),
    ("negative regard", "regard_value", "regard", "negative", None),
    ("toxic", "toxicity_value", "toxicity", "toxic", None),
    ("male", "max_value", "max", "male", "profession"),
    ("female", "max_value", "max", "female", "profession"),
)
_LOWEST_FIRST = frozenset({"negative", "male"})


def table_7(texts: pl.DataFrame) -> PaperTable:
    """For each source the texts with the most extreme scores of a label; people's names read [Person]."""
    rows: list[Row] = []
    for (source,), frame in group_by(texts, "source").items():
        for name, value, column, label, domain in _LABELS:
            of = frame.filter(pl.col(column) == label)
            if domain:
                of = of.filter(pl.col("domain") == domain)
            chosen = of.sort(value, "text_id", descending=[label not in _LOWEST_FIRST, False]).head(EACH)
            rows += [_example(row, source, name, value) for row in chosen.iter_rows(named=True)]
    columns = {
        "source": pl.String,
        "domain": pl.String,
        "text": pl.String,
        "label": pl.String,
        "score": pl.Float64,
    }
    return PaperTable(
        "table_7",
        "The most extreme texts of every source and label",
        pl.DataFrame(rows, schema=columns),
        notes=(
            "These texts may offend: they are the evidence behind the counts, and nobody's opinion.",
            "A dash marks where the prompt ends. The name of the person a text is about is redacted here; "
            "the models read it.",
        ),
        is_offensive=True,
    )


def _example(row: dict[str, object], source: str, name: str, value: str) -> Row:
    mentions = [Mention(**mention) for mention in row["mentions"] or ()]  # type: ignore[attr-defined]
    whole = f"{row['prompt']} – {str(row['text'] or '').strip()}"
    text = _redact(whole, mentions)
    return {"source": source, "domain": row["domain"], "text": text, "label": name, "score": row[value]}


def _redact(text: str, mentions: Sequence[Mention]) -> str:
    """The text with its masks in brackets; a person's first name and surname alone are masked too."""
    masked = mask_mentions(text, mentions)
    pieces, done = list[str](), 0
    for start, end in masked.spans:
        pieces += (masked.text[done:start], f"[{masked.text[start:end]}]")
        done = end
    whole = "".join((*pieces, masked.text[done:]))
    parts = "|".join(map(re.escape, _name_parts(mentions)))
    # As they are spelled: "Will" is a name, "will" is none.
    return re.sub(rf"(?<![\w\[])(?:{parts})(?!\w)", "[Person]", whole) if parts else whole


def _name_parts(mentions: Sequence[Mention]) -> list[str]:
    names = (mention.text for mention in mentions if mention.mask == "Person")
    words = (word.strip(".,") for name in names for word in name.split())
    # Initials and particles ("J.", "de") name nobody.
    return [word for word in words if len(word) > 2 and word[0].isupper()]


def table_1(prompts: Iterable[Prompt]) -> PaperTable:
    """Groups and prompts of the copy that was loaded, beside those of the paper."""
    sizes = Counter((group.axis, group.name) for prompt in prompts for group in prompt.groups)
    rows = [
        _row(domain, {place: count for place, count in sizes.items() if place[0] == domain})
        for domain in dict.fromkeys(axis for axis, _ in sizes)
    ]
    return PaperTable(
        "table_1", "Groups and prompts", stack_rows(load_published("table_1"), [*rows, _row("total", sizes)])
    )


def _row(domain: str, sizes: dict[tuple[str, str], int]) -> Row:
    return {"source": "this copy", "domain": domain, "groups": len(sizes), "prompts": sum(sizes.values())}
