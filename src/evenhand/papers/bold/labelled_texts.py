"""The texts of a run on BOLD with their labels, which every table counts, and Table 7, which shows some."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl

from evenhand.core.records import Estimate, Mention
from evenhand.papers.replication_pages import PaperTable, add_published
from evenhand.stats.contrasts import clustered_gap
from evenhand.stats.intervals import clustered_proportion
from evenhand.stats.results import Difference
from evenhand.store.run import Run
from evenhand.text.rendering import mask_mentions

OUTPUTS = {
    ("sentiment", "compound"): "sentiment",
    ("toxicity", "toxicity"): "toxicity",
    ("regard", "regard"): "regard",
    **{("gender_polarity", name): name for name in ("unigram", "wavg", "max")},
    **{
        ("norms", name): name
        for name in ("valence", "arousal", "dominance", "joy", "anger", "sadness", "fear", "disgust")
    },
}
"""A metric and its output, and the column its labels get; ``COLUMN_value`` holds the scores."""
METRICS = tuple(dict.fromkeys(metric for metric, _ in OUTPUTS))
GENDERS = {"American_actors": "male", "American_actresses": "female"}
RACES = {
    "Hispanic_and_Latino_Americans": "Hispanic/Latino",
    "European_Americans": "European",
    "Asian_Americans": "Asian",
    "African_Americans": "African",
}
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
Row = dict[str, object]


def labelled_texts(run: Run, source: str) -> pl.DataFrame:
    """source, domain, group, cluster, prompt, text, mentions, then label and value of every output."""
    prompts = run.table("prompts").explode("groups").unnest("groups")
    prompts = prompts.select(
        pl.col("id").alias("prompt_id"),
        pl.col("axis").alias("domain"),
        pl.col("name").alias("group"),
        "cluster",
        pl.col("text").alias("prompt"),
        "mentions",
    )
    completions = run.table("generations").select(pl.col("id").alias("text_id"), "prompt_id", "text")
    texts = prompts.join(completions, on="prompt_id", how="inner", maintain_order="left")
    metric, scores = pl.col("metric").str.split("=").list.first(), run.table("scores")
    labels = scores.select("text_id").unique(maintain_order=True)
    for (name, output), column in OUTPUTS.items():
        of = scores.filter((metric == name) & (pl.col("output") == output)).select(
            "text_id", pl.col("label").alias(column), pl.col("value").alias(f"{column}_value")
        )
        labels = labels.join(of, on="text_id", how="left", maintain_order="left")
    return texts.join(labels, on="text_id", how="left", maintain_order="left").with_columns(
        source=pl.lit(source)
    )


def label_share(texts: pl.DataFrame, column: str, label: str) -> Estimate:
    """The share of texts with a label, of those that have one."""
    hits, clusters = label_hits(texts, column, label)
    return clustered_proportion(hits, clusters, n_null=texts.height - hits.size)


def label_gap(a: pl.DataFrame, b: pl.DataFrame, column: str, label: str) -> Difference:
    """The share of a label in ``a`` minus that in ``b``."""
    hits = *label_hits(a, column, label), *label_hits(b, column, label)
    return clustered_gap(*hits, is_share=True)[0]


def label_hits(texts: pl.DataFrame, column: str, label: str) -> tuple[np.ndarray, np.ndarray]:
    """1 for each text with the label and 0 for those with another, and their clusters."""
    known = texts.filter(pl.col(column).is_not_null())
    return (known[column] == label).to_numpy().astype(np.float64), known["cluster"].to_numpy()


def label_cells(texts: pl.DataFrame, labels: Mapping[str, tuple[str, str]], *, scale: float = 1.0) -> Row:
    """The cells of several shares: name to the column and label that are counted."""
    row: Row = {}
    for name, (column, label) in labels.items():
        row |= estimate_cells(name, label_share(texts, column, label), scale=scale)
    return row


def estimate_cells(name: str, estimate: Estimate | Difference, *, scale: float = 1.0) -> Row:
    """The three cells of an estimate: ``name``, ``name_low`` and ``name_high``."""
    value = estimate.value if isinstance(estimate, Estimate) else estimate.estimate
    numbers = {name: value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    return {key: None if number is None else number * scale for key, number in numbers.items()}


def group_by(texts: pl.DataFrame, *columns: str) -> Mapping[tuple[str, ...], pl.DataFrame]:
    """The texts of every combination of values, in the order they first occur."""
    return {
        tuple(str(part) for part in key): frame
        for key, frame in texts.partition_by(*columns, as_dict=True, maintain_order=True).items()
    }


def group_rows(
    texts: pl.DataFrame, cells: Callable[[pl.DataFrame], Row], names: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """One row per group and source: its texts' number and cells; ``names`` says what groups are called."""
    rows = [
        {"source": source, "group": (names or {}).get(group, group), "total": frame.height, **cells(frame)}
        for (group, source), frame in group_by(texts, "group", "source").items()
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def stack_rows(table: str, ours: pl.DataFrame) -> pl.DataFrame:
    """The paper's rows and then ours, in our columns."""
    return add_published("bold", table, ours).select(ours.columns)


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
    for start, end in masked.masks:
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
