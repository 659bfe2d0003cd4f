"""BOLD's tables and figures: prompts, metric results by group, extreme texts, and people's labels.

Psycholinguistic norms are in percent or percentage points, all other shares between 0 and 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np
import polars as pl

from evenhand.annotate.agreement import ConsensusRule
from evenhand.annotate.label_set import read_label_set
from evenhand.annotate.validate import ALL, RESAMPLES, MetricValidation, aggregate_texts, map_labels
from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.protocols import Metric
from evenhand.core.records import Estimate, Execution, Mention, Prompt, Text
from evenhand.papers.replication_pages import Exhibit, estimate_cells, load_published
from evenhand.papers.svg_figures import (
    POLARITY,
    bars_and_stacks,
    draw_panels,
    horizontal_bars,
    open_canvas,
    to_svg,
)
from evenhand.stats.bootstrap import ResamplingOptions
from evenhand.stats.contrasts import clustered_gap
from evenhand.stats.intervals import clustered_mean, clustered_proportion
from evenhand.stats.label_scales import TOXICITY, LabelScale
from evenhand.store.table_files import read_table
from evenhand.suites.bold import merged_groups
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
"""Metric and output to the column of its labels."""
METRICS = tuple(dict.fromkeys(metric for metric, _ in OUTPUTS))
GENDERS = {"American_actors": "male", "American_actresses": "female"}
RACES = {
    "Hispanic_and_Latino_Americans": "Hispanic/Latino",
    "European_Americans": "European",
    "Asian_Americans": "Asian",
    "African_Americans": "African",
}
EACH = 2
"""Texts shown per source and label."""
_LABELS = (
    ("negative sentiment", "sentiment", "negative", None),
    ("negative regard", "regard", "negative", None),
    ("toxic", "toxicity", "toxic", None),
    ("male", "max", "male", "profession"),
    ("female", "max", "female", "profession"),
)
_LOWEST_FIRST = frozenset({"negative", "male"})

_AGGREGATIONS = {"gender_max": "max", "gender_wavg": "wavg", "unigram": "unigram"}
"""The paper's name of an aggregation, and the output of our metric."""
_SENTIMENTS = {label: ("sentiment", label) for label in POLARITY}
_REGARD_GROUPS = (
    GENDERS,
    {"African_Americans": "african_american", "European_Americans": "european_american"},
)
"""The groups that the paper's regard classifier supports."""
_SENTIMENT_FIGURES = {
    "figure_4": ("religious_ideology", "religious and spiritual belief"),
    "figure_5": ("political_ideology", "political ideology"),
}
"""Domain, and a name for its groups."""
_NORMS = {
    **{f"{name}_negative": (name, "negative") for name in ("valence", "arousal", "dominance")},
    **{f"{name}_positive": (name, "positive") for name in ("valence", "arousal", "dominance")},
    **{name: (name, "present") for name in ("joy", "anger", "sadness", "fear", "disgust")},
}
"""The paper's columns of norms, in its order, with the output and label of our metric each counts."""
_GAPS = {
    "table_4": ("Male minus female prompts", "gender", *GENDERS),
    "table_6": ("Christianity minus Islam", "religious_ideology", "christianity", "islam"),
}
"""Tables of differences between two groups: title, domain, group and baseline."""
_SHARES: Mapping[str, tuple[str, str, Mapping[str, str] | None]] = {
    "table_9": (" by race", "race", RACES),
    "table_10": (" by ideology", "political_ideology", None),
    "table_11": (", left-wing and right-wing", "political_ideology", None),
}
"""Tables of shares: title, domain, and the groups' names in the paper where they are not ours."""
_THRESHOLDS = (
    "The paper does not state the thresholds that turn a score into a class; ours are on the metric's card, "
    "and can be changed."
)
Row = dict[str, object]


def table_1(prompts: Iterable[Prompt]) -> Exhibit:
    """Groups and prompts of the loaded copy, next to those of the paper."""
    rows = [(group.axis, group.name) for prompt in prompts for group in prompt.groups]
    groups = pl.DataFrame(rows, schema={"domain": pl.String, "group": pl.String}, orient="row")
    parts = groups.group_by("domain", maintain_order=True)
    counts = parts.agg(groups=pl.col("group").n_unique(), prompts=pl.len())
    ours = pl.concat([counts, counts.sum().with_columns(domain=pl.lit("total"))])
    frame = stack_rows("table_1", ours.select(pl.lit("this copy").alias("source"), pl.all()))
    return Exhibit("table_1", "Groups and prompts", frame)


def table_3(texts: pl.DataFrame) -> Exhibit:
    """Texts classified as male and as female in four merged groups of professions, by three aggregations."""
    # Polars multiplies by 1 / 100; rounding restores the nearest number.
    cut = ((pl.col(f"{name}_ratio").mul(100).floor() / 100).round(2) for name in _AGGREGATIONS)
    frame = stack_rows("table_3", _count_genders(texts).with_columns(cut))
    notes = (
        "Male to female ratios are truncated, not rounded, to two digits, as in the paper; without a "
        "female text there is no ratio.",
        "Industrial & manufacturing includes sewing occupations: the paper's text omits them, but its "
        "total includes them.",
        "Ties of Gender-Max count as neutral; the paper does not state its rule.",
    )
    title = "Texts classified as male and as female, by profession"
    return Exhibit("table_3", title, frame.sort("group", maintain_order=True), notes)


def merge_professions(texts: pl.DataFrame) -> pl.DataFrame:
    """The texts about the professions of Table 3, in its four merged groups."""
    names = merged_groups("table_3")["profession"]
    known = texts.filter((pl.col("domain") == "profession") & pl.col("group").is_in(list(names)))
    return known.with_columns(pl.col("group").replace_strict(names, default=None))


def gender_ratios(texts: pl.DataFrame) -> dict[str, float | None]:
    """Section 6.2: the mean of the four Gender-Max ratios of each source; None if any is undefined."""
    counts = _count_genders(texts).group_by("source", maintain_order=True).agg("gender_max_ratio")
    return {
        source: mean(ratios) if len(ratios) == 4 and None not in ratios else None
        for source, ratios in counts.iter_rows()
    }


def _count_genders(texts: pl.DataFrame) -> pl.DataFrame:
    """Numbers of texts classified as male and as female, and their ratio, by merged profession and source."""
    cells: list[pl.Expr] = []
    for name, column in _AGGREGATIONS.items():
        male, female = ((pl.col(column) == label).sum().cast(pl.Int64) for label in ("male", "female"))
        ratio = pl.when(female > 0).then(male / female)
        cells += (male.alias(f"{name}_male"), female.alias(f"{name}_female"), ratio.alias(f"{name}_ratio"))
    counts = merge_professions(texts).group_by("group", "source", maintain_order=True)
    return counts.agg(pl.len().alias("total"), *cells).select("source", pl.all().exclude("source"))


def figure_2(texts: pl.DataFrame) -> Exhibit:
    """The share of male minus the share of female texts in each profession, by Gender-Max."""
    professions = texts.filter(domain="profession")
    frame = group_rows(professions, _difference).sort("group", maintain_order=True)
    bars = _bars(frame.with_columns(pl.col("group").str.replace_all("_", " ")), "difference")
    unit = "male share - female share"
    wide = draw_panels({unit: bars}, unit="share", width=12.0, columns=1)
    narrow = horizontal_bars(bars, unit=unit)
    notes = ("Lines are 95 % intervals; a profession's entity is one cluster.",)
    alt = "Bars above zero mark professions whose texts are classified as male more often than as female."
    title = "Male minus female texts in each profession, by Gender-Max"
    return Exhibit("figure_2", title, frame, notes, svg=wide, alt=alt, narrow=narrow)


def _difference(texts: pl.DataFrame) -> Row:
    # Male and female are shares of the same texts, so their gap is the mean of values +1, -1 and 0.
    known = texts.filter(pl.col("max").is_not_null())
    signed = (known["max"] == "male").cast(pl.Float64) - (known["max"] == "female").cast(pl.Float64)
    return estimate_cells("difference", clustered_mean(signed.to_numpy(), known["cluster"].to_numpy()))


def table_5(texts: pl.DataFrame) -> Exhibit:
    """The shares of texts with positive and negative regard, in the groups that the classifier supports."""
    rows: list[Row] = []
    for (source,), own in texts.group_by("source", maintain_order=True):
        row: Row = {"source": source}
        for names, label in product(_REGARD_GROUPS, ("positive", "negative")):
            for group, name in names.items():
                known = own.filter(group=group)
                row |= label_cells(known, {f"{label}_{name}": ("regard", label)})
        rows.append(row)
    frame = stack_rows("table_5", pl.DataFrame(rows, infer_schema_length=None))
    note = "Regard is from the embedded classifier; the paper trained its own BERT."
    title = "Shares of texts with positive and negative regard"
    return Exhibit("table_5", title, frame, notes=(note,), decimals=3)


def figure_3(texts: pl.DataFrame) -> Exhibit:
    """Sentiment and toxicity in the gender and the race domain."""
    frames: list[pl.DataFrame] = []
    panels: dict[str, pl.DataFrame] = {}
    label, domains = pl.format("{}, {}", "group", "source"), (("gender", GENDERS), ("race", RACES))
    for domain, names in domains:
        own = texts.filter(domain=domain)
        frames.append(group_rows(own, partial(label_cells, labels=_SENTIMENTS), names))
        panels[f"sentiment, {domain}"] = frames[-1].drop_nulls("negative").with_columns(label=label)
    for domain, names in domains:
        own = texts.filter(domain=domain)
        frames.append(group_rows(own, partial(label_cells, labels={"toxic": ("toxicity", "toxic")}), names))
        panels[f"share of toxic texts, {domain}"] = _bars(frames[-1], "toxic")
    frame = pl.concat(frames, how="diagonal_relaxed")
    wide, narrow = bars_and_stacks(panels), bars_and_stacks(panels, narrow=True)
    alt = "Shares of negative, neutral and positive texts, and of toxic texts, for each group and source."
    notes = ("Lines are 95 % intervals; an arrow marks one longer than the panel: see the numbers.",)
    title = "Sentiment and toxicity by gender and race"
    return Exhibit("figure_3", title, frame, notes, svg=wide, alt=alt, narrow=narrow)


def sentiment_figure(identifier: str, texts: pl.DataFrame) -> Exhibit:
    """Figure 4 or 5: sentiment of texts about beliefs or political ideologies, one panel per source."""
    domain, name = _SENTIMENT_FIGURES[identifier]
    own = texts.filter(domain=domain)
    frame = group_rows(own, partial(label_cells, labels=_SENTIMENTS))
    sources = own["source"].unique(maintain_order=True)
    shown = frame.drop_nulls("negative").with_columns(label="group")
    panels = {source: shown.filter(source=source) for source in sources}
    wide, narrow = bars_and_stacks(panels), bars_and_stacks(panels, narrow=True)
    alt = f"Shares of negative, neutral and positive texts for each {name}, one panel per source."
    return Exhibit(identifier, f"Sentiment by {name}", frame, svg=wide, alt=alt, narrow=narrow)


def _bars(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    ends = {end: f"{column}_{end}" for end in ("low", "high")}
    return frame.select(label="group", series="source", value=column, **ends)


def gap_table(identifier: str, texts: pl.DataFrame) -> Exhibit:
    """Table 4 or 6: the share of one group minus that of another in each class, in percentage points."""
    title, domain, first, second = _GAPS[identifier]
    rows: list[Row] = []
    for (source,), frame in texts.filter(domain=domain).group_by("source", maintain_order=True):
        a, b = (frame.filter(group=group) for group in (first, second))
        row: Row = {"source": source, "n": a.height, "n_baseline": b.height}
        for name, label in _NORMS.items():
            gap, _ = clustered_gap(*label_hits(a, *label), *label_hits(b, *label), is_share=True)
            row |= estimate_cells(name, gap, scale=100.0)
        rows.append(row)
    frame = stack_rows(identifier, pl.DataFrame(rows, infer_schema_length=None))
    title = f"{title}: texts in each class, percentage points"
    return Exhibit(identifier, title, frame, notes=(_THRESHOLDS,))


def share_table(identifier: str, texts: pl.DataFrame) -> Exhibit:
    """Table 9, 10 or 11: texts in each class by group, in percent."""
    title, domain, names = _SHARES[identifier]
    if names is None:
        names = {name: name for name in load_published("bold", identifier)["group"]}
    own = texts.filter((pl.col("domain") == domain) & pl.col("group").is_in(list(names)))
    ours = group_rows(own, partial(label_cells, labels=_NORMS, scale=100.0), names)
    parts = ours.group_by("group", maintain_order=True)
    means = parts.agg(pl.col("total").max(), pl.col(list(_NORMS)).mean())
    both = pl.concat([ours, means.with_columns(source=pl.lit("mean"))], how="diagonal_relaxed")
    order = pl.col("group").replace_strict(list(names.values()), list(range(len(names))), default=None)
    frame = stack_rows(identifier, both).sort(order, maintain_order=True)
    note = "The row `mean` is the unweighted mean over our sources; the paper's is over its six."
    return Exhibit(identifier, f"Texts in each class{title}, percent", frame, notes=(note, _THRESHOLDS))


def table_7(texts: pl.DataFrame) -> Exhibit:
    """The texts with the most extreme scores for each source and label; names are replaced by [Person]."""
    columns = dict.fromkeys(("source", "domain", "text", "label"), pl.String()) | {"score": pl.Float64()}
    rows: list[tuple[object, ...]] = []
    for (source,), frame in texts.group_by("source", maintain_order=True):
        for name, column, label, domain in _LABELS:
            own = frame.filter(pl.col(column) == label, pl.col("domain") == domain if domain else True)
            value, is_highest_first = f"{column}_value", label not in _LOWEST_FIRST
            for row in own.sort(value, "text_id", descending=[is_highest_first, False]).head(EACH).to_dicts():
                mentions = [Mention(**mention) for mention in row["mentions"] or ()]
                text = _redact(f"{row['prompt']} – {str(row['text'] or '').strip()}", mentions)
                rows.append((source, row["domain"], text, name, row[value]))
    notes = (
        "These texts may offend: they are evidence for the counts, not anyone's opinion.",
        "A dash marks the end of the prompt. The name of the person a text is about is redacted here; "
        "the models saw it.",
    )
    title = "The most extreme texts of every source and label"
    frame = pl.DataFrame(rows, schema=columns, orient="row")
    return Exhibit("table_7", title, frame, notes, is_offensive=True)


def _redact(text: str, mentions: Sequence[Mention]) -> str:
    """The text with bracketed masks; a person's first name or surname alone is masked too."""
    masked = mask_mentions(text, mentions)
    redacted = masked.text
    for start, end in reversed(masked.masks):
        redacted = f"{redacted[:start]}[{redacted[start:end]}]{redacted[end:]}"
    names = (mention.text for mention in mentions if mention.mask == "Person")
    words = (word.strip(".,") for name in names for word in name.split())
    # Initials and particles ("J.", "de") do not identify a person.
    parts = "|".join(re.escape(word) for word in words if len(word) > 2 and word[0].isupper())
    # Case-sensitive: "Will" is a name, "will" is not.
    return re.sub(rf"(?<![\w\[])(?:{parts})(?!\w)", "[Person]", redacted) if parts else redacted


def label_share(texts: pl.DataFrame, column: str, label: str) -> Estimate:
    """The share of texts with this label, among labelled texts."""
    hits, clusters = label_hits(texts, column, label)
    return clustered_proportion(hits, clusters, n_null=texts.height - hits.size)


def label_hits(texts: pl.DataFrame, column: str, label: str) -> tuple[np.ndarray, np.ndarray]:
    """1 for each text with the label, 0 for each with another, and their clusters."""
    known = texts.filter(pl.col(column).is_not_null())
    return (known[column] == label).to_numpy().astype(np.float64), known["cluster"].to_numpy()


def label_cells(texts: pl.DataFrame, labels: Mapping[str, tuple[str, str]], *, scale: float = 1.0) -> Row:
    """The cells of several shares; ``labels`` maps a name to the column and label to count."""
    row: Row = {}
    for name, label in labels.items():
        row |= estimate_cells(name, label_share(texts, *label), scale=scale)
    return row


def group_rows(
    texts: pl.DataFrame, cells: Callable[[pl.DataFrame], Row], names: Mapping[str, str] | None = None
) -> pl.DataFrame:
    """One row per group and source: number of texts and cells; ``names`` maps groups to display names."""
    # Keep the columns even without texts.
    parts = list(texts.group_by("group", "source", maintain_order=True)) or [(("", ""), texts)]
    rows = [
        {"source": source, "group": (names or {}).get(group, group), "total": frame.height, **cells(frame)}
        for (group, source), frame in parts
    ]
    return pl.DataFrame(rows, infer_schema_length=None).filter(pl.col("source") != "")


def stack_rows(table: str, ours: pl.DataFrame) -> pl.DataFrame:
    """The paper's rows followed by ours, in our columns."""
    both = pl.concat([load_published("bold", table), ours], how="diagonal_relaxed")
    return both.select(ours.columns)


COLUMNS = ("task", "text", "label")


class HumanTask(NamedTuple):
    """A question to annotators, and the metric outputs that answer it."""

    metric: str
    outputs: Mapping[str, str]
    """Output of the metric, and its name in Table 8."""
    scale: LabelScale
    """Labels, and the numbers the paper gives them for the rank correlation (section 6.3)."""


TASKS = {
    "gender": HumanTask(
        "gender_polarity",
        {"max": "gender_max", "wavg": "gender_wavg", "unigram": "unigram"},
        LabelScale("gender", {"male": -1.0, "neutral": 0.0, "female": 1.0}),
    ),
    "sentiment": HumanTask(
        "sentiment",
        {"compound": "sentiment"},
        LabelScale("sentiment", {"negative": -1.0, "neutral": 0.0, "positive": 1.0}),
    ),
    "toxicity": HumanTask(
        "toxicity", {"toxicity": "toxicity"}, LabelScale("toxicity", {"nontoxic": 0.0, "toxic": 1.0})
    ),
}


def build_exhibits(
    labels: pl.DataFrame, metrics: Sequence[str] = (), execution: Execution | None = None
) -> dict[str, Exhibit]:
    """Table 8 and Figure 6 from the table of `read_labels`, by the functions behind ``evenhand validate``.

    ``metrics`` replaces embedded metrics by others.
    """
    replacements = {spec.partition("=")[0]: spec for spec in metrics}
    rows: list[Row] = []
    scores: list[pl.DataFrame] = []
    for name, task in TASKS.items():
        task_labels = labels.filter(task=name)
        if task_labels.is_empty():
            continue
        tables = _validate_task(task, task_labels, replacements.get(task.metric, task.metric), execution)
        # Texts without a score are left out.
        judged, validation = tables["judged"].drop_nulls("value"), tables["validation"]
        for output, metric in task.outputs.items():
            texts = judged.filter(output=output)
            rows += _rows_of_metric(metric, task, texts, validation.filter(output=output))
        metric_names = pl.col("output").replace_strict(dict(task.outputs)).alias("metric")
        columns = (metric_names, pl.col("human").alias("label"), "predicted", "value")
        scores.append(judged.select(pl.lit(name).alias("task"), *columns))
    frame = stack_rows("table_8", pl.DataFrame(rows, infer_schema_length=None))
    frame = frame.sort("metric", maintain_order=True)
    note = "Human labels are the ground truth; percent, except for Spearman's correlation of the codes."
    table = Exhibit("table_8", "Automatic metrics compared with human labels", frame, notes=(note,))
    return {"table_8": table, "figure_6": _figure_6(pl.concat(scores))}


def read_labels(path: Path) -> pl.DataFrame:
    """The columns ``task``, ``text`` (masked) and ``label`` of a file or a study, checked."""
    if path.is_dir():
        return _read_study(path)
    table = read_table(path)
    if missing := [name for name in COLUMNS if name not in table.columns]:
        raise InputError(
            f"{path} has no column {', '.join(missing)}; it has {', '.join(table.columns)}",
            expected="task (gender, sentiment or toxicity), text (with names masked) and label",
            fix="rename its columns",
        )
    table = table.select(COLUMNS).drop_nulls()
    for task, label in table.select("task", "label").unique().sort("task", "label").iter_rows():
        if task not in TASKS or label not in TASKS[task].scale.places:
            raise InputError(
                f"{path} has the label {label!r} for the task {task!r}",
                expected="; ".join(f"{name}: {', '.join(own.scale.places)}" for name, own in TASKS.items()),
                fix="rename the labels",
            )
    if table.is_empty():
        raise InputError(
            f"{path} has no labels",
            expected="one row per labelled text",
            fix="check the file and its columns task, text and label",
        )
    return table


def _read_study(path: Path) -> pl.DataFrame:
    """The majority labels of those questions of a study that are in the paper."""
    collected = read_label_set(path)
    known = [question.name for question in collected.questions if question.name in TASKS]
    if not known:
        raise InputError(
            f"{path} has only the questions {', '.join(question.name for question in collected.questions)}",
            expected=", ".join(TASKS),
            fix="create a study with one of these tasks",
        )
    parts = []
    for name in known:
        texts = aggregate_texts(collected.select_questions([name]), ConsensusRule()).drop_nulls("human")
        scale = TOXICITY if name == "toxicity" else TASKS[name].scale
        labels = {label: scale.label_of(label) for label in texts["human"].unique()}
        label = pl.col("human").replace_strict(labels, return_dtype=pl.String).alias("label")
        parts.append(texts.select(pl.lit(name).alias("task"), "text", label).drop_nulls())
    return pl.concat(parts)


def _validate_task(
    task: HumanTask, labels: pl.DataFrame, spec: str, execution: Execution | None
) -> dict[str, pl.DataFrame]:
    """The validation tables of one task: human labels against the metric."""
    metric = registry.create_metric(spec, {}, execution)
    assert isinstance(metric, Metric)
    rows = [
        {"text_id": str(place), "output": output, **value._asdict()}
        for place, score in enumerate(metric.score([Text(text) for text in labels["text"]]))
        for output, value in score.items()
        if output in task.outputs
    ]
    texts = labels.with_row_index("item_id").select(
        pl.col("item_id").cast(pl.String), "text", human="label", share=1.0, cluster=pl.lit(None, pl.String)
    )
    mapped = map_labels(metric.info, task.scale, renamed={}, outputs=list(task.outputs))
    how: ResamplingOptions = {"rng": 0, "resamples": RESAMPLES, "level": 0.95}
    validation = MetricValidation(task.metric, task.scale, how, wants_cuts=False)
    return validation.tables(mapped, texts, pl.DataFrame(rows, infer_schema_length=None))


def _rows_of_metric(
    metric: str, task: HumanTask, texts: pl.DataFrame, measures: pl.DataFrame
) -> Iterator[Row]:
    """The rows of Table 8: over all texts, and for each label."""
    for label in (ALL, *task.scale.places):
        row: Row = {"source": "ours", "metric": metric, "label": "(weighted)" if label == ALL else label}
        known = measures.filter(label=label).rows_by_key("measure", named=True, unique=True)
        for measure in ("spearman", "accuracy", "precision", "recall", "f1"):
            scale = 1.0 if measure == "spearman" else 100.0
            for end, suffix in (("value", ""), ("low", "_low"), ("high", "_high")):
                value = known.get(measure, {}).get(end)
                row[f"{measure}{suffix}"] = None if value is None else scale * value
        yield {**row, "n": texts.height if label == ALL else int((texts["human"] == label).sum())}


def _figure_6(scored: pl.DataFrame) -> Exhibit:
    parts = scored.partition_by("metric", as_dict=True, maintain_order=True)
    titles = [str(metric).replace("_", " ") for (metric,) in parts]
    with open_canvas(titles, columns=len(parts), width=3.4, height=2.8) as (canvas, axes):
        for axis, part in zip(axes, parts.values(), strict=True):
            codes, shades = TASKS[part["task"][0]].scale.places, list(POLARITY.values())
            for label, colour in zip(codes, shades if len(codes) == 3 else shades[::-2], strict=True):
                values = part.filter(label=label)["value"].to_numpy()
                if values.size:
                    axis.hist(values, bins=20, histtype="step", density=True, color=colour, label=label)
            axis.legend(fontsize=7)
        svg = to_svg(canvas)
    alt = "Distributions of each metric's score, one line per human label."
    return Exhibit("figure_6", "Scores of the automatic metrics by human label", scored, svg=svg, alt=alt)
