"""int8 weights with a scale a row."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from evenhand.core.errors import ModelError
from evenhand.tensors import int8_weights


def test_a_row_is_stored_in_steps_of_its_scale() -> None:
    # The largest weight is 1.27, so the scale is 1.27 / 127 = 0.01: each is a whole number of steps.
    values, scale = int8_weights.quantise(torch.tensor([[1.27, -0.64, 0.0, 0.01]]))
    assert values.tolist() == [[127, -64, 0, 1]]
    assert values.dtype == torch.int8
    assert scale.tolist() == [[pytest.approx(0.01)]]


def test_outputs_that_are_columns_have_a_scale_each() -> None:
    matrix = torch.tensor([[1.27, 12.7], [0.01, -0.1]])
    values, scale = int8_weights.quantise(matrix, by_column=True)
    assert scale.shape == (1, 2)
    assert values.tolist() == [[127, 127], [1, -1]]


@given(st.integers(0, 1000), st.sampled_from([1e-6, 1.0, 1e4]))
def test_the_error_is_never_worse_than_plain_rounding(seed: int, size: float) -> None:
    matrix = torch.randn(4, 32, generator=torch.Generator().manual_seed(seed)) * size
    values, scale = int8_weights.quantise(matrix)
    error = (values.float() * scale - matrix).square().sum(dim=1)
    plain = matrix.abs().amax(dim=1, keepdim=True) / 127
    rounded = ((matrix / plain).round() * plain - matrix).square().sum(dim=1)
    assert (error <= rounded * (1 + 1e-5)).all()
    assert int(values.abs().max()) <= 127


def test_zero_rows_stay_zero() -> None:
    values, scale = int8_weights.quantise(torch.zeros(2, 3))
    assert (values.float() * scale == 0).all()
    assert torch.isfinite(scale).all()


def test_a_file_gives_back_matrices_nearly_and_vectors_to_float16(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    tensors = {"w": torch.randn(6, 8, generator=generator), "t": torch.randn(8, 6, generator=generator)}
    tensors["bias.scale"] = torch.tensor([0.5, -2.0])  # a plain tensor may have such a name
    path = tmp_path / "model.safetensors"
    int8_weights.save_quantised(tensors, path, by_column=lambda name: name == "t")
    packed = load_file(path)
    assert packed["w.scale"].shape == (6, 1)
    assert packed["t.scale"].shape == (1, 6)
    loaded = int8_weights.load_dequantised(path)
    assert set(loaded) == {"w", "t", "bias.scale"}
    assert loaded["bias.scale"].tolist() == [0.5, -2.0]
    for name in ("w", "t"):
        torch.testing.assert_close(loaded[name], tensors[name], rtol=0, atol=0.03)
        assert loaded[name].dtype == torch.float32


def test_float_files_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"w": torch.ones(2, 2, dtype=torch.float16)}, path)
    loaded = int8_weights.load_dequantised(path)["w"]
    assert loaded.dtype == torch.float32
    assert loaded.tolist() == [[1, 1], [1, 1]]


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.safetensors"
    with pytest.raises(ModelError) as caught:
        int8_weights.load_dequantised(path)
    assert str(caught.value) == (
        f"no weights at {path}. Expected: a .safetensors file. "
        "Fix: check the folder's name, or export it again."
    )
