"""Articles on which the political paper trains its judge, and the compared classifiers (section 5).

1. ``python -m evenhand.training.articles prepare ARTICLES.jsonl --out DATA``: first 100 tokens, only , . ? !
   kept, press names removed, equal numbers of articles per side, split 70/15/15.
2. ``evenhand train ideology DATA/train.csv --valid DATA/valid.csv --test DATA/test.csv --preset NAME`` with
   political-xlnet (the paper's judge), political-bert, political-attention, political-fasttext,
   political-transformer, political-rnn, political-linear.
3. ``python -m evenhand.training.articles rivals DATA RUN..``: F1, and F1 by outlet. ``evenhand replicate
   political --tables judges --data DIR`` trains and compares all of them on ``DIR/articles``.

``python -m evenhand.training.articles unread DATA --out FILE.jsonl`` writes the articles of ``DATA/ideology``
that the embedded judge was not trained on: a steering head must be trained on other texts than its judge.
``read`` writes those that it was trained on.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from evenhand.core.seeds import make_generator
from evenhand.store.atomic_writes import write_text
from evenhand.store.table_files import read_cells, spreadsheet_csv, unguard_cell
from evenhand.training.ideology_words import LabelledArticle, read_articles
from evenhand.training.job_folder import PREDICTIONS_FILE, markdown_table, read_predictions
from evenhand.training.labelled_data import ideology, outlet
from evenhand.training.test_measures import bootstrap_measure, macro_f1

LONGEST: Final = 100
SHARES: Final = {"train": 0.7, "valid": 0.15, "test": 0.15}
SIDES: Final = ("liberal", "conservative")
UNSEEN_SPLITS: Final = ("known", "unseen")
"""Splits of the labelled articles on which the embedded judge is only tested."""
_MARKS: Final = re.compile(r"[^\w\s,.?!]|_")
_TOKEN: Final = re.compile(r"\w+|[,.?!]")


class ArticleOpening(NamedTuple):
    """The opening of an article, cleaned."""

    text: str
    label: str
    outlet: str


class ClassifierScore(NamedTuple):
    """The results of one classifier on unseen articles."""

    name: str
    f1: float
    low: float
    high: float
    """The interval of F1, from resampling articles."""
    n: int
    by_outlet: Mapping[str, tuple[float, int]]
    """Outlet to F1 and number of articles. All articles of an outlet have one side: F1 is for that side."""


def clean_text(text: str, names: Iterable[str]) -> str:
    """The first 100 tokens without press names, and without marks other than , . ? !.

    >>> clean_text("(CNN) - A vote: yes!", ["CNN"])
    'A vote yes!'
    """
    text = " ".join(_MARKS.sub(" ", _any_of(frozenset(names)).sub(" ", text).replace("'", "")).split())
    tokens = list(_TOKEN.finditer(text))[:LONGEST]
    return text[: tokens[-1].end()] if tokens else ""


def split_openings(articles: Sequence[LabelledArticle], *, seed: int) -> dict[str, list[ArticleOpening]]:
    """The parts ``train``, ``valid`` and ``test``, each with equal numbers of articles per side."""
    rng = make_generator(seed, "articles")
    sides = [[article for article in articles if article.conservative == side] for side in (False, True)]
    size = min(map(len, sides))
    cuts = np.round(np.cumsum(list(SHARES.values()))[:-1] * size).astype(int)
    parts: dict[str, list[ArticleOpening]] = {part: [] for part in SHARES}
    sources = {article.source for article in articles}
    short_names = {re.split(r" - |\(|\.com", source)[0].strip() for source in sources}
    names = frozenset(name for name in sources | short_names if len(name) > 2)
    for side in sides:
        chosen = [side[at] for at in rng.permutation(len(side))[:size]]
        for part, rows in zip(SHARES, np.split(np.arange(size), cuts), strict=True):
            for article in (chosen[row] for row in rows):
                text = clean_text(article.text, names)
                parts[part].append(ArticleOpening(text, SIDES[article.conservative], outlet(article.source)))
    return {part: [opening for opening in rows if opening.text] for part, rows in parts.items()}


def compare_classifiers(test: Sequence[ArticleOpening], runs: Mapping[str, Path]) -> list[ClassifierScore]:
    """The score of each finished training run on the test articles, best first."""
    outlets = {opening.text: opening.outlet for opening in test}
    scores = []
    for name, folder in runs.items():
        rows = [row for row in read_predictions(folder / PREDICTIONS_FILE) if row.part == "test"]
        codes = np.unique([[row.label for row in rows], [row.said for row in rows]], return_inverse=True)[1]
        truth, given = codes.reshape(2, -1)
        places = np.array([outlets.get(row.text, "(unknown)") for row in rows])
        by_outlet = {}
        for place in np.unique(places):
            # F1 of the outlet's own side: no article of the outlet can be a false positive of it.
            right = (given == truth)[places == place]
            by_outlet[str(place)] = 2 * int(right.sum()) / (int(right.sum()) + right.size), int(right.size)
        f1 = bootstrap_measure(macro_f1, given, truth)
        scores.append(ClassifierScore(name, f1.value, f1.low, f1.high, f1.n, by_outlet))
    return sorted(scores, key=lambda score: -score.f1)


def comparison_table(scores: Sequence[ClassifierScore]) -> str:
    """The compared classifiers as a Markdown table: F1 over all articles, then by outlet."""
    rows = [
        (rival.name, f"{rival.n:,}", f"{rival.f1:.3f} ({rival.low:.3f} to {rival.high:.3f})")
        for rival in scores
    ]
    outlets = []
    for name in sorted({name for rival in scores for name in rival.by_outlet}):
        n = max(rival.by_outlet.get(name, (0.0, 0))[1] for rival in scores)
        cells = [f"{rival.by_outlet[name][0]:.3f}" if name in rival.by_outlet else "" for rival in scores]
        outlets.append((name, f"{n:,}", *cells))
    tables = (
        markdown_table(("classifier", "articles", "F1, 95 % interval"), *rows),
        markdown_table(("outlet", "articles", *(rival.name for rival in scores)), *outlets),
    )
    return "\n\n".join(tables) + "\n"


@lru_cache(maxsize=4)
def _any_of(names: frozenset[str]) -> re.Pattern[str]:
    longest_first = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{longest_first})(?!\w)" if names else r"(?!)", re.IGNORECASE)


def read_openings(path: Path) -> list[ArticleOpening]:
    """The openings of a part, as written by ``prepare``."""
    return [ArticleOpening(*map(unguard_cell, row)) for row in read_cells(path, ArticleOpening._fields)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Prepare articles, or write the comparison table."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    prepare = commands.add_parser("prepare")
    prepare.add_argument("articles", type=Path, nargs="+")
    prepare.add_argument("--out", type=Path, required=True)
    prepare.add_argument("--seed", type=int, default=0)
    compare = commands.add_parser("rivals")
    compare.add_argument("data", type=Path)
    compare.add_argument("runs", type=Path, nargs="+")
    for name in ("unread", "read"):
        other = commands.add_parser(name)
        other.add_argument("data", type=Path, help="the folder with ideology/train.jsonl and valid.jsonl")
        other.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(arguments)
    if args.command in ("unread", "read"):
        is_unread, lines = args.command == "unread", []
        for example in ideology(args.data):
            if (example.split in UNSEEN_SPLITS) == is_unread:
                side = int(example.targets["ideology"][0] == 1.0)
                more = {"label": SIDES[side]} if is_unread else {"label": side, "source": example.split}
                lines.append(json.dumps({"text": example.text, **more}) + "\n")
        write_text(args.out, "".join(lines))
    elif args.command == "prepare":
        articles = [article for path in args.articles for article in read_articles(path)]
        args.out.mkdir(parents=True, exist_ok=True)
        columns = dict.fromkeys(ArticleOpening._fields, pl.String())
        for part, rows in split_openings(articles, seed=args.seed).items():
            table = pl.DataFrame(rows, schema=columns, orient="row")
            write_text(args.out / f"{part}.csv", spreadsheet_csv(table))
    else:
        scores = compare_classifiers(
            read_openings(args.data / "test.csv"), {run.name: run for run in args.runs}
        )
        write_text(args.data / "rivals.md", comparison_table(scores))


if __name__ == "__main__":
    main()
