"""Fixtures of the tests of models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.models.host import Host, serving


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A host that answers as the test says, asked without long pauses and without a key."""
    # Here, since the tests of other models run without the libraries of this one.
    from evenhand.models import endpoint

    monkeypatch.setattr(endpoint, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(endpoint, "ATTEMPTS", 4)
    monkeypatch.delenv("EVENHAND_API_KEY", raising=False)
    with serving() as running:
        yield running
