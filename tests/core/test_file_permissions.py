"""Written weights can be read by whom the umask says."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest
import torch

from evenhand.core.files import apply_umask
from evenhand.mitigations.calibrator import Calibrator, save_calibrator
from evenhand.tensors import int8_weights
from evenhand.text.word_vectors import save_vectors


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
def test_a_private_file_is_shared_as_new_ones_are(tmp_path: Path) -> None:
    (tmp_path / "new").touch()
    private = tmp_path / "private"
    private.touch(mode=0o600)
    apply_umask(private)
    assert mode(private) == mode(tmp_path / "new")
    assert {path.name for path in tmp_path.iterdir()} == {"new", "private"}


def test_weights_and_vectors_are_no_secret(tmp_path: Path) -> None:
    (tmp_path / "new").touch()
    int8_weights.save_quantised({"a": torch.ones(2, 2)}, tmp_path / "model.safetensors")
    save_vectors(("a", "b"), np.ones((2, 2), dtype=np.float32), tmp_path / "vectors.safetensors")
    layers = torch.ones(2, 3), torch.ones(2), torch.ones(2), torch.ones(1)
    head = Calibrator(*layers, labels=("a", "b"), model="m", revision="r")
    save_calibrator(head, tmp_path / "calibrator.safetensors")
    modes = {mode(path) for path in tmp_path.iterdir()}
    assert modes == {mode(tmp_path / "new")}
