"""How long a device works during a call: the time in which any kernel or copy ran on it, each moment once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch

# A profiler that is taken down and set up again breaks replayed graphs.
_KEPT_UP = {"TEARDOWN_CUPTI": "0", "DISABLE_CUPTI_LAZY_REINIT": "1"}


class DeviceTime(NamedTuple):
    """What a profiler saw of one call."""

    seconds: float
    kernels: int
    """Kernels and copies, those of replayed graphs too."""


def device_time(work: Callable[[], object], device: torch.device) -> DeviceTime | None:
    """What runs on a GPU during a call; None elsewhere, or where the profiler sees nothing of it.

    Profiling slows the processor, not the kernels: compare with the time of a call that is not profiled.
    """
    if device.type != "cuda":
        return None
    os.environ.update(_KEPT_UP)
    import torch
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        work()
        torch.cuda.synchronize()
    # As the profiler noted them: its own list of events takes a hundred times as long to make.
    events = seen.profiler.kineto_results.events()
    ran = [one for one in events if one.device_type() == DeviceType.CUDA]
    spans = [(one.start_ns(), one.start_ns() + one.duration_ns()) for one in ran]
    return DeviceTime(covered(spans) / 1e9, len(spans)) if spans else None


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """The length of the union of spans (start, end)."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
