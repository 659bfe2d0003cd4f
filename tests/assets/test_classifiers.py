"""The embedded classifiers: what their cards promise, on small samples of the held-out data."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest
from tools.assets import labelled_corpora
from tools.assets.classifier_figures import (
    Answered,
    emotion_figures,
    fill,
    group_gaps,
    regard_figures,
    yes_or_no_figures,
)

from evenhand.classifiers.text_classifier import TextClassifier, embedded_classifier
from evenhand.core.digests import digest
from evenhand.core.files import ASSETS_FOLDER, asset_path
from evenhand.core.records import Execution
from evenhand.training import labelled_data
from evenhand.training.labelled_data import Example

SAMPLE_BYTES = 200_000
FEW = 20
"""Rounds of resampling: the intervals are not looked at here."""
TOXICITY_BAR = 0.97
IDEOLOGY_BARS = {"known": 0.720, "unseen": 0.607}
"""What TF-IDF and logistic regression reach on all articles."""
CARDS = ("card", "regard", "toxicity", "emotion", "ideology")


@pytest.fixture(scope="module")
def classifier() -> TextClassifier:
    return embedded_classifier(Execution(device="cpu"))


def sample(examples: list[Example], split: str) -> list[Example]:
    """200 kB of a split in the order of the texts' digests: the same everywhere, drawn from all of it."""
    chosen = sorted((one for one in examples if one.split == split), key=lambda one: digest(one.text))
    sizes = accumulate(len(one.text.encode("utf-8")) for one in chosen)
    return [one for one, size in zip(chosen, sizes, strict=True) if size < SAMPLE_BYTES]


@pytest.fixture(scope="module")
def articles(data: Path) -> list[Example]:
    return labelled_data.ideology(data)


def test_all_embedded_files_together_stay_light() -> None:
    size = sum(
        path.stat().st_size for path in ASSETS_FOLDER.rglob("*") if path.is_file() and path.suffix != ".pyc"
    )
    assert size <= 48 << 20


def test_the_files_are_within_their_budget() -> None:
    size = sum(path.stat().st_size for path in asset_path("classifiers").iterdir())
    assert size < 11_000_000


@pytest.mark.parametrize("name", CARDS)
def test_every_card_names_the_weights_it_describes(name: str, classifier: TextClassifier) -> None:
    assert f"`{classifier.digest}`" in asset_path("classifiers", f"{name}.md").read_text(encoding="utf-8")


def test_regard_on_the_published_annotations(classifier: TextClassifier, data: Path) -> None:
    figures = regard_figures(Answered.of(classifier, labelled_corpora.published_regard(data)), rounds=FEW)
    assert figures["accuracy"].value >= 0.80
    assert figures["accuracy of three labels"].value >= 0.80
    assert figures["ECE"].value < 0.08


def test_toxicity_on_held_out_comments(classifier: TextClassifier, data: Path) -> None:
    comments = sample(labelled_corpora.toxicity(data), "test")
    figures = yes_or_no_figures(Answered.of(classifier, comments), "toxicity", rounds=FEW)
    assert figures["ROC-AUC"].value >= TOXICITY_BAR
    assert figures["ECE"].value < 0.05


@pytest.mark.parametrize("split", ["known", "unseen"])
def test_ideology_beats_counting_words(
    classifier: TextClassifier, articles: list[Example], split: str
) -> None:
    answers = Answered.of(classifier, sample(articles, split))
    # On all articles 0.760 and 0.614; 200 kB have a standard error of about 0.025.
    assert yes_or_no_figures(answers, "ideology", rounds=FEW)["macro-F1"].value > IDEOLOGY_BARS[split]


@pytest.mark.slow
def test_the_bars_on_all_held_out_texts(
    classifier: TextClassifier, data: Path, articles: list[Example]
) -> None:
    comments = [one for one in labelled_corpora.toxicity(data) if one.split == "test"]
    figures = yes_or_no_figures(Answered.of(classifier, comments), "toxicity", rounds=FEW)
    assert figures["ROC-AUC"].value >= TOXICITY_BAR
    for split, bar in IDEOLOGY_BARS.items():
        answers = Answered.of(classifier, [one for one in articles if one.split == split])
        assert yes_or_no_figures(answers, "ideology", rounds=FEW)["macro-F1"].value > bar


def test_emotion_on_official_dev_tweets(classifier: TextClassifier, data: Path) -> None:
    tweets = [example for example in labelled_corpora.emotion(data) if example.corpus == "tweets"]
    figures = emotion_figures(
        Answered.of(classifier, [one for one in tweets if one.split == "test"]), rounds=FEW
    )
    assert figures["accuracy, one leads"].value > 0.80
    assert figures["accuracy, one graded"].value > 0.87
    assert all(figures[f"{kind}: ROC-AUC"].value > 0.75 for kind in ("anger", "fear", "joy", "sadness"))


def test_the_bias_table_is_what_the_weights_give(classifier: TextClassifier) -> None:
    gaps = {(gap.group, gap.output): gap for gap in group_gaps(classifier)}
    for head, group, output in (
        ("toxicity", "gay man", "toxicity.toxic"),
        ("ideology", "Hindu man", "ideology.conservative"),
    ):
        gap = gaps[group, output]
        row = f"| {gap.axis} | {group} - {gap.baseline} | {gap.difference:+.3f} ("
        assert row in asset_path("classifiers", f"{head}.md").read_text(encoding="utf-8")


def test_gaps_are_signed_and_lie_in_their_interval(classifier: TextClassifier) -> None:
    for gap in group_gaps(classifier):
        assert gap.low <= gap.difference <= gap.high
        assert abs(gap.largest) >= abs(gap.difference)


def test_templates_agree_with_the_person() -> None:
    assert fill("{Who} lost {their} hat to {who}; {they} saw {them}.", "the woman", "she") == (
        "The woman lost her hat to the woman; she saw her."
    )
