"""Read the labelled articles that the classifiers are trained on, with their splits: train, valid, and tests.

Splits are determined by digests of what must not be shared (a text, an outlet), never by order or chance, so
they are the same everywhere. A target is one number per label of a head, in [0, 1]; None if not annotated.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evenhand.core.digests import digest
from evenhand.text.data_splits import find_near_duplicates

VALID_SHARE: Final = 10
"""One training text in ten is kept for model selection and calibration."""
TEST_SHARE: Final = 5
"""One text in five is held out if a dataset has no split."""
LARGE_OUTLET: Final = 600
"""Outlets with at least this many articles are never held out: they are most of the training text."""

Targets = Mapping[str, tuple[float | None, ...]]

_GENERIC: Final = frozenset({"news", "online", "web", "opinion", "editorial", "the"})
_SPELLINGS: Final = {
    "nbcnews": "nbc",
    "nbc today show": "nbc",
    "cnsnews": "cns",
    "michellemalkin": "michelle malkin",
    "richard a lowry": "rich lowry",
    "rev jesse jackson sr": "jesse jackson",
    "new york times board": "new york times",
    "courier journal": "louisville courier journal",
    "reason foundation": "reason",
}
"""Aliases of outlets and writers, as :func:`outlet` returns them, to the canonical name."""


@dataclass(frozen=True, slots=True)
class Example:
    """A text and its human labels."""

    text: str
    corpus: str
    split: str
    targets: Targets


def ideology(folder: Path) -> list[Example]:
    """Article openings, left 0 and right 1; tests ``known`` (outlets seen in training) and ``unseen``."""
    articles = [
        (split, json.loads(line))
        for split in ("train", "valid")
        for line in (folder / "ideology" / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    hidden = unseen_outlets(Counter(outlet(article["source"]) for _, article in articles))
    examples = []
    for split, article in articles:
        seen_split = "known" if split == "valid" else split_training(article["text"])
        where = "unseen" if outlet(article["source"]) in hidden else seen_split
        examples.append(Example(article["text"], "articles", where, {"ideology": (float(article["label"]),)}))
    return without_repeats(examples)


def without_repeats(examples: Sequence[Example]) -> list[Example]:
    """The examples, without those outside ``train`` that nearly repeat a training text."""
    train = [example.text for example in examples if example.split == "train"]
    others = [example for example in examples if example.split != "train"]
    repeated = find_near_duplicates([example.text for example in others], train)
    kept_ids = {id(example) for example, twin in zip(others, repeated, strict=True) if not twin}
    return [example for example in examples if example.split == "train" or id(example) in kept_ids]


def outlet(source: str) -> str:
    """The canonical name of a source, which merges an outlet's sections: "Fox News (Online)" is "fox"."""
    name = re.split(r" - |\(|\.com", source.lower())[0]
    family = " ".join(word for word in re.findall(r"[\w']+", name) if word not in _GENERIC) or name.strip()
    return _SPELLINGS.get(family, family)


def unseen_outlets(articles: Mapping[str, int]) -> frozenset[str]:
    """The held-out outlets: those with fewer than 600 articles whose name's digest is 3 modulo 4."""
    return frozenset(
        name for name, count in articles.items() if count < LARGE_OUTLET and int(digest(name), 16) % 4 == 3
    )


def split_training(text: str) -> str:
    """``valid`` for one text in ten, else ``train``."""
    return "valid" if text_number(text) // TEST_SHARE % VALID_SHARE == 0 else "train"


def text_number(text: str) -> int:
    """The number that determines a text's split; case and white space are ignored."""
    return int(digest(" ".join(text.lower().split())), 16)
