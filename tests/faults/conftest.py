"""The process that forks commands, once for all tests."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest
from tests.faults.nursery import Nursery

if not hasattr(os, "fork"):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with Nursery() as made:
        yield made


@pytest.fixture(scope="session")
def torch_nursery() -> Iterator[Nursery]:
    pytest.importorskip("torch")
    with Nursery(torch=True) as made:
        yield made


_KILLS = Counter[str]()


@pytest.fixture
def tally() -> Counter[str]:
    """How often each command was killed, told at the end."""
    return _KILLS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _KILLS:
        counted = ", ".join(f"{name} {count}" for name, count in sorted(_KILLS.items()))
        terminalreporter.write_line(f"{_KILLS.total()} kills: {counted}")
