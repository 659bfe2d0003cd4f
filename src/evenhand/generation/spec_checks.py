"""What a model refuses of a generation spec: values out of range, and fields that only others know."""

from __future__ import annotations

from collections.abc import Collection

from evenhand.core.errors import InputError
from evenhand.core.records import GenerationSpec


def check_spec(spec: GenerationSpec, context: int) -> None:
    """An error where no prompt at all could be continued as asked."""
    if spec.max_new_tokens < 1 or spec.max_new_tokens >= context:
        raise InputError(
            f"max_new_tokens is {spec.max_new_tokens}",
            expected=f"1 to {context - 1}: the model's context is {context} tokens, prompt included",
            fix="ask for fewer tokens, or take a model with a longer context",
        )
    for name, value, accepted, fits in (
        ("temperature", spec.temperature, "0 (greedy) or more", spec.temperature >= 0),
        ("top_k", spec.top_k, "0 (every token) or more", spec.top_k >= 0),
        ("top_p", spec.top_p, "above 0, at most 1", 0 < spec.top_p <= 1),
        ("repetition_penalty", spec.repetition_penalty, "above 0 (1 is none)", spec.repetition_penalty > 0),
    ):
        if not fits:
            raise InputError(f"{name} is {value}", expected=accepted, fix=f"change {name}")


def check_control_code(code: str, codes: Collection[str], name: str) -> str:
    """The control code, or an error where the model does not know it."""
    if code in codes:
        return code
    raise InputError(
        f"control code {code!r} for the model {name!r}",
        expected=", ".join(sorted(codes)) if codes else "control codes are for CTRL models",
        fix="choose one of these" if codes else "leave the control code out",
    )


def refuse_iterations(spec: GenerationSpec, name: str) -> None:
    """An error where a model that writes forward is given a burn-in or iterations."""
    for field, value in (("burn_in", spec.burn_in), ("iterations", spec.iterations)):
        if value is not None:
            raise InputError(
                f"{field} {value} for the model {name!r}",
                expected="burn-in and iterations are for masked models such as builtin:masked",
                fix=f"leave {field} out, or take a preset for causal models",
            )
