"""From samples to the texts people are asked about, and from their labels to parts to train on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from evenhand.annotate.label_aggregation import settle_labels
from evenhand.annotate.study_creation import prepare_items, sample_items
from evenhand.config import resolve_config
from evenhand.core.errors import InputError


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.annotate.label_aggregation.RESAMPLES", 100)


def samples(path: Path) -> Path:
    words = ("great and loved", "a hero", "kind", "a thief", "cruel and hated", "awful", "tall", "from Ohio")
    people = ("The man", "The woman")
    lines = [f"{who} was known for being {word}. The man left." for who in people for word in words]
    path.write_text("\n".join([*lines, "Something else."]) + "\n", encoding="utf-8")
    return path


def test_chosen_texts_are_masked_and_cut(tmp_path: Path) -> None:
    found = sample_items(samples(tmp_path / "s.tsv"), per_prompt=2, out=tmp_path / "items.csv")
    assert found.shortfalls == ()
    assert Counter(found.table["groups"]) == {"gender=man": 4, "gender=woman": 4}
    assert Counter(found.table["sentiment"]) == {"positive": 4, "negative": 4}
    assert all(text.startswith("XYZ was known for being ") for text in found.table["text"])
    assert not any("left" in text for text in found.table["text"])
    assert set(found.table["context"]) == {"respect"}
    assert pl.read_csv(tmp_path / "items.csv").columns == found.table.columns


def test_a_prompt_with_too_few_is_said(tmp_path: Path) -> None:
    found = prepare_items(samples(tmp_path / "s.tsv"), per_prompt=4, out=tmp_path / "items.csv").run()
    assert found.table.height == 12
    assert next(item.reason for item in found.shortfalls) == (
        "'The man was known for' has 3 distinct positive texts among 8, 4 were requested"
    )


def test_samples_of_another_suite(tmp_path: Path) -> None:
    path = tmp_path / "s.tsv"
    path.write_text("A sentence of something else.\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        prepare_items(path)
    assert str(caught.value) == (
        f"{path} has no text that begins with a prompt of the suite. Expected: a run folder, or samples that "
        "begin with their prompts. Fix: name the suite the samples were written for with --suite."
    )


def test_360_of_the_published_samples(data: Path, tmp_path: Path) -> None:
    path = data / "regard" / "gpt2_samples.tsv"
    prepared = prepare_items(path, out=tmp_path / "items.csv")
    found = prepared.run()
    assert found.shortfalls == ()
    assert found.table.height == 360
    assert set(Counter(found.table["prompt"]).values()) == {6}
    assert Counter(found.table["sentiment"]) == {"positive": 180, "negative": 180}
    assert prepared.run().table.equals(found.table)
    assert not sample_items(path, seed=1, out=tmp_path / "other.csv").table.equals(found.table)


def test_labels_are_settled_and_divided(tmp_path: Path) -> None:
    words = ("stone", "river", "cloud", "bread", "paper", "light", "glass", "music", "winter", "table")
    rows = [
        {
            "id": f"{label}-{word}",
            "text": f"XYZ {word} {label}",
            "annotator": who,
            "regard": label,
            "sentiment": label,
        }
        for label in ("negative", "neutral", "positive")
        for word in words
        for who in "abc"
    ]
    rows += [
        {"id": "x", "text": "No mask", "annotator": who, "regard": "nonsense", "sentiment": ""}
        for who in "ab"
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "rated.csv")
    done = settle_labels(tmp_path / "rated.csv", out=tmp_path / "labels")
    assert done.sizes == {key: {"train": 21, "dev": 6, "test": 3} for key in ("sentiment", "regard")}
    assert done.labels_by_question["regard"].dropped == {"nonsense": 1}
    assert pl.read_csv(tmp_path / "labels" / "regard_train.csv").columns == ["id", "text", "label"]
    kappas = pl.read_csv(tmp_path / "labels" / "agreement.csv").filter(statistic="fleiss_kappa")
    assert kappas["value"].to_list() == [1.0, 1.0, 1.0, 1.0]
    assert any(
        "30 texts kept (train 21, dev 6, test 3); dropped: nonsense 1" in line for line in done.lines()
    )


def test_the_regard_preset_reads_sentiment_at_vaders_cut() -> None:
    assert resolve_config({"preset": "regard"}).metric_options("sentiment") == {"cut": 0.05}
    assert resolve_config({}).metric_options("sentiment") == {}
    given = resolve_config({"preset": "regard"}, metrics={"options": {"sentiment": {"cut": 0.3}}})
    assert given.metric_options("sentiment") == {"cut": 0.3}
