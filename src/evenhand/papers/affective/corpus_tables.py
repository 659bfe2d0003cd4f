"""Tables 2 to 4: emotions in the available training corpora; Table 5: the fine-tuning data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import polars as pl

from evenhand.audits.compare import normalise_group
from evenhand.core.errors import InputError
from evenhand.corpus.scan import CorpusScan, prepare
from evenhand.papers.affective.prediction_tables import GROUPS
from evenhand.papers.replication_pages import Exhibit, build_table, load_published
from evenhand.store.run import Run

NAMES: Final = {
    "WikiEn": ("wikien", "wiki_en", "enwiki"),
    "BookCorpus": ("bookcorpus", "books"),
    "WebText-250k": ("webtext",),
    "C4-Val": ("c4-val", "c4_val", "c4val", "c4"),
}
"""The paper's corpora, each with possible prefixes of a file or folder name."""
SEMEVAL: Final = "SemEval-2018"
_SEMEVAL_FILES: Final = ("semeval_train.csv", "semeval_val.csv", "semeval_test.csv")


@dataclass(frozen=True, slots=True)
class Corpora:
    """The corpora in a data folder, and the terms to count in them."""

    paths: dict[str, list[Path]]
    terms: Path | None

    def scans(self, folder: Path) -> list[CorpusScan]:
        """Scans with the paper's rule: one of SemEval, whose unit is the tweet, and one of all others.

        The others are counted by sentence in any format: each row of a table is a document.
        """
        tweets = [f"{SEMEVAL}={path}" for path in self.paths.get(SEMEVAL, ())]
        others = [f"{name}={path}" for name, paths in self.paths.items() for path in paths if name != SEMEVAL]
        scan = partial(prepare, preset="paper", terms=self.terms)
        return [
            *([scan(others, unit="sentence", out=folder / "corpora")] if others else ()),
            *([scan(tweets, unit="document", out=folder / "semeval")] if tweets else ()),
        ]


def find_corpora(data: Path) -> Corpora:
    """Find the corpora of a data folder; each is optional."""
    entries = sorted([*data.glob("*"), *data.glob("*/*")])
    paths = {
        name: [path]
        for name, starts in NAMES.items()
        if (path := next((entry for entry in entries if entry.name.lower().startswith(starts)), None))
    }
    semeval = [entry for name in _SEMEVAL_FILES for entry in entries if entry.name == name]
    if len(semeval) == len(_SEMEVAL_FILES):
        paths[SEMEVAL] = semeval
    return Corpora(paths, next((entry for entry in entries if entry.name == "terms.json"), None))


def table_2(runs: Sequence[Run]) -> Exhibit:
    """Size and sentences of each corpus."""
    rows = [
        {"source": "ours", "corpus": name, "size": _bytes(total["bytes"]), "sentences": total["units"]}
        for run in runs
        for name, total in run.manifest["corpora"].items()
    ]
    ours = pl.DataFrame(rows, schema={"source": str, "corpus": str, "size": str, "sentences": pl.Int64})
    return build_table(
        "affective",
        "table_2",
        "Training corpora",
        ours,
        "Sentences come from our splitter; in SemEval each tweet is one. The paper's Wikipedia is from June "
        "2022, its WebText and C4 are samples; other copies give other counts.",
    )


def table_3(runs: Sequence[Run]) -> Exhibit:
    """The number of occurrences of each emotion."""
    table = pl.concat(run.table("occurrence") for run in runs)
    wide = table.pivot("emotion", index=["corpus", "total", "standard_deviation"], values="count")
    wide = wide.rename({"total": "total_affective_words"}).with_columns(source=pl.lit("ours"))
    ours = wide.select(load_published("affective", "table_3").columns)
    return build_table(
        "affective",
        "table_3",
        "Occurrence of emotions in the corpora",
        ours,
        "SemEval counts use the files as released, whose test part has UTF-7 residue; on repaired "
        "text the counts differ.",
    )


def table_4(runs: Sequence[Run]) -> Exhibit:
    """The share of each emotion in a group's co-occurrences."""
    printed = load_published("affective", "table_4").columns[3:]
    columns = dict(zip(map(normalise_group, GROUPS), printed, strict=True))
    counts = pl.concat(run.table("cooccurrence") for run in runs)
    names = {group: columns.get(normalise_group(group)) for group in counts["group"].unique()}
    known = counts.with_columns(column=pl.col("group").replace_strict(names, return_dtype=pl.String))
    wide = known.drop_nulls("column").pivot("column", index=["corpus", "emotion"], values="percent")
    ours = wide.with_columns(source=pl.lit("ours"))
    return build_table(
        "affective",
        "table_4",
        "Co-occurrence of emotions with groups, in percent per group",
        ours,
        "Counts use the rule `distinct`, which reproduces the paper's SemEval row; Algorithm 1 as printed "
        "(`flag`) does not.",
        "Four printed SemEval numbers are misprints, since with them their columns do not sum to 100: male "
        "sadness 17.75 (18.75), female fear 26.06 (25.56), Christian joy 27.02 (26.32), Muslim anger "
        "15.06 (14.86).",
        "Where a group never occurs, the paper prints 0; ours is missing.",
    )


BUILDERS: Final = {"table_2": table_2, "table_3": table_3, "table_4": table_4}


def table_5(data: Path) -> Exhibit:
    """The fine-tuning data, with the maximum single-label accuracy."""
    from evenhand.store.table_files import read_table
    from evenhand.training.semeval import EMOTIONS, prepare_tables
    from evenhand.training.test_measures import accuracy_ceiling

    try:
        tables = prepare_tables(data)
    except InputError as error:
        published = load_published("affective", "table_5")
        return Exhibit("table_5", "Fine-tuning data", published, (f"Left out: {error.problem}.",))
    train, valid = read_table(tables.train), read_table(tables.valid)
    sizes = [
        [table.filter(pl.col("label") == emotion).height for table in (train, valid)] for emotion in EMOTIONS
    ]
    ours = pl.DataFrame(sizes, schema=["training", "validation"], orient="row").select(
        pl.lit("ours").alias("source"), pl.Series("emotion", EMOTIONS), pl.all()
    )
    ceiling = accuracy_ceiling(valid["text"].to_list(), valid["label"].to_list())
    return build_table(
        "affective",
        "table_5",
        "Fine-tuning data",
        ours,
        "Training is the official EI-oc train and dev sets, validation the released test file, repaired.",
        f"Some tweets have several emotions: single-label accuracy cannot exceed {ceiling:.3f} on it.",
    )


def describe_missing(corpora: Corpora) -> Iterator[str]:
    """Remarks on missing corpora and term lists."""
    if missing := [name for name in (*NAMES, SEMEVAL) if name not in corpora.paths]:
        yield (
            f"Not available, and left out of Tables 2 to 4: {', '.join(missing)}. To count one, put a "
            "file or folder of that name in --data."
        )
    if corpora.terms is None and corpora.paths:
        yield "The paper's term lists (terms.json) are missing: with our own, no number will match."


def _bytes(size: float) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:,.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} GB"
