"""The entry point of ``evenhand``: it ends with a documented exit code, whatever happens.

0: done, or a gate passed. 1: a gate did not pass, and nothing else. 2: an error. 3: partly done.
130: stopped by the user. Python exits with 1 on an uncaught exception, and so do libraries that exit the
process; here both count as errors. Only the standard library is imported first: a broken installation is one.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import traceback
from typing import Final, NoReturn, TextIO

from evenhand.cli.streams import discard, output_streams

DONE: Final = 0
NOT_PASSED: Final = 1
ERROR: Final = 2
PARTIAL: Final = 3
INTERRUPTED: Final = 130
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class GateNotPassedError(Exception):
    """The only way to exit with `NOT_PASSED`."""


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    with output_streams(escapes_commands=os.environ.get("GITHUB_ACTIONS") == "true"):
        code = _run()
    sys.exit(code)


def _run() -> int:
    try:
        code = _call()
        # Flushed here, where a full disk is an error: at process exit it would change the exit code.
        for stream in _open_streams():
            stream.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseException as error:  # a panic in a Rust library is not an Exception
        _report(error)
        return ERROR
    return code


def _call() -> int:
    from evenhand.core.errors import MissingLibraryError
    from evenhand.core.printable import PrintableFormatter

    log = logging.StreamHandler(sys.stderr)
    log.setFormatter(PrintableFormatter("%(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[log])
    # Retries are the back-end's concern; what fails in the end is counted.
    logging.getLogger("stamina").setLevel(logging.ERROR)
    # A warning that cannot be written to a full disk must not become a traceback.
    logging.raiseExceptions = False
    try:
        from evenhand.cli.app import app
    except Exception as error:
        raise MissingLibraryError(
            f"evenhand cannot start: {type(error).__name__}: {error}",
            expected="a complete installation",
            fix="install evenhand and its dependencies again",
        ) from error
    try:
        app()
    except GateNotPassedError:
        return NOT_PASSED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) and end.code in (DONE, PARTIAL, INTERRUPTED) else ERROR
    return DONE


def _report(error: BaseException) -> None:
    """Print what went wrong, if there is space to print it."""
    try:
        _explain(error)
        for stream in _open_streams():
            stream.flush()
    except BaseException:  # no space on disk or in memory: the exit code must suffice
        for stream in _open_streams():
            discard(stream)


def _explain(error: BaseException) -> None:
    from evenhand.core.errors import EvenhandError, StorageError

    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        error = StorageError(
            f"the disk is full: {error.filename or 'the output of this command'} could not be written",
            expected="free space where it writes",
            fix="free some space and run the same command again; finished work is kept",
        )
    if isinstance(error, EvenhandError):
        _say("error", "bold red", error.problem)
        for word, text in {"  expected": error.expected, "  fix": error.fix}.items():
            if text:
                _say(word, "", text)
    elif os.environ.get("EVENHAND_DEBUG"):
        traceback.print_exception(error)
    else:
        _say("defect", "bold red", f"{type(error).__name__}: {error}")
        _say("  fix", "", "finished work is kept; set EVENHAND_DEBUG=1 for the traceback and report it")


def _say(word: str, style: str, message: str) -> None:
    try:
        from evenhand.cli.console import print_message
    except ImportError:  # the terminal library itself may be missing
        sys.stderr.write(f"{word}: {message}\n")
    else:
        print_message(word, style, message)


def _open_streams() -> list[TextIO]:
    """The standard streams, except those already closed at start-up."""
    return [stream for stream in (sys.stdout, sys.stderr) if stream is not None]
