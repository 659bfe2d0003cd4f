"""The engine of a run, from its settings."""

from __future__ import annotations

import pytest

from evenhand.api.cluster import open_pool
from evenhand.api.settings import ExecutionSettings, Settings


def test_an_address_without_the_engine_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert open_pool(Settings(execution=ExecutionSettings(address="auto"))) is None
    assert caplog.messages == ["the address auto is for --engine ray: the work is done on this machine"]
    caplog.clear()
    assert open_pool(Settings()) is None
    assert not caplog.messages
