"""Names of what a metric measures: each number has one of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evenhand.core.errors import InputError
from evenhand.core.records import MetricInfo, OutputInfo

TOXIC = OutputInfo("toxic", "continuous", "more toxic", low=0.0, high=1.0, labels=("fine", "toxic"))


def info(*outputs: OutputInfo, primary: tuple[str, ...] = ()) -> MetricInfo:
    return MetricInfo("m", "1", outputs, "", primary=primary)


def names(of: MetricInfo) -> list[str]:
    return [name for output in of.outputs for name in output.shares().values()]


def test_a_label_named_like_its_output_has_another_name() -> None:
    named = info(TOXIC, primary=("toxic", "fine"))
    assert names(named) == ["toxic.fine", "toxic.toxic"]
    # The name of an output means the output; that of a label goes with it.
    assert named.primary == ("toxic", "toxic.fine")
    assert replace(named, summary="x") == replace(info(TOXIC, primary=("toxic", "fine")), summary="x")


def test_a_label_named_like_another_output_has_another_name() -> None:
    verdict = OutputInfo("verdict", "label", "", labels=("toxic", "fine"))
    mean = replace(TOXIC, labels=())
    for outputs in ((verdict, mean), (mean, verdict)):
        assert names(info(*outputs)) == ["verdict.toxic", "verdict.fine"]


def test_labels_of_two_outputs_have_a_name_each() -> None:
    first, second = (OutputInfo(name, "label", "", labels=("yes", "no")) for name in ("a", "b"))
    assert names(info(first, second, primary=("yes",))) == ["yes", "no", "b.yes", "b.no"]
    assert info(first, second, primary=("yes",)).primary == ("yes",)


def test_other_names_stay() -> None:
    # An output that has labels only is not compared by itself.
    assert names(info(replace(TOXIC, kind="label"))) == ["fine", "toxic"]
    assert names(info(replace(TOXIC, share="is {label}"))) == ["is fine", "is toxic"]
    assert names(info(replace(TOXIC, name="a{b}", labels=("a{b}",)))) == ["a{b}.a{b}"]


@pytest.mark.parametrize("outputs", [(TOXIC, TOXIC), (TOXIC, replace(TOXIC, name="toxic.toxic"))])
def test_names_that_cannot_be_told_apart_are_refused(outputs: tuple[OutputInfo, ...]) -> None:
    with pytest.raises(InputError, match=r"^the metric 'm' has two numbers named 'toxic"):
        info(*outputs)
