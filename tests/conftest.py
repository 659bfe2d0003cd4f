"""Options and fixtures every test may use."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from tests.extras import CORE_ALONE, FOLDERS, CoreModule, missing

# A busy machine is no defect: examples have no deadline.
settings.register_profile("evenhand", deadline=None)
settings.load_profile("evenhand")

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-slow", action="store_true", help="run long simulations and trainings")
    parser.addoption("--core", action="store_true", help="skip, not fail, where an extra is not installed")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--core"):
        os.environ[CORE_ALONE] = "1"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--run-slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="slow: use --run-slow"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if config.getoption("--core") and collection_path.name in FOLDERS else None


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    if not parent.config.getoption("--core"):
        return None
    return CoreModule.from_parent(parent, path=module_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    return (yield from _or_skip(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    return (yield from _or_skip(item))


def _or_skip(item: pytest.Item) -> Generator[None, None, None]:
    try:
        return (yield)
    except Exception as error:
        if item.config.getoption("--core") and (reason := missing(error)):
            pytest.skip(reason)
        raise


@pytest.fixture(scope="session")
def _caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders that nobody has used. They are counted here: pytest would list all it made before each one."""
    folder = tmp_path_factory.mktemp("caches")
    return (folder / str(number) for number in count())


@pytest.fixture(autouse=True)
def _own_cache(_caches: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has an empty cache: none may pass because another one computed its answer."""
    monkeypatch.setenv("EVENHAND_CACHE", str(next(_caches)))


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of published datasets, which is never part of the repository."""
    folder = Path(os.environ.get("EVENHAND_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"published data not found at {folder}: set EVENHAND_DATA")
    return folder
