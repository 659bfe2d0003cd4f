"""Human labels from a study or a file in one schema: a row for each item, person and question.

Files are our own exports, other tables with one row per rating or one column per annotator, and the JSON of
Label Studio and Argilla. Case and white space of labels are ignored; rows that cannot be a rating are left
out and counted.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import polars as pl

from evenhand.annotate.options import RatingColumns, RatingSource
from evenhand.annotate.study import STUDY, Study, read_study
from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError
from evenhand.core.options import split_names
from evenhand.core.registry import require_library
from evenhand.stats.label_scales import LabelScale, RatingCodes, find_scale, normalise_label
from evenhand.store.table_files import read_table, require_columns, unguard_table

ROWS: Final[Mapping[str, pl.DataType]] = {
    **dict.fromkeys(("item_id", "text", "annotator", "question", "label"), pl.String()),
    **{"code": pl.Float64(), "is_check": pl.Boolean()},
    **dict.fromkeys(("at", "prompt", "group", "method", "text_id", "pair", "cluster"), pl.String()),
}
"""The columns of an export. ``code`` is a label's place on its scale, or null."""
AGGREGATED: Final = "(settled)"
"""The annotator of a file with one label per text and no column of annotators."""
UNORDERED: Final = ("mixed", "opposing", "sarcasm", "nonsense", "other")
"""Categories without a place on the scale; a metric with the label ``other`` covers some of them."""
KEY: Final = ("item_id", "annotator", "question")
_NEEDED: Final = {
    "item_id": "no item",
    "text": "empty text",
    "annotator": "no annotator",
    "label": "no label",
}
"""The required columns of a rating, and the reason given for rows without one."""
_QUESTIONS: Final = ("sentiment", "regard", "toxicity", "gender", "biased", "readable", "coherent")
"""The questions of the shipped tasks: columns of these names hold labels."""


@dataclass(frozen=True, slots=True)
class LabelSet:
    """Human labels from one source."""

    name: str
    source: Path
    rows: pl.DataFrame
    """The columns of ``ROWS``."""
    questions: tuple[LabelScale, ...]
    """The scales of the questions, each with the name of its question."""
    digest: str
    notes: tuple[str, ...] = ()
    """Counts of what was left out or normalised."""
    checks: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Attention checks passed and shown, by annotator."""

    def of(self, question: str) -> pl.DataFrame:
        """The ratings of one question without attention checks."""
        return self.rows.filter((pl.col("question") == question) & ~pl.col("is_check"))

    def ratings(self, question: LabelScale) -> RatingCodes:
        """The ratings of one question as codes."""
        return encode_ratings(self.of(question.name), question.labels)

    def texts(self) -> dict[str, str]:
        """Texts by item."""
        return dict(self.rows.select("item_id", "text").unique(maintain_order=True).iter_rows())

    def select_questions(self, names: Sequence[str] | None) -> LabelSet:
        """The labels of these questions only."""
        if not names:
            return self
        known = {question.name: question for question in self.questions}
        problem = f"{self.source} has no answers to the question"
        require_known(names, known, problem, fix="name one of these with --question")
        rows = self.rows.filter(pl.col("question").is_in(list(names)))
        return replace(self, questions=tuple(known[name] for name in names), rows=rows)


def encode_ratings(rows: pl.DataFrame, scale: Sequence[str] | None = None) -> RatingCodes:
    """The ratings of a table as codes; ``scale`` is the order of the labels (default: by name)."""
    columns = (rows[name].to_list() for name in ("item_id", "annotator", "label"))
    return RatingCodes.from_rows(*columns, scale=scale)


def require_known(names: Iterable[str], known: Collection[str], problem: str, *, fix: str) -> None:
    """Raise an error for the first unknown name, which is appended to ``problem``."""
    for name in names:
        if name not in known:
            raise InputError(f"{problem} {name!r}", expected=", ".join(known), fix=fix)


def read_labels(study: Study, url: str | None = None) -> pl.DataFrame:
    """The latest answer of each annotator, item and question, with the item and the label's code.

    Withdrawn answers are left out. ``url`` names a database, else ``EVENHAND_DATABASE``, else
    the study's own ``labels.db``; a study without answers gives an empty table.
    """
    # Imported here: files can be read without the extra `annotate`.
    require_library("sqlalchemy", "an annotation study")
    from evenhand.annotate.database import VARIABLE, Database, LatestAnswer

    rows: list[LatestAnswer] = []
    if url or os.environ.get(VARIABLE) or study.labels_file.is_file():
        with Database(study, url) as db:
            rows = db.latest_answers()
    columns = {**dict.fromkeys(LatestAnswer._fields, pl.String()), "at": pl.Datetime("us")}
    table = pl.DataFrame(rows, schema=columns, orient="row")
    listed = [(one.name, label, code) for one in study.questions for label, code in one.codes.items()]
    kinds = {"question": pl.String, "label": pl.String, "code": pl.Float64}
    codes = pl.DataFrame(listed, schema=kinds, orient="row")
    unknown = table.join(codes, on=["question", "label"], how="anti")
    if unknown.height:
        # ``study.toml`` no longer has these labels; do not drop the answers silently.
        question, label = unknown.select("question", "label").row(0)
        raise InputError(
            f"{unknown.height:,} answers do not fit {STUDY}, such as {question} = {label!r}",
            expected="the questions and labels that people saw",
            fix=f"restore them in {study.folder / STUDY}; wording may change, names and labels may not",
        )
    joined = table.join(study.items(), on="item_id").join(codes, on=["question", "label"])
    return joined.sort("item_id", "question", "annotator")


def read_study_labels(study: Study, database: str | None = None) -> LabelSet:
    """The answers of a study so far, with their texts; an error if there are none."""
    labels = read_labels(study, database)
    if labels.is_empty():
        raise InputError(
            f"nobody has answered the study {study.folder} yet",
            expected="a study with answers",
            fix="serve it with `evenhand annotate serve`, or name its database with --database",
        )
    at = pl.col("at").dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    rows = labels.with_columns(at, cluster="prompt").select(
        pl.col(name).cast(kind) for name, kind in ROWS.items()
    )
    answered = set(labels["question"])
    return LabelSet(
        name=study.folder.resolve().name,
        source=study.folder,
        rows=rows,
        questions=tuple(
            LabelScale(one.name, one.codes).sort() for one in study.questions if one.name in answered
        ),
        digest=digest(rows.select(*KEY, "label").sort(KEY).write_csv()),
        checks=_count_checks(labels),
    )


def _count_checks(rows: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """The attention checks passed and shown, by annotator."""
    right = pl.col("expected").str.json_path_match(pl.format("$.{}", "question"))
    checks = rows.filter("is_check").with_columns(right=right).drop_nulls("right")
    passed = (pl.col("label") == pl.col("right")).sum()
    counts = checks.group_by("annotator", maintain_order=True).agg(passed, pl.len())
    return {annotator: (passed, shown) for annotator, passed, shown in counts.iter_rows()}


def read_label_set(
    source: Path | str, options: RatingSource | None = None, *, cluster: str | None = None
) -> LabelSet:
    """Read human labels from a study folder or a file; ``cluster`` is a file's column of clusters."""
    path, given = Path(source), options or {}
    if path.is_dir() or path.name == STUDY:
        study = read_study(path if path.is_dir() else path.parent)
        labels = read_study_labels(study, given.get("database"))
    else:
        labels = read_ratings(_read_rating_table(path), path, given, cluster=cluster)
    return labels.select_questions(split_names(given.get("question")))


def _read_rating_table(path: Path) -> pl.DataFrame:
    ending = path.name.lower().removesuffix(".gz")
    if ending.endswith(".json"):
        from evenhand.annotate.label_formats import read_json

        return read_json(path)
    table = read_table(path)
    # Our own exports escape spreadsheet formulas.
    is_export = ending.endswith((".csv", ".tsv")) and set(KEY) <= set(table.columns)
    return unguard_table(table) if is_export else table


def read_ratings(
    table: pl.DataFrame,
    path: Path,
    columns: RatingColumns,
    *,
    cluster: str | None = None,
    scale: LabelScale | None = None,
) -> LabelSet:
    """Read ratings from a table: labels on one scale, one text per item, one rating per person and item.

    Violations raise an error; rows without a text, a person or a label are left out and counted. Texts with
    the same value in the column ``cluster`` form a cluster. ``scale`` is the only one that is accepted.
    """
    notes: list[str] = []
    table = _one_rating_per_row(table, path, columns, cluster, notes)
    table = _drop_incomplete(table, path, notes)
    table, questions = _with_scales(table, path, split_names(columns.get("scale")) or (), scale, notes)
    table = _drop_repeated(table, path, notes)
    texts = table.select("item_id", "text").unique(maintain_order=True)
    if (repeated := texts.filter(pl.col("item_id").is_duplicated())).height:
        raise InputError(
            f"{path}: the item {repeated['item_id'][0]!r} has two texts",
            expected="one text per item",
            fix="name the column that distinguishes texts with --item",
        )
    is_check = pl.col("is_check").cast(pl.String) if "is_check" in table.columns else pl.lit("")
    rows = table.with_columns(is_check=is_check.eq_missing("true")).select(
        pl.col(name).cast(kind) if name in (*table.columns, "is_check") else pl.lit(None, kind).alias(name)
        for name, kind in ROWS.items()
    )
    stem = Path(path.name.removesuffix(".gz")).stem
    return LabelSet(stem, path, rows, questions, file_digest(path), tuple(notes))


def _one_rating_per_row(
    table: pl.DataFrame, path: Path, columns: RatingColumns, cluster: str | None, notes: list[str]
) -> pl.DataFrame:
    """The table with the columns item_id, text, annotator, question and label."""

    def usual(*names: str) -> str | None:
        return next((name for name in names if name in table.columns), None)

    text = columns.get("text") or usual("text", "sentence", "content") or "text"
    item = columns.get("item") or usual("item_id", "id")
    annotator = columns.get("annotator") or usual("annotator", "worker", "user_id", "participant")
    labels = split_names(columns.get("label")) or _label_columns(table, path)
    named = {"--text": text, "--item": item, "--annotator": annotator, "--cluster": cluster}
    require_columns(table.columns, {**named, **{f"--label {name}": name for name in labels}}, path)
    base = table.with_columns(text=pl.col(text), item_id=pl.col(item or text))
    if cluster:
        base = base.with_columns(cluster=pl.col(cluster))
    is_wide = annotator is None and len(labels) > 1 and not set(labels) <= set(_QUESTIONS)
    if is_wide:
        notes.append(f"the columns {', '.join(labels)} are read as annotators")
    else:
        base = base.with_columns(annotator=pl.col(annotator) if annotator else pl.lit(AGGREGATED))
    question = usual("question", "task")
    if tuple(labels) == ("label",) and question:
        return base.with_columns(question=pl.col(question).fill_null("label"))
    if len(labels) == 1:
        return base.with_columns(label=pl.col(labels[0]), question=pl.lit(labels[0]))
    index = [name for name in ROWS if name in base.columns and name not in (*labels, "label", "question")]
    variable = "annotator" if is_wide else "question"
    long = base.unpivot(labels, index=index, variable_name=variable, value_name="label")
    return long.with_columns(question=pl.lit("label")) if is_wide else long


def _label_columns(table: pl.DataFrame, path: Path) -> tuple[str, ...]:
    if "label" in table.columns:
        return ("label",)
    if named := tuple(name for name in _QUESTIONS if name in table.columns):
        return named
    raise InputError(
        f"{path} has no column of labels; it has {', '.join(table.columns)}",
        expected=f"label, or {', '.join(_QUESTIONS)}",
        fix="name the column with --label; repeat it for one column per annotator",
    )


def _drop_incomplete(table: pl.DataFrame, path: Path, notes: list[str]) -> pl.DataFrame:
    """Drop incomplete rows; count them by what they lack."""
    plain = pl.col(*_NEEDED).str.strip_chars()
    table = table.with_columns(pl.when(plain == "").then(None).otherwise(plain).name.keep())
    for column, reason in _NEEDED.items():
        if missing := table[column].null_count():
            notes.append(f"{missing:,} {'rating' if missing == 1 else 'ratings'} left out: {reason}")
            table = table.filter(pl.col(column).is_not_null())
    if table.is_empty():
        raise InputError(
            f"{path} has no rating: {'; '.join(notes) or 'no rows'}",
            expected="rows with a text, an annotator and a label",
            fix="check the columns named with --item, --text, --annotator and --label",
        )
    return table


def _with_scales(
    table: pl.DataFrame, path: Path, order: Sequence[str], fixed: LabelScale | None, notes: list[str]
) -> tuple[pl.DataFrame, tuple[LabelScale, ...]]:
    """Add labels in the spelling of their scale, and codes; return the scale of every question too."""
    option = fixed
    if order:
        option = LabelScale("", {normalise_label(label): float(at) for at, label in enumerate(order)})
    questions, parts = [], []
    for (key,), part in table.partition_by("question", as_dict=True, maintain_order=True).items():
        name, plain = str(key), {label: normalise_label(label) for label in part["label"].unique().to_list()}
        scale = option or find_scale(set(plain.values()))
        spelled = {raw: scale.label_of(label) for raw, label in plain.items()}
        if unknown := [raw for raw, label in spelled.items() if label is None]:
            raise InputError(
                f"{path} has the label {unknown[0]!r} for {name!r}",
                expected=", ".join(scale.labels),
                fix="correct it, or name another column with --label"
                if fixed
                else "correct it, or name every label, lowest first, with --scale",
            )
        label = pl.col("label").replace_strict(spelled, return_dtype=pl.String)
        respelt = part.filter(pl.col("label") != label)["label"]
        if respelt.len():
            notes.append(
                f"{respelt.len()} labels of {name} differ from the scale in case, white space or spelling: "
                f"{respelt[0]!r} is read as {spelled[respelt[0]]!r}"
            )
        part = part.with_columns(label)
        if "code" in part.columns:
            # The file's own code takes precedence: an export keeps the codes of its study.
            part = part.with_columns(pl.col("code").cast(pl.Float64, strict=False))
            codes = dict(part.select("label", "code").unique().sort("label").iter_rows())
            scale = replace(scale, places=codes).sort()
        else:
            code = pl.col("label").replace_strict(dict(scale.places), return_dtype=pl.Float64)
            part = part.with_columns(code=code)
        used = set(part["label"])
        places = {one: place for one, place in scale.places.items() if option or one in used}
        questions.append(replace(scale, name=name, places=places))
        parts.append(part)
    return pl.concat(parts, how="diagonal_relaxed"), tuple(questions)


def _drop_repeated(table: pl.DataFrame, path: Path, notes: list[str]) -> pl.DataFrame:
    """Keep one rating per person, item and question: identical repeats count once, others are an error.

    If the table has times, the last rating counts.
    """
    if "at" in table.columns and not table["at"].null_count():
        single = table.sort("at", maintain_order=True).unique(KEY, keep="last", maintain_order=True)
        what = "earlier ratings of the same text and person"
    else:
        single = table.unique([*KEY, "label"], keep="first", maintain_order=True)
        what = "identical repeated ratings"
    doubled = single.filter(pl.struct(KEY).is_duplicated())
    if doubled.height:
        item, person, question, label = doubled.select(*KEY, "label").row(0)
        again = doubled.filter(item_id=item, annotator=person, question=question)["label"][1]
        who = "the text has" if person == AGGREGATED else f"{person!r} gives"
        raise InputError(
            f"{path}: {who} two labels for {question} of {item[:60]!r}: {label!r} and {again!r}",
            expected="one rating per text and annotator, or a column `at` with the times of the ratings",
            fix="remove the earlier ones, or distinguish texts with --item and people with --annotator",
        )
    if extra := table.height - single.height:
        notes.append(f"{extra} {what} left out")
    return single
