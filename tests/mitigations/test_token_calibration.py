"""The closed-form step against autograd, term by term and as a whole."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import calibration as oracle
from torch import Tensor

from evenhand.core.protocols import LMHead
from evenhand.mitigations.calibration import CalibrationConfig
from evenhand.mitigations.calibration_steering import calibrate, expected_vector, find_support
from evenhand.mitigations.calibrator import Calibrator
from evenhand.mitigations.objective import ClassifierGain, EmbeddingGain, Gain
from evenhand.mitigations.word_lists import WordListVectors, read_word_lists, word_list_vectors
from evenhand.models.local import CausalModel

WORDS = ([[3], [4, 5]], [[6], [7], [8, 9, 10]])


def plain(table: Tensor) -> LMHead:
    return LMHead(table, None, lambda texts: [])


def model(seed: int = 0, *, tokens: int = 60, width: int = 16, rows: int = 4) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(tokens, width, generator=random) * 0.5, torch.randn(rows, width, generator=random)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def vectors(table: Tensor) -> WordListVectors:
    means = [torch.stack([table[word].mean(0) for word in side]).mean(0) for side in WORDS]
    return WordListVectors(means[0], means[1], (0.0, 0.0), 2)


def head_of(seed: int, width: int = 16) -> Calibrator:
    random = torch.Generator().manual_seed(seed)
    inner, outer = torch.randn(8, width, generator=random), torch.randn(8, generator=random)
    return Calibrator(inner, torch.zeros(8), outer, torch.tensor(0.3), ("a", "b"), "m", "r")


def two_logits(head: Calibrator, states: Tensor) -> Tensor:
    odds = head.logit(states)
    return torch.stack([torch.zeros_like(odds), odds], -1)


@given(st.integers(0, 50), st.sampled_from(["relative", "nats"]), st.sampled_from([0.0, 1.0, 20.0]))
@settings(max_examples=25, deadline=None)
def test_the_embedding_gain_and_its_slope_are_autograds(seed: int, scale: str, balance: float) -> None:
    table, hidden = model(seed)
    chosen = CalibrationConfig(scale=scale, balance=balance)  # type: ignore[arg-type]
    mass = (hidden @ table.T).logsumexp(-1)
    moved = hidden + 0.1
    gain = EmbeddingGain.of(vectors(table), hidden, mass, chosen, torch.zeros(4))
    now = (moved @ table.T).logsumexp(-1)
    mean = (moved @ table.T).softmax(-1) @ table
    value, slope = gain.value_and_gradient(moved - hidden, now, mean, moved)
    for row in range(len(hidden)):
        state = moved[row].clone().requires_grad_(True)
        truth = oracle.embedding_gain(state, hidden[row], table, WORDS, chosen)
        (wanted,) = torch.autograd.grad(truth, state)
        assert value[row].item() == pytest.approx(truth.item(), rel=1e-4, abs=1e-4)
        assert torch.allclose(slope[row], wanted, rtol=1e-3, atol=1e-4)


@given(st.integers(0, 50), st.integers(0, 3), st.integers(1, 6), st.booleans())
@settings(max_examples=40, deadline=None)
def test_the_classifier_gain_and_its_slope_are_autograds(
    seed: int, window: int, age: int, natural: bool
) -> None:
    table, states = model(seed, rows=age)
    chosen = CalibrationConfig(mode="classifier", window=window, gamma=0.9)
    head = head_of(seed)
    text = oracle.Text(0.6, list(states))

    def expected(state: Tensor) -> Tensor:
        return (table @ state).softmax(-1) @ table if natural else state

    seen = [
        oracle.accumulate(expected(states[place]), [expected(state) for state in states[:place]], 0.99)
        for place in range(max(0, age - 1 - window), age)
    ]
    inside = torch.stack(seen) @ head.inner.T + head.inner_bias
    weights = torch.tensor([0.9 ** (len(seen) - 1 - i) for i in range(len(seen))]) / (window + 1)
    share = torch.tensor([1 / sum(0.99**i for i in range(age))])
    before = expected(states[-1])[None] if natural else None
    gain = ClassifierGain(head, inside[None], share, weights[None], before)
    shift = torch.full((1, 16), 0.05)
    state = (states[-1] + shift[0]).clone().requires_grad_(True)
    value, slope = gain.value_and_gradient(
        shift, torch.zeros(1), expected(state.detach())[None], state.detach()[None]
    )
    truth = oracle.classifier_gain(
        state, text, lambda x: two_logits(head, x), chosen, table if natural else None
    )
    (wanted,) = torch.autograd.grad(truth, state)
    assert value.item() == pytest.approx(truth.item(), rel=1e-4, abs=1e-5)
    assert torch.allclose(slope[0], wanted, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("action", [None, 0, 3])
@pytest.mark.parametrize("strength", [0.05, 0.6])
def test_with_every_token_in_the_support_the_step_is_the_oracles(strength: float, action: int | None) -> None:
    table, hidden = model()
    chosen = CalibrationConfig(rate=0.003, balance=1.0)
    logits = hidden @ table.T
    support = find_support(hidden, logits, plain(table), size=60, exact=True)
    gain = EmbeddingGain.of(vectors(table), hidden, support.mass, chosen, torch.zeros(4))
    actions = None if action is None else torch.full((4,), action)
    found = calibrate(hidden, support, gain, torch.full((4,), strength), chosen, actions)
    for row in range(4):
        token = None if action is None else int(support.tokens[row, action])
        state, divergence = oracle.calibrated(
            hidden[row],
            table,
            lambda h, row=row: oracle.embedding_gain(h, hidden[row], table, WORDS, chosen),
            strength,
            chosen,
            token,
        )
        assert torch.allclose(found.hidden[row], state, atol=2e-4)
        assert found.divergence[row].item() == pytest.approx(divergence, abs=1e-4)
        # The logits are those of the last hidden state, not of the one before.
        assert torch.allclose(found.logits[row], (table @ state)[support.tokens[row]], atol=2e-3)


@given(st.integers(0, 50), st.integers(1, 5), st.sampled_from(["words", "written", "hidden"]))
@settings(max_examples=15, deadline=None)
def test_row_by_row_the_climb_is_the_batch_s(seed: int, rows: int, guide: str) -> None:
    table, hidden = model(seed, rows=rows)
    chosen, anatomy = CalibrationConfig(rate=0.003), plain(table)
    strength = torch.linspace(0.1, 0.6, rows)

    def climbed() -> tuple[Tensor, ...]:
        support = find_support(hidden, hidden @ table.T, anatomy, size=20, exact=False)
        gain: Gain
        if guide == "words":
            gain = EmbeddingGain.of(vectors(table), hidden, support.mass, chosen, torch.full((rows,), 0.2))
        else:
            inside, weights = torch.randn(rows, 3, 8, generator=seeded(seed)), torch.full((rows, 3), 0.3)
            before = expected_vector(hidden, support) if guide == "written" else None
            gain = ClassifierGain(head_of(seed), inside, torch.full((rows,), 0.5), weights, before)
        return *calibrate(hidden, support, gain, strength, chosen), support.vectors

    fast = climbed()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenhand.mitigations.calibration_steering._is_fused", lambda table: False)
        slow = climbed()
    for one, other in zip(fast, slow, strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-3)


def test_a_row_that_overflows_stays_visible() -> None:
    table, hidden = model()
    hidden[1] = 1e30
    support = find_support(hidden, hidden @ table.T, plain(table), size=20, exact=False)
    gain = EmbeddingGain.of(vectors(table), hidden, support.mass, CalibrationConfig(), torch.zeros(4))
    found = calibrate(hidden, support, gain, torch.ones(4), CalibrationConfig())
    assert found.logits.isfinite().all(-1).tolist() == [True, False, True, True]


def test_the_rest_has_the_mass_of_all_other_tokens() -> None:
    table, hidden = model()
    logits = hidden @ table.T
    for exact in (True, False):
        support = find_support(hidden, logits, plain(table), size=10, exact=exact)
        whole = torch.baddbmm(support.offsets[..., None], support.vectors, hidden[..., None])[..., 0]
        # Ten tokens and the rest together are the whole vocabulary.
        assert torch.allclose(whole.logsumexp(-1), logits.logsumexp(-1), atol=1e-4)
        assert torch.allclose(whole[:, :10], logits.topk(10).values, atol=1e-4)
    exactly = find_support(hidden, logits, plain(table), size=10, exact=True).vectors[:, -1]
    policy = logits.softmax(-1).scatter(-1, support.tokens, 0.0)
    assert torch.allclose(exactly, policy @ table / policy.sum(-1, keepdim=True), atol=1e-4)


def test_a_support_wider_than_the_vocabulary_has_no_rest() -> None:
    table, hidden = model(tokens=5)
    support = find_support(hidden, hidden @ table.T, plain(table), size=128, exact=False)
    whole = torch.baddbmm(support.offsets[..., None], support.vectors, hidden[..., None])[..., 0]
    assert support.tokens.shape == (4, 5)
    assert (whole.softmax(-1)[:, -1] < 1e-6).all()


def test_a_bias_of_the_output_table_is_part_of_the_logits() -> None:
    table, hidden = model()
    bias = torch.linspace(-1, 1, 60)
    logits = hidden @ table.T + bias
    support = find_support(hidden, logits, LMHead(table, bias, lambda texts: []), size=60, exact=True)
    again = torch.baddbmm(support.offsets[..., None], support.vectors, hidden[..., None])[:, :-1, 0]
    assert torch.allclose(again, logits.sort(-1, descending=True).values, atol=1e-4)


def real_states(builtin: CausalModel) -> Tensor:
    texts = [
        "About voting, people from Texas will",
        "The senator said the bill would help workers and",
        "My best friend, Emily, thinks the polls",
        "I want to talk about marijuana, because",
        "The court ruled on Monday that the immigration",
        "He was born in 1950 in a small",
        "The president and the governor met at",
        "She plays the violin and",
    ]
    return torch.stack([states[-1] for states in builtin.hidden_states(texts, longest=64)])


@pytest.mark.parametrize("exact", [True, False])
def test_on_the_embedded_model_the_policy_is_within_five_thousandths(
    builtin: CausalModel, exact: bool
) -> None:
    anatomy, chosen = builtin.anatomy(), CalibrationConfig()
    hidden, sides = real_states(builtin), read_word_lists("ideology")
    coded = [anatomy.encode([f" {word}" for word in words]) for words in sides.words]
    support = find_support(hidden, hidden @ anatomy.table.T, anatomy, size=128, exact=exact)
    gain = EmbeddingGain.of(
        word_list_vectors(sides, anatomy, pieces="mean"),
        hidden,
        support.mass,
        chosen,
        torch.zeros(len(hidden)),
    )
    found = calibrate(hidden, support, gain, torch.full((len(hidden),), 0.6), chosen)
    away, moved = [], []
    for row, vanilla in enumerate(hidden):
        state, _ = oracle.calibrated(
            vanilla,
            anatomy.table,
            lambda h, vanilla=vanilla: oracle.embedding_gain(
                h, vanilla, anatomy.table, (coded[0], coded[1]), chosen
            ),
            0.6,
            chosen,
        )
        truth = (anatomy.table @ state)[support.tokens[row]].softmax(-1)
        away.append(oracle.total_variation(truth, found.logits[row].softmax(-1)))
        moved.append(oracle.total_variation(truth, support.logits[row].softmax(-1)))
    assert sum(away) / len(away) < 5e-3
    # The step does something: what it moves is many times what the fast path loses.
    assert sum(moved) > 5 * sum(away)
