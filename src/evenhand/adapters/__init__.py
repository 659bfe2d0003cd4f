"""evenhand inside other tools: an Inspect scorer and task, tasks for lm-eval, frames for fairlearn.

The names are resolved when they are first used, so that none of those tools is needed for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.core.registry import require_library

if TYPE_CHECKING:
    from evenhand.adapters.fairlearn_frames import FrameInputs, frame_inputs, score_predictions
    from evenhand.adapters.inspect_tasks import inspect_scorer, inspect_task
    from evenhand.adapters.lm_eval_task import export_task

_MODULES = {
    "FrameInputs": "fairlearn_frames",
    "export_task": "lm_eval_task",
    "frame_inputs": "fairlearn_frames",
    "inspect_scorer": "inspect_tasks",
    "inspect_task": "inspect_tasks",
    "score_predictions": "fairlearn_frames",
}
__all__ = [
    "FrameInputs",
    "export_task",
    "frame_inputs",
    "inspect_scorer",
    "inspect_task",
    "score_predictions",
]

if not TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module 'evenhand.adapters' has no attribute {name!r}")
        return getattr(require_library(f"evenhand.adapters.{_MODULES[name]}", name), name)


def __dir__() -> list[str]:
    return __all__
