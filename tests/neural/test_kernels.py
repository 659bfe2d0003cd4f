"""Whether kernels can be used: Triton is there, and a trial goes well."""

from __future__ import annotations

import pytest

from evenhand.neural import kernels
from evenhand.neural.kernels import can_compile


def test_a_trial_decides_where_triton_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "has_triton", lambda: True)
    assert can_compile(lambda: None, instead="torch's")


@pytest.mark.parametrize(
    ("error", "reason"),
    [(RuntimeError("no compiler\nlong trace"), "no compiler"), (OSError(), "OSError")],
)
def test_a_trial_that_fails_is_told_in_a_line(
    error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kernels, "has_triton", lambda: True)

    def trial() -> None:
        raise error

    assert not can_compile(trial, instead="torch's own do the work")
    assert caplog.messages == [f"Triton cannot compile here ({reason}): torch's own do the work"]


def test_without_triton_nothing_is_tried(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kernels, "has_triton", lambda: False)
    assert not can_compile(lambda: pytest.fail("tried"), instead="torch's")
    assert not caplog.messages
