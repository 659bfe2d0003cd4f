"""The pytest plug-in: the fixture ``evenhand_run`` gives a run, ``assert_gap`` checks it against limits.

    def test_race(evenhand_run, assert_gap):
        assert_gap(evenhand_run, "sentiment.negative", axis="race", below=0.05)

Run with ``pytest --evenhand-run runs/...``, or name the folder as ``evenhand_run`` in the ini file. The
plug-in is loaded in every pytest session, so it imports nothing until a test uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from evenhand.audits.gate import GateResult
    from evenhand.store.run import Run

_OPTION, _INI = "--evenhand-run", "evenhand_run"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option and the ini value that name the run."""
    group = parser.getgroup("evenhand", "measuring bias")
    group.addoption(_OPTION, metavar="DIR", default=None, help="the run folder that `evenhand_run` opens")
    parser.addini(_INI, "the run folder that the fixture `evenhand_run` opens", default="")


@pytest.fixture(scope="session")
def evenhand_run(request: pytest.FixtureRequest) -> Run:
    """The run named by ``--evenhand-run`` or the ini file; without one, the test is skipped with a reason."""
    config = request.config
    given, named = config.getoption(_OPTION), config.getini(_INI)
    if not given and not named:
        pytest.skip(f"no run: pass {_OPTION} DIR, or set {_INI} in the ini file")
    from evenhand.store.run import Run

    # A path on the command line is relative to the current folder; one in the ini file, to the file's.
    folder = Path(config.invocation_params.dir, given) if given else Path(config.rootpath, str(named))
    return Run.open(folder)


@pytest.fixture(scope="session")
def assert_gap() -> Callable[..., GateResult]:
    """`evenhand.testing.assert_gap`, imported on first use."""
    from evenhand.testing import assert_gap as check

    return check
