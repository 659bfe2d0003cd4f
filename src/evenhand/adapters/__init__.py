"""evenhand inside other tools: an Inspect scorer and task, lm-eval tasks, fairlearn frames.

Names are resolved on first use, so that using one of these tools does not require the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.core.registry import require_library

if TYPE_CHECKING:  # `as` exports a name for type checkers
    from evenhand.adapters.fairlearn_frames import FrameInputs as FrameInputs
    from evenhand.adapters.fairlearn_frames import frame_inputs as frame_inputs
    from evenhand.adapters.fairlearn_frames import score_predictions as score_predictions
    from evenhand.adapters.inspect_tasks import inspect_scorer as inspect_scorer
    from evenhand.adapters.inspect_tasks import inspect_task as inspect_task
    from evenhand.adapters.lm_eval_task import export_task as export_task

_WHERE = {
    "FrameInputs": "evenhand.adapters.fairlearn_frames",
    "export_task": "evenhand.adapters.lm_eval_task",
    "frame_inputs": "evenhand.adapters.fairlearn_frames",
    "inspect_scorer": "evenhand.adapters.inspect_tasks",
    "inspect_task": "evenhand.adapters.inspect_tasks",
    "score_predictions": "evenhand.adapters.fairlearn_frames",
}
__all__ = sorted(_WHERE)

if not TYPE_CHECKING:  # a type checker would believe that every name exists

    def __getattr__(name: str) -> object:
        if name not in _WHERE:
            raise AttributeError(f"module 'evenhand.adapters' has no attribute {name!r}")
        return getattr(require_library(_WHERE[name], name), name)


def __dir__() -> list[str]:
    return __all__
