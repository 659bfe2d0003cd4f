"""Tables 2, 3 and 4: emotions in the training corpora that are at hand."""

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
"""The paper's corpora, and how a file or folder of each may begin its name."""
SEMEVAL: Final = "SemEval-2018"
_SEMEVAL_FILES: Final = ("semeval_train.csv", "semeval_val.csv", "semeval_test.csv")


@dataclass(frozen=True, slots=True)
class Corpora:
    """The corpora found in a data folder, and the terms they are counted with."""

    paths: dict[str, list[Path]]
    terms: Path | None

    def scans(self, folder: Path) -> list[CorpusScan]:
        """The scans with the paper's rule: of SemEval, whose unit is the tweet, and of all others.

        The others are counted by sentence in whatever format they come: a row of a table is a document there.
        """
        tweets = [f"{SEMEVAL}={path}" for path in self.paths.get(SEMEVAL, ())]
        others = [f"{name}={path}" for name, paths in self.paths.items() for path in paths if name != SEMEVAL]
        scan = partial(prepare, preset="paper", terms=self.terms)
        return [
            *([scan(others, unit="sentence", out=folder / "corpora")] if others else ()),
            *([scan(tweets, unit="document", out=folder / "semeval")] if tweets else ()),
        ]


def find_corpora(data: Path) -> Corpora:
    """The corpora of a data folder; each is optional."""
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
        "A sentence is our splitter's, in SemEval a tweet. The paper's Wikipedia is of June 2022, its "
        "WebText and C4 are parts; another copy has other counts.",
    )


def table_3(runs: Sequence[Run]) -> Exhibit:
    """How often each emotion occurs."""
    table = pl.concat(run.table("occurrence") for run in runs)
    wide = table.pivot("emotion", index=["corpus", "total", "standard_deviation"], values="count")
    wide = wide.rename({"total": "total_affective_words"}).with_columns(source=pl.lit("ours"))
    ours = wide.select(load_published("affective", "table_3").columns)
    return build_table(
        "affective",
        "table_3",
        "Occurrence of emotions in the corpora",
        ours,
        "SemEval is counted on the files as released, whose test part has UTF-7 residue; on repaired "
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
        "Co-occurrence of emotions with groups, in percent of a group's",
        ours,
        "Counting is `distinct`, which gives the paper's SemEval row; Algorithm 1 as printed (`flag`) "
        "does not.",
        "Four printed SemEval numbers are misprints, as their columns do not sum to 100 with them: male "
        "sadness 17.75 (18.75), female fear 26.06 (25.56), Christian joy 27.02 (26.32), Muslim anger "
        "15.06 (14.86).",
        "The paper prints 0 where a group never occurs; ours is missing there.",
    )


BUILDERS: Final = {"table_2": table_2, "table_3": table_3, "table_4": table_4}


def table_5(data: Path) -> Exhibit:
    """The fine-tuning data, with the ceiling of single-label accuracy."""
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
    top = accuracy_ceiling(valid["text"].to_list(), valid["label"].to_list())
    return build_table(
        "affective",
        "table_5",
        "Fine-tuning data",
        ours,
        "Training is the official EI-oc train and dev, validation the released test file, repaired.",
        f"Tweets stand under several emotions: single-label accuracy cannot exceed {top:.3f} on it.",
    )


def describe_missing(corpora: Corpora) -> Iterator[str]:
    """What cannot be counted for want of a corpus."""
    if missing := [name for name in (*NAMES, SEMEVAL) if name not in corpora.paths]:
        yield (
            f"Not at hand, and left out of Tables 2 to 4: {', '.join(missing)}. A file or folder of that "
            "name in --data is counted."
        )
    if corpora.terms is None and corpora.paths:
        yield "The paper's term lists (terms.json) are not at hand: ours are used, and no number will agree."


def _bytes(size: float) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:,.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} GB"
