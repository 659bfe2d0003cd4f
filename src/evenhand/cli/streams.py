"""Standard output and standard error while a command runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any, TextIO, cast

from evenhand.core.printable import escape_commands


class OutputStream:
    """An output stream that tolerates a closed reader, such as ``| head``, and can escape workflow commands.

    Without a reader the work continues, so that the exit code still reports how it ended.
    """

    def __init__(self, stream: TextIO, *, escapes_commands: bool) -> None:
        self.stream = stream
        self.escapes_commands = escapes_commands

    def write(self, text: str, *, escapes_commands: bool = True) -> int:
        """Write the text, with workflow commands escaped if the stream does that."""
        try:
            self.stream.write(escape_commands(text) if escapes_commands and self.escapes_commands else text)
        except BrokenPipeError:
            discard(self.stream)
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        try:
            self.stream.flush()
        except BrokenPipeError:
            discard(self.stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def output_streams(*, escapes_commands: bool) -> Iterator[None]:
    """Replace both standard streams by `OutputStream`; a closed stream stays None."""
    out, err = (
        stream and cast(TextIO, OutputStream(stream, escapes_commands=escapes_commands))
        for stream in (sys.stdout, sys.stderr)
    )
    with redirect_stdout(out), redirect_stderr(err):
        yield


def escape_output() -> None:
    """Escape workflow commands in all further output."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, OutputStream):
            stream.escapes_commands = True


def write_command(line: str) -> None:
    """Write a line for the CI runner to execute."""
    stream = sys.stdout
    if isinstance(stream, OutputStream):
        stream.write(line + "\n", escapes_commands=False)
    elif stream is not None:
        stream.write(line + "\n")


def discard(stream: TextIO) -> None:
    """Discard the stream's buffer and all further output; an in-memory stream is left unchanged."""
    with suppress(OSError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())
