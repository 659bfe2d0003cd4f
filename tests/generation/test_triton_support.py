"""Whether kernels can be used: Triton is there, and a trial goes well."""

from __future__ import annotations

import pytest

from evenhand.tensors import devices
from evenhand.tensors.devices import triton_available


def test_a_trial_decides_where_triton_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "is_triton_installed", lambda: True)
    assert triton_available(lambda: None, instead="torch's")


@pytest.mark.parametrize(
    ("error", "reason"),
    [(RuntimeError("no compiler\nlong trace"), "no compiler"), (OSError(), "OSError")],
)
def test_a_trial_that_fails_is_told_in_a_line(
    error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(devices, "is_triton_installed", lambda: True)

    def trial() -> None:
        raise error

    assert not triton_available(trial, instead="torch's own do the work")
    assert caplog.messages == [f"Triton cannot compile here ({reason}): torch's own do the work"]


def test_without_triton_nothing_is_tried(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(devices, "is_triton_installed", lambda: False)
    assert not triton_available(lambda: pytest.fail("tried"), instead="torch's")
    assert not caplog.messages
