"""evenhand inside other tools: an Inspect scorer and task, tasks for lm-eval, frames for fairlearn.

The names are resolved when they are first used, so that none of those tools is needed for the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from evenhand.core.errors import MissingLibraryError

if TYPE_CHECKING:
    from evenhand.adapters.fairlearn_frames import FrameInputs, frame_inputs, score_predictions
    from evenhand.adapters.inspect_tasks import inspect_scorer, inspect_task
    from evenhand.adapters.lm_eval_task import export_task

_WHERE = {
    "FrameInputs": "evenhand.adapters.fairlearn_frames",
    "export_task": "evenhand.adapters.lm_eval_task",
    "frame_inputs": "evenhand.adapters.fairlearn_frames",
    "inspect_scorer": "evenhand.adapters.inspect_tasks",
    "inspect_task": "evenhand.adapters.inspect_tasks",
    "score_predictions": "evenhand.adapters.fairlearn_frames",
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
        if name not in _WHERE:
            raise AttributeError(f"module 'evenhand.adapters' has no attribute {name!r}")
        try:
            module = import_module(_WHERE[name])
        except ModuleNotFoundError as error:
            if error.name != "inspect_ai":
                raise
            raise MissingLibraryError(
                f"{name} needs the library 'inspect_ai', which is not installed",
                expected="the extra `inspect` brings it",
                fix='pip install "evenhand[inspect]"',
            ) from error
        return getattr(module, name)


def __dir__() -> list[str]:
    return __all__
