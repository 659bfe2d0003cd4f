"""Selection of devices and floating-point types."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Final

import torch
from torch import Tensor

from evenhand.core.errors import InputError

_log = logging.getLogger(__name__)
DTYPES: Final = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def select_device(name: str) -> torch.device:
    """The device with that name: ``auto`` is CUDA if available, else the CPU."""
    has_cuda = torch.cuda.is_available()
    if name == "auto":
        return torch.device("cuda" if has_cuda else "cpu")
    kind, _, number = name.partition(":")
    is_known = name == "cpu" or (kind == "cuda" and (number.isdigit() or name == "cuda"))
    if not is_known:
        raise InputError(
            f"device {name!r} is not known", expected="auto, cpu, cuda or cuda:N", fix="use auto"
        )
    if kind == "cuda" and (not has_cuda or int(number or 0) >= torch.cuda.device_count()):
        raise InputError(
            f"device {name!r} is not available",
            expected=f"cpu{''.join(f', cuda:{index}' for index in range(torch.cuda.device_count()))}",
            fix="use --device auto, or install a CUDA build of torch",
        )
    return torch.device(name)


def is_current_gpu(device: torch.device) -> bool:
    """Whether it is the GPU that our kernels and CUDA graphs run on: not a second one, ``cuda:1``."""
    return device.type == "cuda" and device.index in (None, torch.cuda.current_device())


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device.

    From pinned memory the copy to a GPU is asynchronous; otherwise it would wait for all earlier work.
    """
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values.to(device)


def select_dtype(name: str, device: torch.device, *, stored: str = "float32") -> torch.dtype:
    """The dtype that a model computes in.

    ``auto`` is float32 on a CPU, where half precision is many times slower, and the type the weights are
    stored in on a GPU.
    """
    if name not in ("auto", *DTYPES):
        raise InputError(
            f"dtype {name!r} is not known", expected=f"auto, {', '.join(DTYPES)}", fix="use auto"
        )
    if device.type == "cpu":
        if name not in ("auto", "float32"):
            raise InputError(f"dtype {name!r} on a CPU", expected="float32", fix="use dtype auto")
        return torch.float32
    return DTYPES.get(stored, torch.float32) if name == "auto" else DTYPES[name]


@cache
def is_triton_installed() -> bool:
    """Whether Triton is installed."""
    return find_spec("triton") is not None


def triton_available(trial: Callable[[], object], *, instead: str) -> bool:
    """Whether Triton is installed and a trial run of a kernel succeeds; a failure is logged.

    A kernel needs a C compiler and a writable cache folder.

    Args:
        trial: Runs the kernel on small inputs and waits for it.
        instead: The fallback without the kernel, for the warning.
    """
    if not is_triton_installed():
        return False
    try:
        trial()
    except Exception as error:  # whatever the compiler raises, the fallback works
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        _log.warning("Triton cannot compile here (%s): %s", reason, instead)
        return False
    return True


@contextmanager
def single_thread() -> Iterator[None]:
    """Compute in one thread: more would slow down matrices this small, and the order of sums stays fixed."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
