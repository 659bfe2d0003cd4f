"""Held-out measures, against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tools.assets.evaluate_language_model import bits_per_byte, mask_accuracy, token_losses
from tools.assets.language_models import CausalModel, CausalShape, MaskedModel, MaskedShape

from evenhand.models.hub_layout import END


@pytest.fixture
def causal() -> CausalModel:
    torch.manual_seed(0)
    return CausalModel(CausalShape(vocabulary=64, context=4, layers=1, width=8, heads=2)).eval()


def test_a_model_that_knows_nothing_spends_the_logarithm_of_its_vocabulary(causal: CausalModel) -> None:
    with torch.no_grad():
        causal.transformer.wte.weight.zero_()
    tokens = np.array([END, 7, 8, 9, END, 10, END], dtype=np.uint16)
    result = bits_per_byte(causal, tokens, document_bytes=[15, 5])
    # Six tokens are predicted at log2(64) = 6 bits each: 36 bits over 20 bytes.
    assert result.bits_per_byte == pytest.approx(36 / 20)
    assert result.loss == pytest.approx(math.log(64))
    assert (result.tokens, result.bytes, result.documents) == (6, 20, 2)
    # Two documents are too few for an interval.
    assert (result.low, result.high) == (None, None)


@pytest.mark.parametrize("rows", [1, 2, 64])
def test_each_token_is_predicted_once_from_its_own_window(causal: CausalModel, rows: int) -> None:
    tokens = np.array([0, 9, 8, 7, 6, 5, 9, 11, 13, 12, 0], dtype=np.uint16)
    slow = []
    for at in range(10):
        start = at // 4 * 4  # windows of four tokens: 0-3, 4-7, 8-9
        scores = causal.logits(torch.tensor([tokens[start : at + 1].tolist()]))[0, -1]
        slow.append(-scores.log_softmax(-1)[int(tokens[at + 1])].item())
    np.testing.assert_allclose(token_losses(causal, tokens, rows=rows), slow, rtol=1e-4)


def test_the_interval_is_that_of_a_ratio_with_documents_as_clusters(causal: CausalModel) -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 9, size=40)
    parts = [np.concatenate([[END], rng.integers(5, 64, size=length)]) for length in lengths]
    tokens = np.concatenate([*parts, [END]]).astype(np.uint16)
    sizes = (lengths * 4).tolist()
    result = bits_per_byte(causal, tokens, document_bytes=sizes)
    nats = token_losses(causal, tokens)
    bits, at = [], 0
    for length in lengths:  # a document's tokens and the end that closes it
        bits.append(nats[at : at + length + 1].sum() / math.log(2))
        at += length + 1
    rate = sum(bits) / sum(sizes)
    spread = sum((b - rate * s) ** 2 for b, s in zip(bits, sizes, strict=True)) * 40 / 39
    assert result.bits_per_byte == pytest.approx(rate)
    assert result.low == pytest.approx(rate - 1.959964 * math.sqrt(spread) / sum(sizes))
    assert result.high == pytest.approx(rate + 1.959964 * math.sqrt(spread) / sum(sizes))


def test_a_masked_model_that_always_says_seven_is_right_where_seven_stood() -> None:
    torch.manual_seed(0)
    model = MaskedModel(MaskedShape(vocabulary=64, context=22, layers=1, width=8, heads=2)).eval()
    with torch.no_grad():
        model.cls.predictions.bias[7] = 100.0
    sevens = mask_accuracy(model, np.full(45, 7, dtype=np.uint16))
    # 45 tokens make two windows of 20; 15 % of 20 are 3 masks each.
    assert (sevens.accuracy, sevens.masks, sevens.windows) == (1.0, 6, 2)
    assert (sevens.low, sevens.high) == (None, None)
    assert mask_accuracy(model, np.full(45, 8, dtype=np.uint16)).accuracy == 0.0


def test_batches_do_not_change_the_accuracy() -> None:
    torch.manual_seed(0)
    model = MaskedModel(MaskedShape(vocabulary=64, context=12, layers=1, width=8, heads=2)).eval()
    tokens = np.random.default_rng(1).integers(5, 64, size=400).astype(np.uint16)
    results = [mask_accuracy(model, tokens, rows=40, seed=seed) for seed in (0, 0)]
    assert results[0] == results[1]
    assert results[0].low is not None
    assert results[0].low <= results[0].accuracy
