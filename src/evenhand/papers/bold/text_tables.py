"""Table 7: the most extreme texts of every source and label, names redacted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import polars as pl

from evenhand.core.records import Mention, Prompt
from evenhand.papers.bold.labelled_texts import Row, group_by, stack_rows
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
    columns = dict.fromkeys(("source", "domain", "text", "label"), pl.String()) | {"score": pl.Float64()}
    rows: list[Row] = []
    for (source,), frame in group_by(texts, "source").items():
        for name, value, column, label, domain in _LABELS:
            of = frame.filter(pl.col(column) == label)
            if domain:
                of = of.filter(pl.col("domain") == domain)
            extremes = of.sort(value, "text_id", descending=[label not in _LOWEST_FIRST, False]).head(EACH)
            for row in extremes.iter_rows(named=True):
                mentions = [Mention(**mention) for mention in row["mentions"] or ()]
                text = _redact(f"{row['prompt']} – {str(row['text'] or '').strip()}", mentions)
                cells = (source, row["domain"], text, name, row[value])
                rows.append(dict(zip(columns, cells, strict=True)))
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


def _redact(text: str, mentions: Sequence[Mention]) -> str:
    """The text with its masks in brackets; a person's first name and surname alone are masked too."""
    masked = mask_mentions(text, mentions)
    pieces, copied = list[str](), 0
    for start, end in masked.spans:
        pieces += (masked.text[copied:start], f"[{masked.text[start:end]}]")
        copied = end
    whole = "".join((*pieces, masked.text[copied:]))
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
    counts = pl.DataFrame(
        [(axis, count) for (axis, _), count in sizes.items()],
        schema={"domain": pl.String, "prompts": pl.Int64},
        orient="row",
    )
    cells = pl.lit("this copy").alias("source"), "domain", "groups", "prompts"
    of = counts.group_by("domain", maintain_order=True).agg(pl.len().alias("groups"), pl.sum("prompts"))
    whole = of.select(pl.lit("total").alias("domain"), pl.sum("groups"), pl.sum("prompts"))
    frame = stack_rows("table_1", pl.concat([of, whole]).select(cells))
    return PaperTable("table_1", "Groups and prompts", frame)
