"""What decides the texts of a model that runs here."""

from __future__ import annotations

import torch

from evenhand.neural.devices import dtype_name


def local_options(tokenizer: str, *, dtype: torch.dtype, device: torch.device, loop: str) -> dict[str, str]:
    """What decides a local model's texts besides its weights and the spec, for its ``ModelRef``.

    Args:
        tokenizer: The digest of its tokenizer.
        dtype: What it computes in.
        device: Where it runs; which of several alike does not matter.
        loop: The version of the loop that writes with it.
    """
    return {"tokenizer": tokenizer, "dtype": dtype_name(dtype), "device": device.type, "loop": loop}
