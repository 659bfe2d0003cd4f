"""Where a model runs, and in which floating-point type."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

from evenhand.core.errors import InputError

DTYPES: Final = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def device_of(name: str) -> torch.device:
    """The device of a name: ``auto`` is CUDA where there is one, else the CPU."""
    has_cuda = torch.cuda.is_available()
    if name == "auto":
        return torch.device("cuda" if has_cuda else "cpu")
    kind, _, number = name.partition(":")
    known = name == "cpu" or (kind == "cuda" and (number.isdigit() or name == "cuda"))
    if not known:
        raise InputError(
            f"device {name!r} is not known", accepted="auto, cpu, cuda or cuda:N", todo="use auto"
        )
    if kind == "cuda" and (not has_cuda or int(number or 0) >= torch.cuda.device_count()):
        raise InputError(
            f"device {name!r} is not here",
            accepted=f"cpu{''.join(f', cuda:{index}' for index in range(torch.cuda.device_count()))}",
            todo="use --device auto, or install a CUDA build of torch",
        )
    return torch.device(name)


def is_current(device: torch.device) -> bool:
    """Whether it is the GPU that kernels of ours and recordings go to: not a second one, ``cuda:1``."""
    return device.type == "cuda" and device.index in (None, torch.cuda.current_device())


def sent(values: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device.

    From pinned memory a GPU fetches it while more work is laid out; else all before it is waited for.
    """
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values.to(device)


def dtype_of(name: str, device: torch.device, *, stored: str = "float32") -> torch.dtype:
    """The type a model computes in.

    ``auto`` is float32 on a CPU, where half precision is many times slower, and the type the weights are
    stored in on a GPU.
    """
    if name not in ("auto", *DTYPES):
        raise InputError(
            f"dtype {name!r} is not known", accepted=f"auto, {', '.join(DTYPES)}", todo="use auto"
        )
    if device.type == "cpu":
        if name not in ("auto", "float32"):
            raise InputError(f"dtype {name!r} on a CPU", accepted="float32", todo="use dtype auto")
        return torch.float32
    return DTYPES.get(stored, torch.float32) if name == "auto" else DTYPES[name]


def dtype_name(dtype: torch.dtype) -> str:
    """The name of a type, as it is stored in keys."""
    return str(dtype).removeprefix("torch.")
