"""The labelled datasets and their splits."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tools.assets import labelled_corpora
from tools.assets.labelled_corpora import tweet

from evenhand.core.files import asset_path
from evenhand.text.data_splits import find_near_duplicates
from evenhand.training import labelled_data
from evenhand.training.labelled_data import Example, outlet, unseen_outlets, without_repeats


def of(examples: list[Example], *splits: str) -> list[str]:
    return [example.text for example in examples if example.split in splits]


def test_sections_of_an_outlet_are_one_family() -> None:
    names = ("Fox News", "Fox Online News", "Fox News Opinion", "Fox News (Online)")
    assert {outlet(name) for name in names} == {"fox"}
    assert outlet("New York Times - Opinion") != outlet("New York Post")
    assert outlet("The News") == "the news"


def test_large_outlets_are_never_held_out() -> None:
    names = [f"outlet {number}" for number in range(200)]
    small = unseen_outlets(dict.fromkeys(names, 599))
    assert 20 < len(small) < 80
    assert unseen_outlets(dict.fromkeys(names, 600)) == frozenset()


def test_a_tweet_is_plain_words() -> None:
    assert tweet("@you &lt;3 #fun\\nhttps://t.co/x") == "user <3 fun link"


def test_held_out_texts_that_repeat_training_are_dropped() -> None:
    rows = [
        ("same old words here", "train"),
        ("Same old words here!", "test"),
        ("other words at all", "test"),
    ]
    examples = [Example(text, "x", split, {}) for text, split in rows]
    assert [example.text for example in without_repeats(examples)] == [
        "same old words here",
        "other words at all",
    ]


def test_our_sentences_are_read_with_their_label(tmp_path: Path) -> None:
    path = tmp_path / "regard.jsonl"
    path.write_text(json.dumps({"text": "XYZ sang.", "label": "positive"}) + "\n", encoding="utf-8")
    (found,) = labelled_corpora.regard(path)
    assert found.targets == {"regard": (0.0, 0.0, 1.0, 0.0)}


def test_comments_are_a_fifth_held_out_without_repeats(data: Path) -> None:
    examples = labelled_corpora.toxicity(data)
    train, test = of(examples, "train", "valid"), of(examples, "test")
    assert 0.18 < len(test) / len(examples) < 0.21
    assert not any(find_near_duplicates(test[:200], of(examples, "train")))
    assert not set(test) & set(train)


def test_unseen_outlets_are_in_no_training_article(data: Path) -> None:
    examples = labelled_data.ideology(data)
    counts = Counter(example.split for example in examples)
    assert counts["known"] > 2500
    assert 1500 < counts["unseen"] < 2500
    lean = [example.targets["ideology"][0] for example in examples if example.split == "unseen"]
    assert 0.4 < sum(filter(None, lean)) / len(lean) < 0.6


@pytest.fixture(scope="module")
def emotions(data: Path) -> list[labelled_data.Example]:
    return labelled_corpora.emotion(data)


def test_official_dev_is_only_a_test(emotions: list[labelled_data.Example]) -> None:
    examples = emotions
    tweets = [example for example in examples if example.corpus == "tweets"]
    assert sum(example.split == "test" for example in tweets) == 888  # 893, five nearly in training
    assert not set(of(tweets, "test")) & set(of(tweets, "train", "valid")) - {""}
    leading = [example for example in tweets if "emotion" in example.targets]
    assert all(sum(filter(None, example.targets["emotion"])) == 1 for example in leading)


def test_no_forum_comment_of_a_test_repeats_a_training_comment(emotions: list[labelled_data.Example]) -> None:
    comments = [example for example in emotions if example.corpus == "forum"]
    assert len(of(comments, "train")) == 43_410
    assert len(of(comments, "test")) == 5_246  # 5,427 less 181 that nearly repeat
    assert not set(of(comments, "test", "valid")) & set(of(comments, "train"))


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("NBCNews.com", "NBC News (Online)"),
        ("NBC Today Show", "NBC News (Online)"),
        ("CNSNews.com", "CNS News"),
        ("Rev. Jesse Jackson Sr.", "Jesse Jackson"),
        ("New York Times Editorial Board", "New York Times - News"),
    ],
)
def test_spellings_of_one_outlet_stay_together(spelling: str, name: str) -> None:
    assert labelled_data.outlet(spelling) == labelled_data.outlet(name)


def test_a_hard_pair_stands_on_one_side() -> None:
    path = asset_path("regard", "regard.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    sides: dict[str, set[str]] = {}
    for row, example in zip(rows, labelled_corpora.regard(path), strict=True):
        if row["pair"]:
            sides.setdefault(row["pair"], set()).add(example.split)
    assert len(sides) == 100
    assert all(len(splits) == 1 for splits in sides.values())


def test_the_published_annotations_are_only_a_test(data: Path) -> None:
    published = labelled_corpora.published_regard(data)
    assert len(published) == 302
    assert {example.split for example in published} == {"test"}
    counts = Counter(example.targets["regard"].index(1.0) for example in published)
    # Table 4 of the paper: 80 + 28 + 9, 67 + 15 + 11, 65 + 17 + 10; none is "other".
    assert counts == {0: 117, 1: 93, 2: 92}


@pytest.mark.parametrize("kinds", [{"anger"}, {"anger", "joy"}, {"none"}])
def test_folded_labels_give_a_class_only_where_one_fits(kinds: set[str]) -> None:
    found = labelled_corpora._folded_targets(kinds)
    assert ("emotion" in found) == (kinds == {"anger"})
    assert found["intensity"][0] == (labelled_corpora.PRESENT if "anger" in kinds else 0.0)
