"""Contract checks that every model, metric and suite must pass, whoever wrote it.

Each check runs the object on small inputs and raises ``ContractError`` with all problems found, so that one
run shows everything there is to fix.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from evenhand.core.digests import digest
from evenhand.core.protocols import Cell, Metric, Model, SetMetric, Suite
from evenhand.core.records import (
    RESERVED_GROUPS,
    Completion,
    GenerationSpec,
    MetricInfo,
    Prompt,
    Request,
    SuiteInfo,
    Text,
    Value,
)

PROMPTS = ("The man worked as", "The woman was known for", "Zoë said “hello” to", "")
TEXTS = tuple(
    Text(text)
    for text in (
        "She was a wonderful doctor, and everybody liked her.",
        "He was terrible at his job and hated by all.",
        "The committee met on Tuesday.",
        "",
        "   ",
        "XYZ was known for — café, naïve, 日本, \U0001f600!",
        "word " * 200,
    )
)


class ContractError(AssertionError):
    """A model, metric or suite violates its contract; the message lists all violations."""

    def __init__(self, name: str, breaches: Sequence[str]) -> None:
        self.breaches = tuple(breaches)
        super().__init__(f"{name}: " + "; ".join(breaches))


def check_model(
    model: Model, *, prompts: Sequence[str] = PROMPTS, spec: GenerationSpec | None = None
) -> None:
    """Check that every request and sample is answered once, and that failures have codes.

    For repeatable models, also check that texts do not depend on order or batch.
    """
    _require(model, Model)
    spec = spec or GenerationSpec(max_new_tokens=8)
    requests = [Request(f"prompt-{index}", text, (0, 1, 2)) for index, text in enumerate(prompts)]
    ref = model.ref
    completions = list(model.generate(requests, spec))
    breaches = [] if ref.backend and ref.name else ["its ref lacks a back-end or a name"]
    wrong = [key for key, value in ref.options.items() if not isinstance(value, str)]
    if wrong:
        breaches.append(f"its option {wrong[0]!r} is not a string")
    else:
        digest(ref.identity())
    breaches += _completion_breaches(requests, completions)
    if model.ref != ref:
        breaches.append("its ref changes when it generates")
    if ref.repeatable:
        texts = {(item.request_id, item.sample): item.text for item in completions}
        last = requests[-1]
        ways: Mapping[str, Sequence[Request]] = {
            "the second time": requests,
            "in another order": requests[::-1],
            "alone": requests[:1],
            "as a single sample": [Request(last.id, last.text, last.samples[-1:])],
        }
        for way, some in ways.items():
            again = {(item.request_id, item.sample): item.text for item in model.generate(some, spec)}
            if any(texts.get(place) != text for place, text in again.items()):
                breaches.append(f"it generates a different text {way}")
    _report(f"model {ref.name!r}", breaches)


def check_metric(metric: Metric | SetMetric, *, texts: Sequence[Text] = TEXTS) -> None:
    """Check declared outputs, reasons for nulls, value ranges, and that scores do not depend on the batch."""
    if isinstance(metric, SetMetric):
        breaches = _info_breaches(metric.info) + _cell_breaches(metric, texts)
    else:
        _require(metric, Metric)
        breaches = _info_breaches(metric.info) + _score_breaches(metric, texts)
    _report(f"metric {metric.info.name!r}", breaches)


def check_suite(suite: Suite) -> None:
    """Check that prompts are stable and complete, and groups are on axes with an existing baseline."""
    _require(suite, Suite)
    prompts = list(suite.prompts())
    info = suite.info
    breaches = [] if prompts else ["it has no prompts"]
    if list(suite.prompts()) != prompts:
        breaches.append("its prompts differ on the second call")
    counts = Counter(prompt.id for prompt in prompts)
    breaches += [f"the id {key!r} occurs {count} times" for key, count in counts.items() if count > 1]
    breaches += [breach for prompt in prompts for breach in _prompt_breaches(prompt, info)]
    groups = {(group.axis, group.name) for prompt in prompts for group in prompt.groups}
    breaches += [
        f"the baseline {name!r} of the axis {axis!r} is not one of its groups"
        for axis, name in info.baselines.items()
        if name not in RESERVED_GROUPS and (axis, name) not in groups
    ]
    if not (info.version and info.summary and info.metrics):
        breaches.append("its info lacks a version, a summary or default metrics")
    _report(f"suite {info.name!r}", breaches)


def _prompt_breaches(prompt: Prompt, info: SuiteInfo) -> list[str]:
    breaches, name = [], f"the prompt {prompt.id!r}"
    if prompt.suite != info.name:
        breaches.append(f"{name} names the suite {prompt.suite!r}")
    if not prompt.text.strip() or not prompt.cluster or not prompt.id:
        breaches.append(f"{name} lacks a text, a cluster or an id")
    if not prompt.groups:
        breaches.append(f"{name} has no group")
    for group in prompt.groups:
        if group.axis not in info.baselines:
            breaches.append(f"the axis {group.axis!r} has no baseline")
        if group.name in RESERVED_GROUPS or not group.name:
            breaches.append(f"the group name {group.name!r} is reserved or empty")
    if any(not mention.text for mention in prompt.mentions):
        breaches.append(f"{name} has an empty mention")
    return breaches


def _require(thing: object, protocol: type) -> None:
    if not isinstance(thing, protocol):
        raise ContractError(type(thing).__name__, [f"it is not a {protocol.__name__}"])


def _report(name: str, breaches: Sequence[str]) -> None:
    if breaches:
        raise ContractError(name, list(dict.fromkeys(breaches)))


def _completion_breaches(requests: Sequence[Request], completions: Sequence[Completion]) -> list[str]:
    requested = Counter((request.id, sample) for request in requests for sample in request.samples)
    answered = Counter((item.request_id, item.sample) for item in completions)
    breaches = [f"{place} was not answered" for place in (requested - answered)]
    breaches += [f"{place} was answered without a request, or twice" for place in (answered - requested)]
    for item in completions:
        place = (item.request_id, item.sample)
        if (item.text is None) != (item.failure is not None):
            breaches.append(f"{place} has a text and a failure, or neither")
        if (item.text is None) != (item.finish is None):
            breaches.append(f"{place} has a finish without a text, or a text without one")
        if any(count is not None and count < 0 for count in (item.prompt_tokens, item.new_tokens)):
            breaches.append(f"{place} has a negative token count")
    return breaches


def _info_breaches(info: MetricInfo) -> list[str]:
    breaches = [] if info.outputs else ["it declares no output"]
    if not (info.version and info.summary):
        breaches.append("its info lacks a version or a summary")
    known = set[str]()
    for output in info.outputs:
        known |= {output.name, *output.shares().values()}
        if not output.larger_means:
            breaches.append(f"the output {output.name!r} lacks larger_means, the meaning of larger values")
    breaches += [f"the primary output {name!r} is not declared" for name in info.primary if name not in known]
    digest(info.identity())
    return breaches


def _score_breaches(metric: Metric, texts: Sequence[Text]) -> list[str]:
    rows = metric.score(texts)
    if len(rows) != len(texts):
        return [f"it returns {len(rows)} rows for {len(texts)} texts"]
    breaches = [breach for row in rows for breach in _row_breaches(row, metric.info)]
    if list(metric.score([])):
        breaches.append("it returns rows for an empty list")
    if not _are_same(metric.score(texts), rows):
        breaches.append("it scores differently on the second call")
    if not _are_same(metric.score(texts[::-1])[::-1], rows):
        breaches.append("it scores differently in another order")
    if not _are_same([metric.score([text])[0] for text in texts], rows):
        breaches.append("it scores a text differently when it is alone")
    return breaches


def _cell_breaches(metric: SetMetric, texts: Sequence[Text]) -> list[str]:
    cells = {Cell("axis", "all"): texts, Cell("axis", "one"): texts[:1], Cell("axis", "none"): texts[:0]}
    rows = metric.measure(cells)
    if set(rows) != set(cells):
        return ["it does not measure each cell once"]
    breaches = [breach for row in rows.values() for breach in _row_breaches(row, metric.info)]
    alone = [metric.measure({cell: some})[cell] for cell, some in cells.items()]
    if not _are_same(alone, [rows[cell] for cell in cells]):
        breaches.append("it measures a cell differently when it is alone")
    if not _are_same(list(metric.measure(cells).values()), list(rows.values())):
        breaches.append("it measures differently on the second call")
    return breaches


def _row_breaches(row: Mapping[str, Value], info: MetricInfo) -> list[str]:
    outputs = {output.name: output for output in info.outputs}
    if set(row) != set(outputs):
        return [f"a row has the outputs {sorted(row)} instead of the declared {sorted(outputs)}"]
    breaches = []
    for name, (number, label, reason) in row.items():
        output = outputs[name]
        low = -math.inf if output.low is None else output.low
        high = math.inf if output.high is None else output.high
        if (number is None and label is None) != (reason is not None):
            breaches.append(f"{name!r} is null without a reason, or has a value and a reason")
        if number is not None and not math.isfinite(number):
            breaches.append(f"{name!r} is {number}, which must be null with a reason")
        elif number is not None and not low <= number <= high:
            breaches.append(f"{name!r} is {number}, outside {low} to {high}")
        if label is not None and output.labels and label not in output.labels:
            breaches.append(f"{name!r} has the label {label!r}, which is not declared")
    return breaches


def _are_same(rows: Sequence[Mapping[str, Value]], others: Sequence[Mapping[str, Value]]) -> bool:
    """Equal up to rounding, which depends on the batch size."""
    return len(rows) == len(others) and all(
        row.keys() == other.keys() and all(_is_close(row[name], other[name]) for name in row)
        for row, other in zip(rows, others, strict=True)
    )


def _is_close(one: Value, other: Value) -> bool:
    if one.value is None or other.value is None:
        return one == other
    return math.isclose(one.value, other.value, rel_tol=1e-4, abs_tol=1e-4)
