"""Products of float32 matrices with ten bits of each factor, for as long as that is enough."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

import torch

_lock: Final = Lock()
_before: list[object] = []
"""What was set before, once for each that is inside: threads leave in any order."""


@contextmanager
def coarse_products(*, wanted: bool = True) -> Iterator[None]:
    """A GPU's products of float32 matrices in TF32 meanwhile, some five times as fast; sums stay float32.

    The setting is the process's: a product that another thread begins meanwhile is coarse too.
    """
    if not wanted:
        yield
        return
    settings, name, coarse = torch.backends.cuda.matmul, *_setting()
    with _lock:
        _before.append(getattr(settings, name) if not _before else _before[0])
        setattr(settings, name, coarse)
    try:
        yield
    finally:
        with _lock:
            old = _before.pop()
            if not _before:
                setattr(settings, name, old)


def _setting() -> tuple[str, object]:
    """The setting's name and its value: torch has had another one since 2.9, and the two do not mix."""
    has_new = hasattr(torch.backends.cuda.matmul, "fp32_precision")
    return ("fp32_precision", "tf32") if has_new else ("allow_tf32", True)
