"""Every Triton kernel on a CPU: Triton's interpreter runs them as NumPy.

It is chosen when Triton is imported, so the kernels' own tests run in another process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from evenhand.tensors.devices import is_triton_installed

ROOT = Path(__file__).resolve().parents[2]
FILES = (
    "tests/generation/test_topk.py",
    "tests/generation/test_fused_add_norm.py",
    "tests/mitigations/test_gpu_backend.py",
)


@pytest.mark.skipif(not is_triton_installed(), reason="needs Triton: pip install triton")
@pytest.mark.skipif(
    torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1",
    reason="the kernels' own tests already run in this process",
)
def test_the_kernels_agree_with_torch_in_interpreter_mode() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *FILES]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SKIPPED" not in done.stdout, done.stdout
