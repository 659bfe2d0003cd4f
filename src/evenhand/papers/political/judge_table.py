"""The judge and alternative classifiers (section 5), trained alike on articles, in one table."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import Execution, Text
from evenhand.core.regular_files import read_text
from evenhand.papers.political.measurements import JUDGE
from evenhand.papers.replicate import ReplicationRequest
from evenhand.papers.replication_pages import Exhibit, estimate_cells
from evenhand.stats.intervals import clustered_mean
from evenhand.training.articles import SHARES, compare_classifiers, read_openings
from evenhand.training.options import TrainOptions

ARTICLES: Final = "articles"
"""The folder in ``--data`` with the output of ``evenhand.training.articles prepare``."""
JUDGES: Final[Mapping[str, TrainOptions]] = {
    "TF-IDF, linear": {"preset": "political-linear"},
    "fastText-style": {"preset": "political-fasttext"},
    "RNN with attention": {"preset": "political-attention"},
    "transformer, from nothing": {"preset": "political-transformer"},
    "masked model (builtin:masked)": {"backbone": "builtin:masked", "epochs": 3},
}
PUBLISHED: Final[Mapping[str, TrainOptions]] = {
    "BERT": {"preset": "political-bert"},
    "XLNet": {"preset": "political-xlnet"},
}
"""Added by ``--full``: downloaded from the Hub."""
ALL: Final = "(all)"
_FOLDER: Final = re.compile(r"[^\w]|_")
_PRINTED: Final = {"source": "paper", "classifier": "XLNet", "outlet": ALL, "f1": 0.984}


def find_articles(data: Path | None) -> dict[str, Path] | None:
    """The parts of the articles in ``--data``: training, validation and test; None without the folder."""
    folder = data / ARTICLES if data else None
    if folder is None or not folder.is_dir():
        return None
    files = {part: folder / f"{part}.csv" for part in SHARES}
    for path in files.values():
        if not path.is_file():
            raise InputError(
                f"{folder} has no {path.name}",
                expected=", ".join(file.name for file in files.values()),
                fix=f"python -m evenhand.training.articles prepare ARTICLES.jsonl --out {folder}",
            )
    return files


def list_judges(request: ReplicationRequest) -> dict[str, TrainOptions]:
    """Name in the table to training options."""
    return {**JUDGES, **(PUBLISHED if request.full else {})}


def judges_table(
    articles: Mapping[str, Path], request: ReplicationRequest, folder: Path, progress: Progress
) -> Exhibit:
    """Train the classifiers that are not trained yet, and compare all on the test articles."""
    runs = {}
    for name, options in list_judges(request).items():
        own_options: TrainOptions = {**options, "out": folder / _FOLDER.sub("-", name.lower()).strip("-")}
        training = request.training("ideology", list(articles.values()), **own_options)
        runs[name] = training.run(progress).folder
    rows: list[dict[str, object]] = [_PRINTED]
    for rival in compare_classifiers(read_openings(articles["test"]), runs):
        own = {"source": "ours", "classifier": rival.name}
        bounds = {"low": rival.low, "high": rival.high, "n": rival.n}
        rows.append({**own, "outlet": ALL, "f1": rival.f1, **bounds})
        by_outlet = sorted(rival.by_outlet.items(), key=lambda item: (-item[1][1], item[0]))
        rows += ({**own, "outlet": name, "f1": f1, "n": n} for name, (f1, n) in by_outlet)
    return Exhibit(
        id="judges",
        title="The judge and alternatives on unseen articles",
        frame=pl.DataFrame(rows, infer_schema_length=None),
        notes=(
            "Macro-F1 over all articles, with an interval from resampling articles; for an outlet, F1 of "
            "the outlet's own side. Trained on 70 % of the articles, the epoch chosen on 15 %, tested "
            "on 15 %; sides balanced, first 100 tokens, press names removed.",
            "The paper's articles are not public: its 0.984 is on others, without alternatives.",
        ),
        decimals=3,
    )


FILE: Final = "mixtures.jsonl"
"""A file of planted variants; `training.planted` defines it too, but importing that loads torch."""


def mixture_files(specs: Mapping[str, str]) -> dict[str, Path]:
    """The files of mixture texts of those models that are planted variants, by name."""
    files = {name: Path(spec) / FILE for name, spec in specs.items()}
    return {name: path for name, path in files.items() if path.is_file()}


def mixtures_table(files: Mapping[str, Path], execution: Execution) -> Exhibit:
    """The judge's mean for each lean, and its difference from the even mixture."""
    rows: list[dict[str, object]] = []
    for name, path in files.items():
        means = {lean: clustered_mean(values) for lean, values in judge_mixtures(path, execution).items()}
        even = means[0.0].value if 0.0 in means else None
        for lean, mean in sorted(means.items()):
            shift = None if even is None or mean.value is None else mean.value - even
            cells = estimate_cells("conservative", mean)
            rows.append({"source": name, "lean": lean, **cells, "shift": shift, "n": mean.n})
    return Exhibit(
        id="mixtures",
        title="Size of the planted bias: the judge on the mixtures themselves",
        frame=pl.DataFrame(rows, infer_schema_length=None),
        notes=(
            "Texts from mixtures of the two experts, without a prompt. lean 0 is even, -0.5 the liberal "
            "expert and 0.5 the conservative one; conservative is the judge's mean probability, with an "
            "interval that assumes independent texts; shift is its difference from the even mixture.",
        ),
        decimals=3,
    )


def judge_mixtures(path: Path, execution: Execution) -> dict[float, np.ndarray]:
    """The judge's probabilities for the texts of each lean."""
    lines = [json.loads(line) for line in read_text(path).splitlines()]
    judge = registry.create_metric(JUDGE, {}, execution)
    assert isinstance(judge, Metric)
    scores: dict[float, list[float]] = {}
    for line, row in zip(lines, judge.score([Text(line["text"]) for line in lines]), strict=True):
        if (score := row[JUDGE].value) is not None:
            scores.setdefault(float(line["lean"]), []).append(score)
    return {lean: np.array(values) for lean, values in scores.items()}
