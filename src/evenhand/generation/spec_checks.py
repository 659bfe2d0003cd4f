"""Sampling that only some models know: a model that does not know a field refuses it."""

from __future__ import annotations

from collections.abc import Collection

from evenhand.core.errors import InputError
from evenhand.core.records import GenerationSpec


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
