"""Where Triton's kernels can run: on a GPU, or on a CPU by its interpreter (TRITON_INTERPRET=1)."""

from __future__ import annotations

import os

import pytest
import torch

from evenhand.tensors.devices import is_triton_installed

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
needs_kernels = pytest.mark.skipif(
    not is_triton_installed() or (DEVICE.type == "cpu" and os.environ.get("TRITON_INTERPRET") != "1"),
    reason="needs Triton, and a GPU or TRITON_INTERPRET=1",
)
