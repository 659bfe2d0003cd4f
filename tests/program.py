"""The program ``evenhand`` without a process of its own: a new one spends seconds on imports.

What only a process has (being killed, a full disk, what is imported) is tested with real ones.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from tests.extras import CORE_ALONE

from evenhand.cli import entry, main
from evenhand.core.errors import MissingLibraryError


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """``evenhand ARGUMENTS`` in a folder: its exit code and what it printed, as a process would have."""
    words = ["evenhand", *map(str, arguments)]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(cwd))
        stack.enter_context(mock.patch.dict(os.environ))
        stack.enter_context(mock.patch.object(sys, "argv", words))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.enter_context(_of_its_own())
        code = _exit_code()
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def _exit_code() -> int:
    with mock.patch.object(entry, "_explain", side_effect=entry._explain) as explain:
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    # With the core alone, a library that is missing skips the test.
    if (
        CORE_ALONE in os.environ
        and explain.called
        and isinstance(explain.call_args[0][0], MissingLibraryError)
    ):
        raise explain.call_args[0][0]
    assert isinstance(code, int)
    return code


@contextlib.contextmanager
def _of_its_own() -> Iterator[None]:
    """Log handlers and warnings as in a new process: the test runner's are put aside."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    root.handlers = []
    try:
        with warnings.catch_warnings():
            warnings.resetwarnings()
            yield
    finally:
        root.handlers = handlers
        root.setLevel(level)
