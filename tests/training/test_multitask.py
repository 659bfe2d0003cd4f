"""Fine-tuning several heads at once, and calibrating them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.classifiers.tiny_classifier import tiny_network
from tools.assets.multitask import Labelled, TuneSpec, logits, loss, tune
from tools.assets.ship_classifier import calibrate
from tools.assets.token_rows import Rows

from evenhand.classifiers.encoder import HEADS, Head, count_logits, head_columns, to_probabilities

TWO = (Head("a", ("x", "y"), "one-of"), Head("b", ("z",), "each"))
NAN = float("nan")


def test_each_head_counts_the_targets_it_has() -> None:
    values = torch.tensor([[0.0, math.log(3.0), 0.0], [5.0, -5.0, math.log(3.0)]])
    targets = torch.tensor([[0.0, 1.0, NAN], [NAN, NAN, 0.0]])
    # Head a, first text: -ln(3/4). Head b, second text: -ln(1 - 3/4) = -ln(1/4).
    assert loss(values, targets, TWO).item() == pytest.approx(math.log(4 / 3) + math.log(4))
    assert loss(values, targets, TWO, per=2.0).item() == pytest.approx((math.log(4 / 3) + math.log(4)) / 2)


def test_no_targets_are_no_loss() -> None:
    assert loss(torch.ones(3, 3), torch.full((3, 3), NAN), TWO).item() == 0.0


def labelled() -> Labelled:
    texts = [[2, 4, 8, 3], [2, 5, 8, 3]] * 8
    targets = torch.full((16, count_logits()), NAN)
    targets[:, head_columns("ideology")] = torch.tensor([[1.0], [0.0]] * 8)
    return Labelled(Rows.from_lists(texts), targets, np.ones(16, dtype=np.int64))


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """The first step of an optimiser imports half of torch, which the clock would count."""
    tune(tiny_network(), labelled(), TuneSpec(seconds=0.001, tokens=128))


def test_tuning_learns_the_labels() -> None:
    network = tiny_network()
    steps = tune(network, labelled(), TuneSpec(seconds=3.0, tokens=128, rate=5e-3, head_rate=5e-2, warmup=5))
    assert steps > 1
    found = to_probabilities(logits(network, labelled().rows))[:, head_columns("ideology")][:2, 0]
    assert found[0] > 0.8 > 0.2 > found[1]


def test_a_stopped_tuning_goes_on_and_a_finished_one_is_not_done_again(tmp_path: Path) -> None:
    checkpoint = tmp_path / "stages" / "c.safetensors"
    spec = TuneSpec(seconds=0.3, tokens=128)
    network = tiny_network()
    steps = tune(network, labelled(), spec, checkpoint=checkpoint)
    other = tiny_network()
    torch.nn.init.zeros_(other.weight)
    assert tune(other, labelled(), spec, checkpoint=checkpoint) == steps
    assert torch.equal(other.weight, network.weight)
    assert tune(other, labelled(), replace(spec, seconds=0.6), checkpoint=checkpoint) > steps
    assert not list(tmp_path.rglob("*.partial"))


def test_a_teacher_speaks_where_no_label_does() -> None:
    network, data = tiny_network(), labelled()
    silent = Labelled(data.rows, torch.full_like(data.targets, NAN), data.repeats)
    spec = TuneSpec(seconds=3.0, tokens=128, rate=5e-3, head_rate=5e-2, warmup=5, soft=1.0)
    tune(network, silent, spec, teacher=data.targets)
    found = logits(network, data.rows)[:, head_columns("ideology")][:2, 0]
    assert found[0] > 1 > -1 > found[1]


def test_calibration_undoes_a_known_distortion() -> None:
    torch.manual_seed(0)
    true = torch.randn(4000, count_logits())
    said = to_probabilities(true)
    targets = torch.bernoulli(said)
    start = 0
    for head in HEADS:
        part = slice(start, start + len(head.labels))
        if head.kind == "one-of":
            chosen = torch.multinomial(said[:, part], 1)[:, 0]
            targets[:, part] = torch.nn.functional.one_hot(chosen, len(head.labels)).float()
        start = part.stop
    # Logits three times too large and, for yes-or-no labels, one too high before that: scale 1/3, shift -1.
    found = calibrate((true + 1) * 3, targets)
    yes_or_no = torch.tensor([head.kind == "each" for head in HEADS for _ in head.labels])
    assert torch.allclose(found.scale, torch.full((count_logits(),), 1 / 3), atol=0.06)
    assert torch.allclose(found.shift[yes_or_no], torch.tensor(-1.0), atol=0.15)
    assert len(set(found.scale[:4].tolist())) == 1


def test_calibration_leaves_labels_alone_that_nobody_gave() -> None:
    found = calibrate(torch.randn(50, count_logits()), torch.full((50, count_logits()), NAN))
    assert found.scale.tolist() == [1.0] * count_logits()
    assert found.shift.tolist() == [0.0] * count_logits()
