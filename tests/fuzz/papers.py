"""Readers of what the papers published, and of what trainings learn from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from unittest import mock

from tests.fuzz.contents import as_csv, as_json, as_json_lines, as_tab_lines
from tests.fuzz.harness import Reader, Tree, of_trees
from tests.fuzz.lists import BITS, EEC
from tests.fuzz.tables import TERMS

from evenhand.papers.affective.replication import find_corpora, table_5
from evenhand.papers.bold.tables import read_labels
from evenhand.papers.political.tables import read_reader_answers, table_6
from evenhand.papers.regard.exhibits import table_4
from evenhand.papers.regard.released_data import (
    METRICS,
    PARTS,
    RegardRelease,
    find_origins,
    mask_differences,
    read_annotated_texts,
)
from evenhand.papers.replicate import ReplicationJob, prepare
from evenhand.suites.regard import RegardSuite
from evenhand.training.articles import compare_classifiers, read_openings, split_openings
from evenhand.training.calibrator_job import read_two_labels
from evenhand.training.classifier_job import average_accuracies
from evenhand.training.ideology_words import read_articles
from evenhand.training.job_folder import read_predictions
from evenhand.training.semeval import EMOTIONS, check_unseen, prepare_tables

ANNOTATIONS: Tree = [
    ["1", "XYZ was known for a kind word."],
    ["-1", "XYZ had a part-time job as a thief."],
    ["0", "XYZ was described as a person."],
]
SAMPLES: Tree = [["The woman was known for a kind word."], ["The man worked as a thief in the town."]]
MASKED: Tree = [["XYZ was known for a kind word."], ["XYZ worked as a thief in the town."]]
RATED: Tree = [
    ["id", "text", "annotator", "regard", "sentiment"],
    *[
        [str(n), f"XYZ was kind to {n}.", who, label, label]
        for n, label in enumerate(("positive", "negative", "neutral"))
        for who in "ab"
    ],
]
OF_PEOPLE: Tree = [
    ["task", "text", "label"],
    ["gender", "Person was kind.", "female"],
    ["sentiment", "A bad day.", "negative"],
    ["toxicity", "A day.", "nontoxic"],
]
ANSWERED: Tree = [
    ["participant", "mode", "question", "answer"],
    *[
        [who, mode, question, answer]
        for who, answer in (("1", "5"), ("2", "3"), ("3", "4"))
        for mode in ("baseline", "classifier")
        for question in ("bias", "readability", "coherence")
    ],
]
TWEETS: Tree = [
    ["ID", "Tweet", "Affect Dimension", "Intensity Class"],
    ["2018-En-1", "What a day", "anger", "2: moderate amount of anger can be inferred"],
    ["2018-En-2", "What a night", "anger", "0: no anger can be inferred"],
]
RELEASED: Tree = [["What a +ACI-day+ACI-", "0"], ["What a night", "3"], ["Oh well", "2"]]
ARTICLES: Tree = [
    {"text": f"{outlet}: a vote in the town, number {n}.", "label": n % 2, "source": f"{outlet} - {n}"}
    for n, outlet in enumerate(("Daily A", "Daily B", "Daily C", "Daily D"))
]
PARTED: Tree = [
    ["text", "label", "outlet"],
    ["A vote in town, yes!", "liberal", "daily a"],
    ["A wall in town.", "conservative", "daily b"],
]
SAID: Tree = [
    ["part", "text", "label", "said"],
    ["test", "A vote in town, yes!", "liberal", "liberal"],
    ["dev", "A wall in town.", "conservative", "liberal"],
    ["test", "A wall in town.", "conservative", "conservative"],
]
SIDED: Tree = [
    ["text", "label"],
    *[[f"We share it, {n}.", "liberal"] for n in range(20)],
    *[[f"We guard it, {n}.", "conservative"] for n in range(20)],
]


def _beside_annotations(folder: Path) -> None:
    for metric in METRICS:
        for part in PARTS:
            (folder / f"{metric}_{part}.tsv").write_bytes(as_tab_lines(ANNOTATIONS))
    (folder / "gpt2_samples.tsv").write_bytes(as_tab_lines(SAMPLES))
    (folder / "gpt2_samples.XYZ.tsv").write_bytes(as_tab_lines(MASKED))


def _regard(path: Path) -> Iterator[object]:
    """`replicate regard --data` up to the work, and the tables of annotations and masks."""
    yield _planned("regard", path.parent, "table_4,table_masks,figure_gaps")
    published, suite = RegardRelease.find(path.parent), _suite()
    yield table_4(published)
    yield mask_differences(published.pairs(), suite)
    yield read_annotated_texts(published, suite, find_origins(published.pairs(), suite))


@cache
def _suite() -> RegardSuite:
    return RegardSuite()


def _planned(paper: str, data: Path, exhibits: str) -> ReplicationJob:
    with mock.patch.dict(os.environ, {"EVENHAND_CACHE": str(data / "cache")}):
        prepared = prepare(paper, data=data, tables=exhibits, out=data / "out")
        prepared.plan()
    return prepared


def _human(paper: str, exhibit: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        beside = path.parent / "data"
        return prepare(paper, data=beside, human=path, tables=exhibit, out=path.parent / "out").plan()

    return read


def _beside_ratings(folder: Path) -> None:
    (folder / "data").mkdir(exist_ok=True)
    _beside_annotations(folder / "data")


def _answers(path: Path) -> object:
    return table_6(read_reader_answers(path))


def _beside_tweets(folder: Path) -> None:
    for emotion in EMOTIONS:
        for part in ("train", "dev"):
            (folder / f"2018-EI-oc-En-{emotion}-{part}.txt").write_bytes(as_tab_lines(TWEETS))
    (folder / "semeval_test.csv").write_bytes(as_csv(RELEASED))


def _tweets(path: Path) -> Iterator[object]:
    """`train emotion FOLDER` up to the work, and Table 5 of the affective paper."""
    with mock.patch.dict(os.environ, {"EVENHAND_CACHE": str(path.parent / "cache")}):
        found = prepare_tables(path.parent)
        yield table_5(path.parent)
        for written in (found.train, found.valid):
            written.unlink()


def _unseen(path: Path) -> object:
    return check_unseen(path, path.parent / "learned.csv")


def _beside_unseen(folder: Path) -> None:
    (folder / "learned.csv").write_bytes(as_csv([["text", "label"], ["What a day", "joy"]]))


def _affective(path: Path) -> Iterator[object]:
    """`replicate affective --data` up to the work: pairs read, corpora ready to be counted."""
    yield _planned("affective", path.parent, "table_3,table_6")
    yield find_corpora(path.parent).scans(path.parent / "out")


def _beside_pairs(folder: Path) -> None:
    (folder / "eec.csv").write_bytes(as_csv(EEC))
    (folder / "bits_gender.csv").write_bytes(as_csv(BITS))
    (folder / "WikiEn.txt").write_text("She was happy. He was not.\n")


def _articles(path: Path) -> object:
    return split_openings(read_articles(path), seed=0)


def _parted(path: Path) -> Iterator[object]:
    yield compare_classifiers(read_openings(path), {"run": path.parent})


def _beside_parted(folder: Path) -> None:
    (folder / "predictions.csv").write_bytes(as_csv(SAID))


def _predictions(path: Path) -> Iterator[object]:
    yield compare_classifiers(read_openings(path.parent / "test.csv"), {"run": path.parent})
    yield average_accuracies([read_predictions(path)], _suite().find_context)


def _beside_predictions(folder: Path) -> None:
    (folder / "test.csv").write_bytes(as_csv(PARTED))


def _sided(path: Path) -> object:
    return read_two_labels(path, text="text", label="label", sides=("liberal", "conservative"))


READERS: tuple[Reader, ...] = (
    *(
        of_trees(
            f"regard data: {file}", file, _regard, as_tab_lines, tree, prepare=_beside_annotations, cost=8
        )
        for file, tree in (
            ("regard_train.tsv", ANNOTATIONS),
            ("sentiment_dev.tsv", ANNOTATIONS),
            ("gpt2_samples.tsv", SAMPLES),
            ("gpt2_samples.XYZ.tsv", MASKED),
        )
    ),
    of_trees(
        "regard data: ratings",
        "rated.csv",
        _human("regard", "table_4"),
        as_csv,
        RATED,
        prepare=_beside_ratings,
        cost=8,
    ),
    of_trees("bold data: labels of people", "labels.csv", read_labels, as_csv, OF_PEOPLE),
    of_trees("political data: answers of readers", "answers.csv", _answers, as_csv, ANSWERED, cost=2),
    of_trees(
        "affective data: EI-oc tweets",
        "2018-EI-oc-En-anger-train.txt",
        _tweets,
        as_tab_lines,
        TWEETS,
        prepare=_beside_tweets,
        cost=8,
    ),
    of_trees(
        "affective data: semeval_test.csv",
        "semeval_test.csv",
        _tweets,
        as_csv,
        RELEASED,
        prepare=_beside_tweets,
        cost=8,
    ),
    of_trees(
        "affective data: tweets to validate on",
        "valid.csv",
        _unseen,
        as_csv,
        RELEASED,
        prepare=_beside_unseen,
    ),
    of_trees("affective data: eec.csv", "eec.csv", _affective, as_csv, EEC, prepare=_beside_pairs, cost=8),
    of_trees(
        "affective data: terms.json", "terms.json", _affective, as_json, TERMS, prepare=_beside_pairs, cost=4
    ),
    of_trees("articles .jsonl", "articles.jsonl", _articles, as_json_lines, ARTICLES),
    of_trees("articles in parts", "test.csv", _parted, as_csv, PARTED, prepare=_beside_parted, cost=2),
    of_trees(
        "predictions of a training",
        "predictions.csv",
        _predictions,
        as_csv,
        SAID,
        prepare=_beside_predictions,
        cost=2,
    ),
    of_trees("texts of two sides", "sided.csv", _sided, as_csv, SIDED),
)
