"""The four metrics behind a classifier: rows, labels, nulls, contracts and directions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.classifiers.tiny_classifier import tiny_folder

from evenhand.core.errors import InputError
from evenhand.core.protocols import Metric
from evenhand.core.records import Execution, MetricInfo, OutputInfo, Text, Value
from evenhand.metrics.classifier_scores import ClassifierMetric, OutputRow
from evenhand.metrics.emotion import Emotion
from evenhand.metrics.ideology import Ideology
from evenhand.metrics.regard import Regard
from evenhand.metrics.toxicity import Toxicity
from evenhand.testing import check_metric

METRICS: tuple[Callable[..., Metric], ...] = (Regard, Toxicity, Emotion, Ideology)


def values(metric: Metric, output: str, *texts: str) -> list[float]:
    found = [row[output].value for row in metric.score([Text(text) for text in texts])]
    return [value for value in found if value is not None]


def label(metric: Metric, output: str, text: str) -> str | None:
    return metric.score([Text(text)])[0][output].label


@pytest.mark.parametrize("metric", METRICS)
def test_the_contract_is_kept(metric: Callable[..., Metric]) -> None:
    check_metric(metric())


@pytest.mark.parametrize("metric", METRICS)
def test_another_folder_is_another_identity(metric: Callable[..., Metric], tmp_path: Path) -> None:
    other = metric(source=str(tiny_folder(tmp_path)), execution=Execution(device="cpu", batch=2))
    check_metric(other)
    assert other.info.identity() != metric().info.identity()
    assert other.info.options["source"] == str(tmp_path)


def test_empty_texts_are_null_and_never_read() -> None:
    class Reader:
        labels, digest = ("yes",), ""

        def read(self, texts: Sequence[str]) -> np.ndarray:
            assert list(texts) == ["a"]
            return np.array([[0.5]])

    class Metric(ClassifierMetric):
        info = MetricInfo("m", "1", (), "A metric.", primary=())

        def _row(self, said: Mapping[str, float]) -> OutputRow:
            return {"x": Value(said["yes"])}

    metric = Metric((OutputInfo("x", "continuous", "more"),), {}, Reader())
    rows = metric.score([Text(" "), Text("a")])
    assert rows[1]["x"].value == 0.5
    assert rows[0]["x"].null_reason == "empty"
    assert rows[0]["x"].value is None


def test_regard_follows_what_people_would_think_of_the_person() -> None:
    regard = Regard()
    praised, plain, blamed = values(
        regard,
        "regard",
        "XYZ was known for saving three children from a fire.",
        "XYZ worked as a clerk at the town hall.",
        "XYZ was known for beating his dogs and stealing from neighbors.",
    )
    assert praised > plain > blamed
    assert label(regard, "regard", "XYZ earned money by selling drugs.") == "negative"
    assert label(regard, "regard", "XYZ worked as a cashier in a shop.") == "neutral"
    assert label(regard, "regard", "XYZ was described as a brilliant and generous doctor.") == "positive"


def test_regard_is_not_sentiment() -> None:
    # A cheerful pimp: happy words, low regard.
    assert label(Regard(), "regard", "XYZ worked as a pimp and was always cheerful and happy.") == "negative"


def test_other_needs_a_majority() -> None:
    labels = ("negative", "neutral", "positive", "other")
    row = Regard()._row(dict(zip(labels, (0.3, 0.0, 0.21, 0.49), strict=True)))
    assert row["regard"].label == "negative"
    assert row["regard"].value == pytest.approx(0.21 - 0.3)
    assert Regard()._row(dict(zip(labels, (0.25, 0.0, 0.25, 0.5), strict=True)))["regard"].label == "other"


def test_abuse_is_more_toxic_than_praise() -> None:
    toxicity = Toxicity()
    abuse, praise = values(
        toxicity, "toxicity", "You are a stupid idiot, shut up.", "You are a kind and helpful person."
    )
    assert abuse > 0.9 > 0.1 > praise
    assert label(toxicity, "toxicity", "You are a stupid idiot, shut up.") == "toxic"
    assert Toxicity(cut=0.999).info.identity() != toxicity.info.identity()


def test_the_cut_is_part_of_toxic() -> None:
    assert Toxicity(cut=0.6)._row({"toxic": 0.6})["toxicity"].label == "toxic"
    assert Toxicity(cut=0.61)._row({"toxic": 0.6})["toxicity"].label == "nontoxic"
    with pytest.raises(InputError, match=r"^the toxicity cut is 1\. Expected: a number between 0 and 1\. "):
        Toxicity(cut=1)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("anger", "I am furious, how dare you lie to me again!"),
        ("fear", "I am terrified of what is behind that door."),
        ("joy", "What a wonderful day, I am so happy!"),
        ("sadness", "I miss her so much, my heart is broken."),
        ("neutral", "The meeting is on the second floor."),
    ],
)
def test_each_emotion_leads_in_its_own_sentence(kind: str, text: str) -> None:
    (row,) = Emotion().score([Text(text)])
    assert row["emotion"].label == kind
    if kind != "neutral":
        strengths = {name: row[name].value or 0.0 for name in ("anger", "fear", "joy", "sadness")}
        assert max(strengths, key=lambda name: strengths[name]) == kind


def test_ideology_is_the_probability_of_conservative() -> None:
    right, left = values(
        Ideology(),
        "ideology",
        " liberals in the mainstream media want abortion on demand, open borders and higher taxes, and"
        " pro-life Christians will not stand for it.",
        " advocates for undocumented immigrants and abortion rights said the president's lies about climate"
        " change hurt poor and LGBTQ communities.",
    )
    assert right > 0.5 > left


def test_ideology_reads_the_continuation_unless_told() -> None:
    assert Ideology().info.scope == "continuation"
    assert Ideology(scope="full").info.identity() != Ideology().info.identity()
    with pytest.raises(
        InputError, match=r"^the ideology scope is 'prompt'\. Expected: continuation, full\. "
    ):
        Ideology(scope="prompt")  # type: ignore[arg-type]


def test_a_centre_is_left_out_of_ideology(tmp_path: Path) -> None:
    metric = Ideology(source=str(tiny_folder(tmp_path)))
    # Right 0.3, left 0.1, centre 0.6: 0.3 / 0.4.
    assert metric._row({"conservative": 0.3, "liberal": 0.1})["ideology"].value == pytest.approx(0.75)
    assert metric._row({"conservative": 0.0, "liberal": 0.0})["ideology"].value == 0.5


@pytest.mark.parametrize("metric", METRICS)
def test_without_torch_a_metric_says_what_it_lacks(metric: type) -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        f"from {metric.__module__} import {metric.__name__}\n"
        f"try:\n    {metric.__name__}()\nexcept ImportError as error:\n    print(error.name)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "torch"
