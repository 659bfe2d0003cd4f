"""Read the labelled data sets of tweets, comments and our own sentences, each with its splits.

Articles, and how splits are decided, are in `evenhand.training.labelled_data`.
"""

from __future__ import annotations

import csv
import html
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from evenhand.classifiers.encoder import EMOTION, INTENSITY, REGARD
from evenhand.training.labelled_data import (
    TEST_SHARE,
    Example,
    Targets,
    split_training,
    text_number,
    without_repeats,
)

PRESENT: Final = 2 / 3
"""Intensity given to an emotion that is only said to be present: moderate, the mean of the graded tweets."""
_EKMAN: Final = {
    "anger": ("anger", "annoyance", "disapproval"),
    "fear": ("fear", "nervousness"),
    "joy": (
        *("joy", "amusement", "approval", "excitement", "gratitude", "love", "optimism", "relief"),
        *("pride", "admiration", "desire", "caring"),
    ),
    "sadness": ("sadness", "disappointment", "embarrassment", "grief", "remorse"),
    "neutral": ("neutral",),
}
"""The data set's own folding of its labels; surprise and disgust have no label of ours."""


def toxicity(folder: Path) -> list[Example]:
    """Comments marked toxic or not: a fifth held out, less what nearly repeats a training comment."""
    rows = _csv_rows(folder / "toxicity" / "jigsaw_slice.csv")
    examples = [
        Example(" ".join(text.split()), "jigsaw", _by_text(text), {"toxicity": (float(label), None)})
        for text, label in rows
    ]
    return without_repeats(examples)


def hate(folder: Path) -> list[Example]:
    """Tweets with the share of readers who saw hatred of a group, for the label ``identity_attack``."""
    rows = _csv_rows(folder / "toxicity" / "davidson.csv")
    examples = []
    for _, readers, haters, *_, text in rows[1:]:
        targets = {"toxicity": (None, int(haters) / int(readers))}
        examples.append(Example(tweet(text), "davidson", _by_text(text), targets))
    return without_repeats(examples)


def emotion(folder: Path) -> list[Example]:
    """Graded tweets (official train and dev) and forum comments with 28 labels, folded to ours.

    What nearly repeats a training text of its own data set is in no test.
    """
    tweets, comments = _graded_tweets(folder / "emotion"), _forum_comments(folder / "emotion")
    return [*without_repeats(list(tweets)), *without_repeats(list(comments))]


def regard(path: Path) -> list[Example]:
    """Our own masked sentences, one JSON object a line with ``text``, ``label`` and ``pair``.

    The sentences of a hard pair share a frame and stand on one side of the split: the pair's name decides.
    """
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        Example(
            row["text"],
            "regard",
            split_training(row.get("pair") or row["text"]),
            {"regard": _one_hot(row["label"], REGARD.labels)},
        )
        for row in rows
    ]


def published_regard(folder: Path) -> list[Example]:
    """The 302 published annotations, all of them a test: nothing is ever trained on them."""
    names = {"-1": "negative", "0": "neutral", "1": "positive"}
    lines = [
        line.split("\t", 1)
        for split in ("train", "dev", "test")
        for line in (folder / "regard" / f"regard_{split}.tsv").read_text(encoding="utf-8").splitlines()
    ]
    return [
        Example(text, "regard-302", "test", {"regard": _one_hot(names[label], REGARD.labels)})
        for label, text in lines
    ]


def tweet(text: str) -> str:
    r"""A tweet as a reader sees it: entities and ``\n`` undone, names and links as plain words.

    >>> tweet("@you RT: it &amp; that\\n http://t.co/x #sad")
    'user RT: it & that link sad'
    """
    text = html.unescape(html.unescape(text)).replace("\\n", " ")
    text = re.sub(r"@\w+", "user", re.sub(r"https?://\S+", "link", text))
    return " ".join(text.replace("#", "").split())


def _graded_tweets(folder: Path) -> Iterator[Example]:
    for split, name in (("train", "train"), ("test", "dev")):
        grades: dict[str, dict[str, int]] = defaultdict(dict)
        for kind in INTENSITY.labels:
            path = folder / f"semeval_EI-oc_{kind}_{name}.txt"
            for line in path.read_text(encoding="utf-8").splitlines()[1:]:
                _, text, _, grade = line.split("\t")
                grades[text][kind] = int(grade[0])
        for text, graded in grades.items():
            where = split_training(text) if split == "train" else split
            yield Example(tweet(text), "tweets", where, _graded_targets(graded))


def _graded_targets(graded: Mapping[str, int]) -> Targets:
    """Intensities where graded; a class where just one emotion was graded highest and above none."""
    intensity = tuple(graded[kind] / 3 if kind in graded else None for kind in INTENSITY.labels)
    best = max(graded.values())
    leading = [kind for kind, grade in graded.items() if grade == best]
    if best == 0 or len(leading) > 1:
        return {"intensity": intensity}
    return {"intensity": intensity, "emotion": _one_hot(leading[0], EMOTION.labels)}


def _forum_comments(folder: Path) -> Iterator[Example]:
    names = (folder / "goemotions_emotions.txt").read_text(encoding="utf-8").split()
    ours = {label: kind for kind, labels in _EKMAN.items() for label in labels}
    for split, name in (("train", "train"), ("valid", "dev"), ("test", "test")):
        for line in (folder / f"goemotions_{name}.tsv").read_text(encoding="utf-8").splitlines():
            text, labels, _ = line.split("\t")
            kinds = {ours.get(names[int(label)], "none") for label in labels.split(",")}
            yield Example(" ".join(text.split()), "forum", split, _folded_targets(kinds))


def _folded_targets(kinds: set[str]) -> Targets:
    intensity = tuple(PRESENT if kind in kinds else 0.0 for kind in INTENSITY.labels)
    if len(kinds) > 1 or kinds == {"none"}:
        return {"intensity": intensity}
    return {"intensity": intensity, "emotion": _one_hot(next(iter(kinds)), EMOTION.labels)}


def _one_hot(label: str, labels: tuple[str, ...]) -> tuple[float, ...]:
    return tuple(float(label == other) for other in labels)


def _by_text(text: str) -> str:
    return "test" if text_number(text) % TEST_SHARE == 0 else split_training(text)


def _csv_rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))
