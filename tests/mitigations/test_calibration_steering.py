"""Calibration inside the sampling loop: strengths, memory, company, overflow."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.oracles import calibration as oracle
from torch import Tensor

from evenhand.core.protocols import Step
from evenhand.core.records import GenerationSpec, Request
from evenhand.mitigations.calibration import CalibrationConfig, Mode
from evenhand.mitigations.calibration_steering import LEAST, MOST, CalibrationSteering, adapt_strength
from evenhand.mitigations.calibrator import Calibrator, States
from evenhand.mitigations.word_lists import WordLists, word_list_vectors
from evenhand.models.local import CausalModel
from evenhand.testing.contract_checks import check_model

SPEC = GenerationSpec(max_new_tokens=8, top_k=40, top_p=1.0, stop="none")
SIDES = WordLists(("a", "b"), (("man", "doctor"), ("woman", "work")))


def head_of(width: int = 32, states: States = "written") -> Calibrator:
    random = torch.Generator().manual_seed(3)
    inner, outer = torch.randn(6, width, generator=random), torch.randn(6, generator=random)
    return Calibrator(inner, torch.zeros(6), outer, torch.tensor(0.5), ("a", "b"), "m", "r", states)


def steering(
    model: CausalModel, mode: Mode = "embedding", **options: float | bool | str
) -> CalibrationSteering:
    anatomy = model.anatomy()
    settings = CalibrationConfig(mode=mode, **options)  # type: ignore[arg-type]
    if mode == "classifier":
        return CalibrationSteering(anatomy, settings, head=head_of())
    return CalibrationSteering(anatomy, settings, vectors=word_list_vectors(SIDES, anatomy, pieces="mean"))


def steps(model: CausalModel, count: int, rows: int = 2) -> list[Step]:
    """Steps of real states, as the loop would hand them on."""
    random = torch.Generator().manual_seed(0)
    engine = model.loop.engine
    batch = engine.create_cache(rows, count + 2)
    batch.fill(list(range(rows)), engine.prefill([[5 + row] for row in range(rows)]))
    found, last = [], torch.arange(rows) + 9
    for _ in range(count):
        said = batch.step(last)
        uniforms = torch.rand(rows, generator=random, dtype=torch.float64)
        found.append(Step(said.hidden, said.logits, list(range(rows)), last, uniforms))
        last = torch.randint(1, 300, (rows,), generator=random)
    return found


def test_strengths_are_halved_and_doubled_at_the_papers_marks() -> None:
    settings = CalibrationConfig(sigma=0.02)
    # 2 sigma = 0.04 halves, sigma / 2 = 0.01 doubles, between nothing happens.
    divergence = torch.tensor([0.05, 0.04, 0.039, 0.011, 0.01, 0.0])
    assert adapt_strength(torch.full((6,), 0.6), divergence, settings).tolist() == pytest.approx(
        [0.3, 0.3, 0.6, 0.6, 1.2, 1.2]
    )
    ends = adapt_strength(torch.tensor([LEAST, MOST]), torch.tensor([1.0, 0.0]), settings)
    assert ends.tolist() == [LEAST, MOST]


def two_logits(head: Calibrator, states: Tensor) -> Tensor:
    odds = head.logit(states)
    return torch.stack([torch.zeros_like(odds), odds], -1)


@pytest.mark.parametrize("states", ["written", "hidden"])
def test_a_text_is_remembered_as_the_oracle_remembers_it(small: CausalModel, states: States) -> None:
    settings = CalibrationConfig(mode="classifier", sigma=0.05, rate=0.003, window=2, support=300)
    head, anatomy = head_of(states=states), small.anatomy()
    guide = CalibrationSteering(anatomy, settings, head=head).begin(keep=40)
    table, strength = anatomy.table, 0.6
    text = oracle.Text(strength)
    for step in steps(small, 5):
        tokens = guide(step)
        text.states.append(step.hidden[0])
        state, divergence = oracle.calibrated(
            step.hidden[0],
            table,
            lambda hidden: oracle.classifier_gain(
                hidden,
                text,
                lambda seen: two_logits(head, seen),
                settings,
                table if states == "written" else None,
            ),
            strength,
            settings,
        )
        assert tokens.tokens is not None
        truth = (table @ state)[tokens.tokens[0]].softmax(-1)
        assert oracle.total_variation(truth, tokens.logits[0].softmax(-1)) < 5e-3
        strength = oracle.next_strength(strength, divergence, 0.05)
        assert guide.memory is not None
        assert guide.memory.strength[0].item() == pytest.approx(strength)


def test_what_words_said_earlier_is_remembered_as_the_oracle_remembers_it(small: CausalModel) -> None:
    settings = CalibrationConfig(rate=0.003, support=300, balance=1.0)
    anatomy = small.anatomy()
    vectors = word_list_vectors(SIDES, anatomy, pieces="mean")._replace(centre=0.3)
    guide = CalibrationSteering(anatomy, settings, vectors=vectors).begin(keep=40)
    coded = [anatomy.encode([f" {word}" for word in words]) for words in SIDES.words]
    table, strength, earlier = anatomy.table, 0.6, list[Tensor]()
    for step in steps(small, 5):
        tokens = guide(step)
        state, divergence = oracle.calibrated(
            step.hidden[0],
            table,
            lambda hidden, vanilla=step.hidden[0]: oracle.embedding_gain(
                hidden, vanilla, table, (coded[0], coded[1]), settings, 0.3, earlier
            ),
            strength,
            settings,
        )
        assert tokens.tokens is not None
        truth = (table @ state)[tokens.tokens[0]].softmax(-1)
        assert oracle.total_variation(truth, tokens.logits[0].softmax(-1)) < 5e-3
        strength = oracle.next_strength(strength, divergence, settings.sigma)
        earlier.append(step.hidden[0])


def test_without_truncation_the_whole_vocabulary_comes_back(small: CausalModel) -> None:
    step = steps(small, 1)[0]
    for keep, whole in ((40, False), (0, True), (200, True), (1, False)):
        found = steering(small, support=128).begin(keep=keep)(step)
        assert (found.tokens is None) == whole
        assert found.logits.shape == ((2, 300) if whole else (2, 128))
    short = steering(small).begin(keep=40)(step)
    full = steering(small).begin(keep=0)(step)
    assert short.tokens is not None
    inside = full.logits.gather(-1, short.tokens).softmax(-1)
    assert oracle.total_variation(inside[0], short.logits[0].softmax(-1)) < 5e-3


def test_strength_0_is_the_model_itself(small: CausalModel) -> None:
    step = steps(small, 1)[0]
    assert torch.equal(steering(small, strength=0.0).begin(keep=40)(step).logits, step.logits)


@pytest.mark.parametrize("mode", ["embedding", "classifier"])
@pytest.mark.parametrize("ratio", ["expected", "sampled"])
def test_a_steered_model_keeps_the_contract(small: CausalModel, mode: Mode, ratio: str) -> None:
    steered = small.steered(steering(small, mode, ratio=ratio), name="calibration", options={})
    check_model(steered, spec=SPEC)


def test_rows_that_come_and_go_do_not_change_each_other(small: CausalModel) -> None:
    requests = [Request(f"p{place}", "The man worked" if place % 2 else "A", (0, 1)) for place in range(4)]
    steered = small.steered(steering(small, "classifier"), name="calibration", options={})
    texts = {}
    for batch in (1, 3, 8):
        sized = replace(steered, loop=replace(steered.loop, batch=batch))
        texts[batch] = {(c.request_id, c.sample): c.text for c in sized.generate(requests, SPEC)}
    assert texts[1] == texts[3] == texts[8]
    plain = {(c.request_id, c.sample): c.text for c in small.generate(requests, SPEC)}
    assert plain != texts[1]


def test_a_new_text_begins_with_the_first_strength_unless_it_is_carried(small: CausalModel) -> None:
    seen = steps(small, 3)
    for carry in (False, True):
        guide = steering(small, sigma=5.0, carry=carry).begin(keep=40)
        for step in seen[:2]:
            guide(step)
        # Twice below sigma / 2: doubled twice.
        assert guide.memory is not None
        assert guide.memory.strength.tolist() == pytest.approx([2.4, 2.4])
        guide(seen[2]._replace(rows=[0, 7]))
        assert guide.memory.strength.tolist() == pytest.approx([4.8, 4.8 if carry else 1.2])


def test_a_row_that_overflows_stays_as_the_model_had_it(small: CausalModel) -> None:
    step = steps(small, 1)[0]
    hidden = step.hidden.clone()
    hidden[0] = torch.finfo(torch.float32).max
    broken = step._replace(hidden=hidden)
    for keep in (40, 0):
        found = steering(small).begin(keep=keep)(broken)
        own = step.logits if found.tokens is None else step.logits.gather(-1, found.tokens)
        assert torch.equal(found.logits[0], own[0])
        assert not torch.equal(found.logits[1], own[1])
        assert found.logits.isfinite().all()


@pytest.mark.parametrize("mode", ["embedding", "classifier"])
def test_a_row_that_overflowed_goes_on_with_what_it_knew(small: CausalModel, mode: Mode) -> None:
    first, second = steps(small, 2)
    hidden = first.hidden.clone()
    hidden[0] = torch.inf
    guide = steering(small, mode=mode).begin(keep=40)
    guide(first._replace(hidden=hidden))
    assert guide.memory is not None
    assert all(part.isfinite().all() for part in guide.memory)
    assert not guide.memory.total[0].any()
    # The next token of the row is steered as if it were its first.
    found = guide(second)
    fresh = steering(small, mode=mode).begin(keep=40)(second)
    assert torch.equal(found.logits[0], fresh.logits[0])
    assert not torch.equal(found.logits[0], second.logits.gather(-1, found.tokens)[0])
    assert not torch.equal(found.logits[1], fresh.logits[1])


def test_half_precision_states_are_calibrated_in_single_precision(small: CausalModel) -> None:
    step = steps(small, 1)[0]
    exact = steering(small).begin(keep=40)(step)
    half = steering(small).begin(keep=40)(step._replace(hidden=step.hidden.half()))
    assert half.logits.dtype == torch.float32
    assert oracle.total_variation(exact.logits[0].softmax(-1), half.logits[0].softmax(-1)) < 0.02


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("mode", ["embedding", "classifier"])
def test_a_model_in_half_precision_is_calibrated_alike(
    small: CausalModel, mode: Mode, kind: torch.dtype
) -> None:
    step, exact = steps(small, 1)[0], steering(small, mode)
    anatomy = exact.lm_head._replace(table=exact.lm_head.table.to(kind))
    rough = replace(exact, lm_head=anatomy)
    for keep in (40, 0):
        one = exact.begin(keep=keep)(step)
        other = rough.begin(keep=keep)(step._replace(hidden=step.hidden.to(kind)))
        assert other.logits.dtype == torch.float32
        away = oracle.total_variation(one.logits[0].softmax(-1), other.logits[0].softmax(-1))
        assert away < 0.02
