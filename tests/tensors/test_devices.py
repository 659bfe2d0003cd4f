"""Which GPU kernels of ours and recordings go to."""

from __future__ import annotations

import pytest
import torch

from evenhand.tensors.devices import is_current_gpu


@pytest.mark.parametrize(
    ("name", "expected"), [("cpu", False), ("cuda", True), ("cuda:0", False), ("cuda:1", True)]
)
def test_only_the_current_gpu_is_the_current_one(
    name: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert is_current_gpu(torch.device(name)) is expected
