"""Token shards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tools.assets import token_shards


@given(st.lists(st.integers(0, 65_535), max_size=50))
def test_unpack_undoes_pack(values: list[int]) -> None:
    tokens = np.array(values, dtype=np.uint16)
    assert token_shards.unpack(token_shards.pack(tokens)).tolist() == values


def test_pieces_are_read_back_in_the_order_of_their_names(tmp_path: Path) -> None:
    tokens = np.arange(1_000, dtype=np.uint16)
    paths = token_shards.write(tmp_path, tokens, name="train", pieces=3)
    assert [path.name for path in paths] == ["train-000.u16.xz", "train-001.u16.xz", "train-002.u16.xz"]
    assert (token_shards.read(sorted(tmp_path.iterdir())) == tokens).all()


def test_no_shards_give_no_tokens() -> None:
    assert len(token_shards.read([])) == 0
