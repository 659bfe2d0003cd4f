"""Checks of a generation spec: values out of range, and fields that the model does not support."""

from __future__ import annotations

from collections.abc import Collection

from evenhand.core.errors import InputError
from evenhand.core.records import GenerationSpec


def check_spec(spec: GenerationSpec, context: int) -> None:
    """Raise an error if no prompt could be continued with this spec."""
    if spec.max_new_tokens < 1 or spec.max_new_tokens >= context:
        raise InputError(
            f"max_new_tokens is {spec.max_new_tokens}",
            expected=f"1 to {context - 1}: the model's context is {context} tokens, prompt included",
            fix="request fewer tokens, or use a model with a longer context",
        )
    for name, value, accepted, fits in (
        ("temperature", spec.temperature, "0 (greedy) or more", spec.temperature >= 0),
        ("top_k", spec.top_k, "0 (every token) or more", spec.top_k >= 0),
        ("top_p", spec.top_p, "above 0, at most 1", 0 < spec.top_p <= 1),
        ("repetition_penalty", spec.repetition_penalty, "above 0; 1 is off", spec.repetition_penalty > 0),
    ):
        if not fits:
            raise InputError(f"{name} is {value}", expected=accepted, fix=f"change {name}")


def check_control_code(code: str, codes: Collection[str], name: str) -> str:
    """The control code; an error if the model does not support it."""
    if code in codes:
        return code
    raise InputError(
        f"control code {code!r} for the model {name!r}",
        expected=", ".join(sorted(codes)) if codes else "control codes are for CTRL models",
        fix="choose one of these" if codes else "omit the control code",
    )


def refuse_iterations(spec: GenerationSpec, name: str) -> None:
    """Raise an error if a causal model is given a burn-in or iterations."""
    for field, value in (("burn_in", spec.burn_in), ("iterations", spec.iterations)):
        if value is not None:
            raise InputError(
                f"{field} {value} for the model {name!r}",
                expected="burn-in and iterations are for masked models such as builtin:masked",
                fix=f"omit {field}, or use a preset for causal models",
            )
