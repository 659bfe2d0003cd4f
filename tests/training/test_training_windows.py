"""Windows drawn for training."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer
from tools.assets import train_tokenizer
from tools.assets.prepare_corpus import stream
from tools.assets.training_windows import Windows, sentence_starts

from evenhand.models import hub_layout


@pytest.fixture
def tables(bpe: Tokenizer) -> train_tokenizer.SentenceTables:
    return train_tokenizer.sentence_tables(bpe)


def test_sentences_start_after_a_break_or_a_stop(
    bpe: Tokenizer, tables: train_tokenizer.SentenceTables
) -> None:
    tokens = stream(bpe, ["He left. She saw a U.S.A map!\nIt was late, Tom said."])
    starts = sentence_starts(tokens, tables)
    words = [bpe.decode([int(tokens[at])]).strip()[:1] for at in starts]
    # "U.S.A" has no space after its stops, "Tom" follows a comma.
    assert words == ["H", "S", "I"]


def test_causal_windows_are_of_the_corpus(
    bpe: Tokenizer, tables: train_tokenizer.SentenceTables, texts: tuple[str, ...]
) -> None:
    tokens = stream(bpe, texts * 4)
    windows = Windows(tokens, tables, device="cpu", seed=0)
    drawn = windows.causal(16, 12).numpy()
    assert drawn.shape == (16, 13)
    pieces = {tuple(tokens[at : at + 12]) for at in range(len(tokens) - 11)}
    assert all(tuple(row[:12]) in pieces for row in drawn[:8])
    # The second half opens with a sentence, its first word without a space; every other after end-of-text.
    assert (drawn[8::2, 0] == hub_layout.END).all()
    opening = np.concatenate([drawn[8::2, 1], drawn[9::2, 0]])
    assert not tables.spaced[opening].any() or (tables.bare[opening] == opening).all()
    assert tables.capital[opening].all()
    assert all(tuple(row[1:12]) in {piece[1:] for piece in pieces} for row in drawn[9::2])


def test_masked_windows_can_be_put_back_together(
    bpe: Tokenizer, tables: train_tokenizer.SentenceTables, texts: tuple[str, ...]
) -> None:
    tokens = stream(bpe, texts * 8)
    windows = Windows(tokens, tables, device="cpu", seed=0)
    batch = windows.masked(200, 16, 4)
    assert (batch.inputs[:, 0] == hub_layout.CLS).all()
    assert (batch.inputs[:, -1] == hub_layout.SEP).all()
    assert (batch.targets >= len(hub_layout.SPECIAL_TOKENS)).all()
    whole = batch.inputs.scatter(1, batch.positions, batch.targets).numpy()
    tails = {tuple(tokens[at : at + 13]) for at in range(len(tokens) - 12)}
    assert all(tuple(row[2:15]) in tails for row in whole)
    masks = float((batch.inputs.gather(1, batch.positions) == hub_layout.MASK).float().mean())
    # 800 positions, each [MASK] with probability 0.8: the standard error is sqrt(0.16 / 800) = 0.014.
    assert abs(masks - 0.8) < 0.06


def test_the_same_seed_draws_the_same_windows(
    bpe: Tokenizer, tables: train_tokenizer.SentenceTables, texts: tuple[str, ...]
) -> None:
    tokens = stream(bpe, texts * 4)
    first, second, third = (Windows(tokens, tables, device="cpu", seed=seed) for seed in (1, 1, 2))
    drawn = first.causal(8, 10)
    assert (drawn == second.causal(8, 10)).all()
    assert (drawn != third.causal(8, 10)).any()
