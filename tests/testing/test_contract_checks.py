"""Every check finds what it is for, and lets through what keeps its contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from evenhand.core import registry
from evenhand.core.protocols import Cell
from evenhand.core.records import (
    Completion,
    GenerationSpec,
    Group,
    MetricInfo,
    ModelRef,
    OutputInfo,
    Prompt,
    Request,
    SuiteInfo,
    Text,
    Value,
)
from evenhand.testing import ContractError, StubModel, check_metric, check_model, check_suite


class Echo:
    """A model that keeps its contract; subclasses break it in one place each."""

    ref = ModelRef("echo", "echo")

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        for request in requests:
            for sample in request.samples:
                yield self.answer(request, sample)

    def answer(self, request: Request, sample: int) -> Completion:
        return Completion(request.id, sample, f" {request.text}{sample}", "stop", 1, 1)


class Forgetful(Echo):
    def answer(self, request: Request, sample: int) -> Completion:
        return super().answer(request, min(sample, 1))


class Silent(Echo):
    def answer(self, request: Request, sample: int) -> Completion:
        return Completion(request.id, sample, None, None)


class Unfinished(Echo):
    def answer(self, request: Request, sample: int) -> Completion:
        return replace(super().answer(request, sample), finish=None, new_tokens=-1)


class Counting(Echo):
    def __init__(self) -> None:
        self.count = 0

    def answer(self, request: Request, sample: int) -> Completion:
        self.count += 1
        return replace(super().answer(request, sample), text=str(self.count))


class Drifting(Counting):
    ref = ModelRef("echo", "echo", repeatable=False)

    def answer(self, request: Request, sample: int) -> Completion:
        self.ref = replace(self.ref, revision=str(self.count))
        return super().answer(request, sample)


class Nameless(Echo):
    ref = ModelRef("", "", options={"x": 1})  # type: ignore[dict-item]


def breaches(error: pytest.ExceptionInfo[ContractError]) -> str:
    return " | ".join(error.value.breaches)


def test_good_models_pass() -> None:
    check_model(Echo())
    check_model(StubModel())
    check_model(StubModel(), prompts=["One"], spec=GenerationSpec(seed=3))


@pytest.mark.parametrize(
    ("model", "found"),
    [
        (Forgetful(), "('prompt-0', 2) was not answered"),
        (Forgetful(), "('prompt-0', 1) was answered without a request, or twice"),
        (Silent(), "has a text and a failure, or neither"),
        (Unfinished(), "has a finish without a text, or a text without one"),
        (Unfinished(), "has a negative token count"),
        (Counting(), "it generates a different text the second time"),
        (Counting(), "it generates a different text as a single sample"),
        (Drifting(), "its ref changes when it generates"),
        (Nameless(), "its ref lacks a back-end or a name"),
        (Nameless(), "its option 'x' is not a string"),
        (StubModel(fail_every=5), "it generates a different text in another order"),
    ],
)
def test_broken_models_are_found_out(model: Echo, found: str) -> None:
    with pytest.raises(ContractError) as caught:
        check_model(model)
    assert found in breaches(caught)


def test_what_is_no_model_at_all() -> None:
    with pytest.raises(ContractError, match=r"^str: it is not a Model$"):
        check_model("gpt2")  # type: ignore[arg-type]


OUTPUT = OutputInfo("length", "continuous", "longer", low=0, high=2000, labels=("short", "long"))
INFO = MetricInfo("length", "1", (OUTPUT,), "How long a text is.", primary=("length", "long"))


class Length:
    info = INFO

    def score(self, texts: Sequence[Text]) -> list[Mapping[str, Value]]:
        return [{"length": self.value(text.text, texts)} for text in texts]

    def value(self, text: str, texts: Sequence[Text]) -> Value:
        if not text:
            return Value(None, None, "empty")
        return Value(len(text), "short" if len(text) < 30 else "long")


class Nan(Length):
    def value(self, text: str, texts: Sequence[Text]) -> Value:
        return Value(float("nan") if not text else 1.0)


class Unexplained(Length):
    def value(self, text: str, texts: Sequence[Text]) -> Value:
        return Value(None)


class Outside(Length):
    def value(self, text: str, texts: Sequence[Text]) -> Value:
        return Value(-1.0, "tiny")


class Neighbourly(Length):
    def value(self, text: str, texts: Sequence[Text]) -> Value:
        return Value(float(len(texts)))


class Ordered(Length):
    def value(self, text: str, texts: Sequence[Text]) -> Value:
        return Value(float(len(texts[0].text)))


class Extra(Length):
    def score(self, texts: Sequence[Text]) -> list[Mapping[str, Value]]:
        return [{**row, "more": Value(1.0)} for row in super().score(texts)]


class Short(Length):
    def score(self, texts: Sequence[Text]) -> list[Mapping[str, Value]]:
        return super().score(texts)[:-1]


class Careless(Length):
    info = replace(INFO, version="", primary=("unknown",), outputs=(replace(OUTPUT, larger_means=""),))


def test_a_good_metric_passes() -> None:
    check_metric(Length())


@pytest.mark.parametrize(
    ("metric", "found"),
    [
        (Nan(), "'length' is nan, which must be null with a reason"),
        (Unexplained(), "'length' is null without a reason, or has a value and a reason"),
        (Outside(), "'length' is -1.0, outside 0 to 2000"),
        (Outside(), "'length' has the label 'tiny', which is not declared"),
        (Neighbourly(), "it scores a text differently when it is alone"),
        (Ordered(), "it scores differently in another order"),
        (Extra(), "a row has the outputs ['length', 'more'] instead of the declared ['length']"),
        (Short(), "it returns 6 rows for 7 texts"),
        (Careless(), "the output 'length' lacks larger_means, the meaning of larger values"),
        (Careless(), "the primary output 'unknown' is not declared"),
        (Careless(), "its info lacks a version or a summary"),
    ],
)
def test_broken_metrics_are_found_out(metric: Length, found: str) -> None:
    with pytest.raises(ContractError) as caught:
        check_metric(metric)
    assert found in breaches(caught)


class Words:
    """A set metric that keeps its contract."""

    info = MetricInfo(
        "words", "1", (OutputInfo("words", "continuous", "more"),), "Words.", primary=("words",)
    )

    def measure(self, cells: Mapping[Cell, Sequence[Text]]) -> dict[Cell, Mapping[str, Value]]:
        return {cell: {"words": self.value(texts, cells)} for cell, texts in cells.items()}

    def value(self, texts: Sequence[Text], cells: Mapping[Cell, Sequence[Text]]) -> Value:
        if not texts:
            return Value(None, None, "no_texts")
        return Value(float(len({word for text in texts for word in text.text.split()})))


class Sociable(Words):
    def value(self, texts: Sequence[Text], cells: Mapping[Cell, Sequence[Text]]) -> Value:
        return Value(float(len(cells)))


def test_set_metrics() -> None:
    check_metric(Words())
    with pytest.raises(ContractError, match="it measures a cell differently when it is alone"):
        check_metric(Sociable())


PROMPT = Prompt.create("mine", "The man", groups=(Group("gender", "men"),), cluster="c")
OTHER = Prompt.create("mine", "The woman", groups=(Group("gender", "women"),), cluster="c")


class Mine:
    info = SuiteInfo("mine", "1", "Two prompts.", {"gender": "men"}, ("sentiment",))
    listed: Sequence[Prompt] = (PROMPT, OTHER)

    def prompts(self) -> Iterator[Prompt]:
        yield from self.listed


def suite(listed: Sequence[Prompt], **info: object) -> Mine:
    made = Mine()
    made.listed = listed
    made.info = replace(Mine.info, **info)  # type: ignore[arg-type]
    return made


def test_a_good_suite_passes() -> None:
    check_suite(Mine())


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (suite([]), "it has no prompts"),
        (suite([PROMPT, PROMPT]), f"the id '{PROMPT.id}' occurs 2 times"),
        (suite([replace(PROMPT, text=" ")]), "lacks a text, a cluster or an id"),
        (suite([replace(PROMPT, groups=())]), "has no group"),
        (suite([replace(PROMPT, suite="other")]), "names the suite 'other'"),
        (suite([replace(PROMPT, groups=(Group("age", "old"),))]), "the axis 'age' has no baseline"),
        (
            suite([replace(PROMPT, groups=(Group("gender", "(all)"),))]),
            "the group name '(all)' is reserved or empty",
        ),
        (suite([OTHER]), "the baseline 'men' of the axis 'gender' is not one of its groups"),
        (suite([PROMPT], summary=""), "its info lacks a version, a summary or default metrics"),
    ],
)
def test_broken_suites_are_found_out(made: Mine, found: str) -> None:
    with pytest.raises(ContractError) as caught:
        check_suite(made)
    assert found in breaches(caught)


def test_a_suite_that_changes_its_mind() -> None:
    class Fickle(Mine):
        def prompts(self) -> Iterator[Prompt]:
            self.listed = self.listed[::-1]
            yield from self.listed

    with pytest.raises(ContractError, match="its prompts differ on the second call"):
        check_suite(Fickle())


NEEDS_INPUT = {"templates", "hub", "eec", "bits", "crows", "bold", "bold-subset", "bold-table-3"}
"""Suites that are a user's own file, or published by others."""


@pytest.mark.parametrize(
    "name", [entry.name for entry in registry.list_entries("suites") if entry.name not in NEEDS_INPUT]
)
def test_registered_suites_keep_the_contract(name: str) -> None:
    check_suite(registry.create_suite(name))


@pytest.mark.parametrize("name", [entry.name for entry in registry.list_entries("metrics")])
def test_registered_metrics_keep_the_contract(name: str) -> None:
    check_metric(registry.create_metric(name))
