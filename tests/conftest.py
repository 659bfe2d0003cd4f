"""Options and fixtures every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-slow", action="store_true", help="run long simulations and trainings")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--run-slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="slow: use --run-slow"))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has an empty cache: none may pass because another one computed its answer."""
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of published data sets, which is never part of the repository."""
    folder = Path(os.environ.get("EVENHAND_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"published data not found at {folder}: set EVENHAND_DATA")
    return folder
