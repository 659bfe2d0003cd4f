"""Readers of run folders, studies, labels and training tables."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from pathlib import Path

import polars as pl
from tests.annotate.study_parts import make_study
from tests.fuzz.contents import as_csv, as_json, as_json_lines, as_parquet, as_tab_lines, as_toml
from tests.fuzz.harness import Reader, Tree, of_trees

import evenhand
from evenhand.annotate.annotation_service import split_texts
from evenhand.annotate.database import Database
from evenhand.annotate.label_aggregation import read_annotations
from evenhand.annotate.label_set import read_label_set, read_labels
from evenhand.annotate.study import read_study
from evenhand.store.cache import ContentCache
from evenhand.store.run import Run
from evenhand.training import norm_prediction
from evenhand.training.labelled_table import read_labelled_texts
from evenhand.training.options import TASKS

LABEL_STUDIO: Tree = [
    {
        "id": 1,
        "data": {"text": "A kind day.", "item_id": "a"},
        "annotations": [
            {
                "id": 1,
                "completed_by": person,
                "created_at": "2024-01-01T00:00:00Z",
                "result": [
                    {
                        "from_name": "sentiment",
                        "to_name": "text",
                        "type": "choices",
                        "value": {"choices": ["positive"]},
                    }
                ],
            }
            for person in (1, 2)
        ],
    }
]
ARGILLA: Tree = [
    {
        "id": "a",
        "fields": {"text": "A kind day."},
        "metadata": {"group": "g"},
        "responses": {"sentiment": [{"value": "positive", "user_id": "u1"}, {"value": 3, "user_id": "u2"}]},
    }
]
RATINGS: list[list[Tree]] = [
    ["item_id", "text", "annotator", "question", "label"],
    ["1", "A kind day.", "ann", "sentiment", "positive"],
    ["1", "A kind day.", "bob", "sentiment", "negative"],
    ["2", "A day.", "ann", "sentiment", "neutral"],
    ["2", "A day.", "bob", "sentiment", "neutral"],
]
LABELLED: list[list[Tree]] = [
    ["text", "label"],
    ["A kind day.", "positive"],
    ["A bad day.", "negative"],
    ["A day.", "neutral"],
]
ANNOTATED: list[list[Tree]] = [
    ["id", "text", "annotator", "regard"],
    ["1", "A kind day.", "ann", "positive"],
    ["1", "A kind day.", "bob", "positive"],
    ["2", "A day.", "ann", "neutral"],
    ["2", "A day.", "bob", "negative"],
]
NORMS: list[list[Tree]] = [["word", "valence", "arousal"], ["calm", "5.5", "2"], ["storm", "3", "7.25"]]


@cache
def _run_template() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="evenhand-fuzz-")) / "run"
    texts = ["She was kind.", "He was cruel and sad."] * 6
    table = pl.DataFrame(
        {"text": texts, "group": ["red", "blue"] * 6, "cluster": [str(n // 2) for n in range(12)]}
    )
    evenhand.score(
        table, text="text", group={"team": "group"}, cluster="cluster", metrics="sentiment", out=folder
    )
    return folder


@cache
def _study_template() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="evenhand-fuzz-")) / "study"
    with Database(make_study(folder, items=4)) as database, database.engine.connect() as connection:
        # What stands beside the file until a checkpoint must be in it.
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


def _copied(template: Callable[[], Path]) -> Callable[[Path], None]:
    return lambda folder: shutil.copytree(template(), folder, dirs_exist_ok=True) and None


def _run_file(name: str) -> Callable[[], list[bytes]]:
    return lambda: [(_run_template() / name).read_bytes()]


def _manifest() -> list[Tree]:
    import json

    return [json.loads(_run_file("run.json")()[0])]


def _table_tree(name: str) -> Callable[[], list[Tree]]:
    return lambda: [pl.read_parquet(_run_template() / f"{name}.parquet").to_dict(as_series=False)]


def _as_run_table(name: str) -> Callable[[Tree], bytes]:
    """The edited columns, with the types they had where the values still have them."""

    def dump(tree: Tree) -> bytes:
        if not isinstance(tree, dict):
            return as_parquet(tree)
        schema = pl.read_parquet_schema(_run_template() / f"{name}.parquet")
        try:
            table = pl.DataFrame(
                tree,
                schema_overrides={key: kind for key, kind in schema.items() if key in tree},
                strict=False,
            )
        except Exception:
            return as_parquet(tree)
        sink = BytesIO()
        table.write_parquet(sink)
        return sink.getvalue()

    return dump


def _whole_run(path: Path) -> Iterator[object]:
    """Everything that later commands read of a run."""
    folder = path.parent
    yield Run.open(folder)
    yield evenhand.render(folder, formats=("html", "json", "md", "lm-eval", "model-card"))
    yield evenhand.gate(folder, max=["sentiment team 0.5"])
    yield evenhand.power(folder)


def _study(path: Path) -> Iterator[object]:
    study = read_study(path.parent)
    yield split_texts(study)


def _study_labels(path: Path) -> object:
    for name in ("labels.db-wal", "labels.db-shm"):
        (path.parent / name).unlink(missing_ok=True)
    return read_labels(read_study(path.parent))


def _collected(path: Path) -> object:
    return read_label_set(path)


def _cached(path: Path) -> object:
    for name in ("cache.sqlite-wal", "cache.sqlite-shm"):
        (path.parent / name).unlink(missing_ok=True)
    cache_of = ContentCache(path.parent)
    cache_of.put_many("scores", {"a": 1})
    found = cache_of.get_many("scores", ["a", "b"])
    cache_of.close()
    return found


def _sqlite(of_study: bool) -> Callable[[], list[bytes]]:
    def examples() -> list[bytes]:
        with tempfile.TemporaryDirectory() as folder:
            if of_study:
                return [(_study_template() / "labels.db").read_bytes()]
            kept = ContentCache(Path(folder))
            kept.put_many("scores", {"a": {"b": 1}})
            kept.close()
            return [(Path(folder) / "cache.sqlite").read_bytes()]

    return examples


def _dicts(rows: list[list[Tree]]) -> Tree:
    return [dict(zip(map(str, rows[0]), row, strict=True)) for row in rows[1:]]


def _study_file(name: str) -> Callable[[], list[bytes]]:
    return lambda: [(_study_template() / name).read_bytes()]


def _study_toml() -> list[Tree]:
    import tomllib

    return [tomllib.loads(_study_file("study.toml")()[0].decode())]


def _items_tree() -> list[Tree]:
    return [pl.read_parquet(_study_template() / "items.parquet").to_dict(as_series=False)]


RUN, STUDY = _copied(_run_template), _copied(_study_template)

READERS: tuple[Reader, ...] = (
    Reader("run: run.json", "run.json", _whole_run, _run_file("run.json"), _manifest, as_json, RUN, cost=20),
    *(
        Reader(
            f"run: {name}.parquet",
            f"{name}.parquet",
            _whole_run,
            _run_file(f"{name}.parquet"),
            _table_tree(name),
            _as_run_table(name),
            RUN,
            cost=40,
        )
        for name in ("prompts", "generations", "scores", "comparisons", "groups")
    ),
    Reader(
        "study: study.toml",
        "study.toml",
        _study,
        _study_file("study.toml"),
        _study_toml,
        as_toml,
        STUDY,
        cost=2,
    ),
    Reader(
        "study: items.parquet",
        "items.parquet",
        _study,
        _study_file("items.parquet"),
        _items_tree,
        as_parquet,
        STUDY,
        cost=2,
    ),
    Reader("study: labels.db", "labels.db", _study_labels, _sqlite(of_study=True), prepare=STUDY, cost=20),
    Reader("cache", "cache.sqlite", _cached, _sqlite(of_study=False), cost=4),
    of_trees("labels of Label Studio", "l.json", _collected, as_json, LABEL_STUDIO),
    of_trees("labels of Argilla", "l.json", _collected, as_json, ARGILLA),
    of_trees("ratings .csv", "l.csv", _collected, as_csv, RATINGS, cost=2),
    of_trees("ratings .jsonl", "l.jsonl", _collected, as_json_lines, _dicts(RATINGS), cost=2),
    of_trees(
        "labelled texts", "t.csv", lambda path: read_labelled_texts(path, TASKS["regard"]), as_csv, LABELLED
    ),
    Reader(
        "labelled texts .tsv",
        "t.tsv",
        lambda path: read_labelled_texts(path, TASKS["regard"]),
        lambda: [b"1\tXYZ was kind.\n-1\tXYZ was not.\n"],
    ),
    of_trees("annotations", "a.csv", lambda path: read_annotations(path, "regard"), as_csv, ANNOTATED),
    of_trees("norms .csv", "n.csv", lambda path: norm_prediction.read_word_ratings([path]), as_csv, NORMS),
    of_trees(
        "norms .tsv", "n.tsv", lambda path: norm_prediction.read_word_ratings([path]), as_tab_lines, NORMS
    ),
)
