"""What a test may miss where only the core of evenhand is installed (``pytest --core``).

Without the flag a missing library fails its test, so ``make test`` can never pass by skipping.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pytest

from evenhand.core.errors import MissingLibraryError
from evenhand.core.registry import EXTRAS

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
TOOLS = (str(TESTS), str(ROOT / "scripts"), str(ROOT / "tools"))
"""Folders whose files may import what the core does not bring."""
CORE_ALONE = "EVENHAND_TEST_CORE"
"""Set while the core is tested alone."""
FOLDERS = ("annotate", "mitigations", "training")
"""Whole folders of an extra: their fixtures import it."""


class CoreModule(pytest.Module):
    """A file of tests that is skipped where a library it imports belongs to an extra."""

    def _getobj(self) -> object:
        try:
            return super()._getobj()
        except (self.CollectError, pytest.skip.Exception) as error:
            # What is there of the module must go: another that imports from it would find a name missing.
            sys.modules.pop(".".join(self.path.relative_to(ROOT).with_suffix("").parts), None)
            if reason := missing(error):
                pytest.skip(reason, allow_module_level=True)
            raise


def missing(error: BaseException) -> str | None:
    """Why a test cannot run without extras; None where the error is a defect.

    A library counts as an extra's where evenhand says so itself, or where a test or a script imports it: the
    package importing one that it does not declare is exactly what the core alone must show.
    """
    for cause in _causes(error):
        if isinstance(cause, MissingLibraryError):
            return f"core alone: {cause.problem}"
        if isinstance(cause, ModuleNotFoundError):
            library = (cause.name or "").partition(".")[0]
            if library in EXTRAS or (library != "evenhand" and _raised_in_tools(cause.__traceback__)):
                return f"core alone: {library} is not installed"
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _raised_in_tools(trace: TracebackType | None) -> bool:
    """Whether the innermost frame of ours, the one with the import, is a test's or a script's."""
    files = []
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    ours = [name for name in files if "evenhand" in name or name.startswith(TOOLS)]
    return bool(ours) and ours[-1].startswith(TOOLS)
