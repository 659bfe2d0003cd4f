"""The loop: its schedule, its padding, what it learns, and that a stopped run ends like one that was not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from evenhand.core.errors import ModelError
from evenhand.training.finetuning import EncodedTexts, FineTuner, Padding, learning_rate_factor
from evenhand.training.options import FineTuningConfig

RECIPE = FineTuningConfig(epochs=4, batch=8, rate=0.05)


class Bag(nn.Module):
    """Two labels from the mean of word vectors, with dropout, so that randomness shows."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(6, 4)
        self.top = nn.Linear(4, 2)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        states = self.words(ids) * mask[..., None]
        answers: Tensor = self.top(nn.functional.dropout(states.sum(1), 0.2, self.training))
        return answers


def bag(seed: int = 0) -> Bag:
    torch.manual_seed(seed)
    return Bag()


def coded(n: int = 40) -> EncodedTexts:
    """Rows with the token 1 have label 0, rows with 2 label 1; 3 and 4 say nothing."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 2
    rows = [
        [int(label) + 1, *(int(word) for word in rng.integers(3, 5, rng.integers(1, 6)))] for label in labels
    ]
    return EncodedTexts(rows, labels.astype(np.int64))


def tuned(recipe: FineTuningConfig = RECIPE, network: nn.Module | None = None) -> FineTuner:
    return FineTuner(network or bag(), recipe, padding=Padding(0), device="cpu")


def test_the_rate_rises_in_a_line_and_falls_to_nothing() -> None:
    # 10 steps, 20 % warm-up: 1/2, 2/2, then 8/8, 7/8 .. 1/8.
    found = [learning_rate_factor(step, 10, 0.2) for step in range(10)]
    assert found == [0.5, 1.0, *(left / 8 for left in range(8, 0, -1))]
    assert learning_rate_factor(0, 1, 0.1) == 1.0


@pytest.mark.parametrize(("left", "first"), [(False, [7, 9, 9]), (True, [9, 9, 7])])
def test_rows_are_padded_on_the_side_asked_for(left: bool, first: list[int]) -> None:
    class Recorder(nn.Linear):
        def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
            self.given = ids, mask
            return mask[:, :2].float()

    network = Recorder(1, 1)
    FineTuner(network, RECIPE, padding=Padding(9, left), device="cpu").logits([[7], [1, 2, 3]])
    ids, mask = (rows.tolist() for rows in network.given)
    assert ids == [[1, 2, 3], first]
    assert mask == [[1, 1, 1], [int(token != 9) for token in first]]


def test_it_learns_what_can_be_learned_and_answers_in_order() -> None:
    data, tuning = coded(), tuned()
    history = tuning.run(data, data)
    assert len(history) == 4
    assert history[-1].held_out_loss < history[0].held_out_loss
    assert (tuning.logits(data.rows).argmax(1).numpy() == data.labels).all()
    alone = torch.cat([tuning.logits([row]) for row in data.rows])
    assert torch.allclose(tuning.logits(data.rows), alone, atol=1e-6)


def test_every_text_is_met_once_an_epoch() -> None:
    data = coded(41)
    places = [place for batch in tuned()._batches(data, 0) for place in batch]
    assert sorted(places) == list(range(41))
    assert places != [place for batch in tuned()._batches(data, 1) for place in batch]


def test_a_stopped_run_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    data, path = coded(), tmp_path / "c.safetensors"
    clean = tuned()
    whole = clean.run(data, data)

    class Stop(Exception):
        pass

    steps: list[int] = []

    def stop_in_the_third_epoch(done: int) -> None:
        steps.append(done)
        if sum(steps) == 12:  # 5 steps an epoch
            raise Stop

    with pytest.raises(Stop):
        tuned().run(data, data, checkpoint=path, on_step=stop_in_the_third_epoch)
    again = tuned(network=bag(seed=9))
    told: list[int] = []
    assert again.run(data, data, checkpoint=path, on_step=told.append) == whole
    assert told == [10, *[1] * 10]
    for one, other in zip(clean.network.parameters(), again.network.parameters(), strict=True):
        assert torch.equal(one, other)


def test_early_stopping_keeps_the_best_epoch(tmp_path: Path) -> None:
    data = coded()
    # Held out with every label wrong: the better it learns, the larger the held-out loss.
    wrong = EncodedTexts(data.rows, 1 - data.labels)
    tuning = tuned(FineTuningConfig(epochs=9, batch=8, rate=0.05, patience=2))
    history = tuning.run(data, wrong, checkpoint=tmp_path / "c.safetensors")
    assert len(history) == 3
    assert tuning.loss(wrong) == pytest.approx(min(epoch.held_out_loss for epoch in history))


def test_a_loss_that_is_no_number_stops_the_training() -> None:
    network = bag()
    network.top.bias.data[0] = float("nan")
    with pytest.raises(ModelError) as raised:
        tuned(network=network).run(coded(), coded())
    assert str(raised.value) == (
        "the loss of epoch 1 is not a number. Expected: a learning rate at which training converges. "
        "Fix: train again with a lower --learning-rate."
    )
