"""Whether kernels of ours can be used here: they are written for Triton, which comes with torch for CUDA."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

_log = logging.getLogger(__name__)


@cache
def has_triton() -> bool:
    """Whether Triton is installed."""
    return find_spec("triton") is not None


def can_compile(trial: Callable[[], object], *, instead: str) -> bool:
    """Whether Triton is there and a trial of a kernel goes well; where it does not, that is said.

    A kernel needs a C compiler and a folder of its own to write to.

    Args:
        trial: Calls the kernel on little, and waits for it.
        instead: What is done without the kernel, for the warning.
    """
    if not has_triton():
        return False
    try:
        trial()
    except Exception as error:  # whatever a compiler raises, the slower way is open
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        _log.warning("Triton cannot compile here (%s): %s", reason, instead)
        return False
    return True
