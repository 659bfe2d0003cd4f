"""The two training commands, end to end on tiny shapes; agreement with transformers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tools.assets import (
    export_weights,
    token_shards,
    train_language_model,
    train_tokenizer,
)
from tools.assets.language_models import CausalModel, CausalShape, MaskedModel, MaskedShape, load_model
from tools.assets.prepare_corpus import prepare, stream
from tools.assets.training_loop import Recipe, Trainer, create_optimisers
from transformers import AutoTokenizer, BertForMaskedLM, GPT2LMHeadModel

from evenhand.models import hub_layout

CAUSAL = CausalShape(vocabulary=330, context=16, layers=2, width=16, heads=2)
MASKED = MaskedShape(vocabulary=330, context=16, layers=2, width=16, heads=2)


@pytest.fixture
def job(bpe: Tokenizer, bpe_file: Path, tmp_path: Path, texts: tuple[str, ...]) -> train_language_model.Job:
    folder = tmp_path / "data"
    token_shards.write(folder, stream(bpe, texts * 20), name="train", pieces=2)
    (folder / "tokenizer.json").write_bytes(bpe_file.read_bytes())
    return train_language_model.Job(
        folder, tmp_path / "model", budget=1e6, seconds=0.01, rows=8, device="cpu", seed=0
    )


def _scrambled(model: torch.nn.Module) -> torch.nn.Module:
    """Give every parameter a value of its own, so that none can be swapped or skipped unseen."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
    return model


def create_trainer(model: torch.nn.Module) -> Trainer:
    recipe = Recipe(seconds=1e6, warmup=1)
    return Trainer(model, recipe, create_optimisers(model, recipe, fused=False))


def test_causal_training_goes_on_from_its_checkpoint_and_exports(job: train_language_model.Job) -> None:
    first = train_language_model.train(job, CAUSAL)
    second = train_language_model.train(job, CAUSAL)
    assert 0 < first.step < second.step
    assert second.elapsed >= 2 * job.seconds
    # With the budget spent a third call trains no more.
    assert (
        train_language_model.train(dataclasses.replace(job, budget=job.seconds), CAUSAL).step == second.step
    )
    assert load_model(job.out).shape == CAUSAL


def test_masked_training_writes_a_model_with_its_tokenizer(job: train_language_model.Job) -> None:
    progress = train_language_model.train(job, MASKED)
    assert progress.step > 0
    assert load_model(job.out).shape == MASKED
    framed = train_tokenizer.load(job.out / "tokenizer.json").encode("The cat").ids
    assert (framed[0], framed[-1]) == (hub_layout.CLS, hub_layout.SEP)


def test_both_models_learn_a_repeated_text() -> None:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 330, (4, 17), generator=generator)
    positions = torch.tensor([[2, 5, 9]] * 4)
    torch.manual_seed(0)
    left_to_right, both_ways = CausalModel(CAUSAL), MaskedModel(MASKED)
    hidden = ids[:, :16].scatter(1, positions, hub_layout.MASK)

    def causal_loss() -> torch.Tensor:
        return left_to_right.loss(ids)

    def masked_loss() -> torch.Tensor:
        return both_ways.loss(hidden, positions, ids.gather(1, positions))

    cases: list[tuple[torch.nn.Module, Callable[[], torch.Tensor]]]
    cases = [(left_to_right, causal_loss), (both_ways, masked_loss)]
    for model, loss in cases:
        trainer = create_trainer(model)
        losses = [float(trainer.advance(loss())) for _ in range(60)]
        assert losses[0] == pytest.approx(np.log(330), rel=0.1)
        assert losses[-1] < 0.7 * losses[0]


def test_a_checkpoint_restores_every_number(tmp_path: Path) -> None:
    ids = torch.randint(5, 330, (4, 17), generator=torch.Generator().manual_seed(0))

    def advance(trainer: Trainer) -> float:
        return float(trainer.advance(trainer.model.loss(ids)))  # type: ignore[operator]

    whole = create_trainer(CausalModel(CAUSAL))
    advance(whole)
    whole.elapsed = 12.5
    whole.save(tmp_path / "checkpoint.safetensors")
    again = create_trainer(CausalModel(CAUSAL))
    again.load(tmp_path / "checkpoint.safetensors")
    assert (again.step, again.elapsed) == (1, 12.5)
    assert [advance(whole) for _ in range(3)] == [advance(again) for _ in range(3)]


def test_short_and_many_mask_steps_follow_the_plan() -> None:
    plan = [train_language_model.batch_of(step, rows=1024, length=128) for step in range(8)]
    # 126 places: a half is 63, a fifth 25; 30 places: a fifth is 6.
    usual, many, short = (1024, 128, 25), (1024, 128, 63), (4096, 32, 6)
    assert plan == [many, short, usual, usual, usual, short, usual, usual]


@pytest.mark.parametrize("int8", [False, True])
def test_transformers_gives_the_same_causal_scores(tmp_path: Path, bpe_file: Path, int8: bool) -> None:
    folder = tmp_path / "model"
    export_weights.save_folder(_scrambled(CausalModel(CAUSAL)), folder, tokenizer_file=bpe_file)
    if int8:
        export_weights.quantise_folder(folder, tmp_path / "int8")
        folder = tmp_path / "hub"
        hub_layout.hub_folder(tmp_path / "int8", folder, tokenizer_file=bpe_file)
    theirs = GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32)
    ours = load_model(tmp_path / "int8" if int8 else folder)
    ids = torch.randint(0, 330, (3, 16), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        torch.testing.assert_close(ours.logits(ids), theirs(ids).logits, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("int8", [False, True])
def test_transformers_gives_the_same_masked_scores(tmp_path: Path, bpe_file: Path, int8: bool) -> None:
    folder = tmp_path / "model"
    export_weights.save_folder(_scrambled(MaskedModel(MASKED)), folder, tokenizer_file=bpe_file)
    if int8:
        export_weights.quantise_folder(folder, tmp_path / "int8", shares_tokenizer_of="builtin")
        assert json.loads((tmp_path / "int8" / "config.json").read_text())[hub_layout.OWN_KEY] == "builtin"
        folder = tmp_path / "hub"
        hub_layout.hub_folder(tmp_path / "int8", folder, tokenizer_file=bpe_file)
        assert hub_layout.OWN_KEY not in json.loads((folder / "config.json").read_text())
    theirs = BertForMaskedLM.from_pretrained(folder, dtype=torch.float32)
    ours = load_model(tmp_path / "int8" if int8 else folder)
    ids = torch.randint(0, 330, (3, 16), generator=torch.Generator().manual_seed(1))
    positions = torch.arange(16).expand(3, 16)
    with torch.inference_mode():
        torch.testing.assert_close(ours.logits_at(ids, positions), theirs(ids).logits, rtol=1e-4, atol=1e-5)


def test_auto_tokenizer_reads_an_exported_folder(tmp_path: Path, bpe: Tokenizer, bpe_file: Path) -> None:
    export_weights.save_folder(CausalModel(CAUSAL), tmp_path, tokenizer_file=bpe_file)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert theirs("The \u201ccat\u201d").input_ids == bpe.encode('The "cat"').ids
    assert (theirs.eos_token_id, theirs.pad_token_id, theirs.mask_token_id) == (0, 1, 4)
    assert theirs.model_max_length == 16


def test_prepare_writes_tokenizer_shards_and_held_out_text(tmp_path: Path, texts: tuple[str, ...]) -> None:
    bodies = [f"{texts[index % 2]} Number {index}." for index in range(140)]
    (tmp_path / "wiki.txt").write_text("\n\n".join(f"{index}. {text}" for index, text in enumerate(bodies)))
    prepare([tmp_path / "wiki.txt"], tmp_path / "out", vocabulary=330)
    held = token_shards.read([tmp_path / "out" / "held-out" / "wiki-000.u16.xz"])
    about = json.loads((tmp_path / "out" / "held-out" / "held_out.json").read_text())
    sizes = [len(f"{index}. {bodies[index]}".encode()) for index in (37, 137)]
    assert about == {"wiki": {"document_bytes": sizes}}
    assert int((held == hub_layout.END).sum()) == 3
    train = token_shards.read(sorted((tmp_path / "out").glob("train-*")))
    assert int((train == hub_layout.END).sum()) == 140 - 2 + 1
