"""One property for every reader: any input is read, or refused with a message for people.

Nothing else may happen: no other exception, no hang, no leap in memory.
"""

from __future__ import annotations

import resource
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final, Literal

from evenhand.core.errors import EvenhandError, MissingLibraryError

SECONDS: Final = 10.0
"""CPU time an input may take: what other programs do at the time plays no part."""
MEBIBYTES: Final = 384
"""How much one small input may raise the largest size the process ever had."""

Outcome = Literal["read", "refused"]
Tree = object
"""What JSON can hold: the contents of a file before they are written."""


@dataclass(frozen=True)
class Reader:
    """A way bytes come in."""

    name: str
    file: str
    """The name the bytes are given; readers choose by its ending."""
    read: Callable[[Path], object]
    examples: Callable[[], Sequence[bytes]]
    """Files that are read without a word."""
    trees: Callable[[], Sequence[Tree]] = tuple
    """The contents of such files, for inputs of the right form with odd values in them."""
    dump: Callable[[Tree], bytes] = lambda tree: b""
    prepare: Callable[[Path], object] = lambda folder: None
    """Puts into a folder what stands beside the file."""
    pack: Callable[[bytes], bytes] | None = None
    """For packed files: damage is done before packing too."""
    cost: int = 1
    """How many times fewer inputs are tried in the long run than of the quickest readers."""


class CrashError(AssertionError):
    """An input that was neither read nor refused kindly."""


class _SlowError(BaseException):
    """An input took too long; no reader may catch it."""


def try_input(reader: Reader, folder: Path, data: bytes) -> Outcome:
    """Whether the reader took the input or refused it; an assertion error names what else it did."""
    path = folder / reader.file
    path.write_bytes(data)
    before = _peak()
    try:
        with _limited(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = reader.read(path)
            if isinstance(found, Iterator):
                for _ in found:
                    pass
    except EvenhandError as error:
        _check_message(error, reader, data)
        outcome: Outcome = "refused"
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise CrashError(f"{reader.name}: {type(error).__name__}: {error} on {data[:500]!r}") from error
    else:
        outcome = "read"
    grown = (_peak() - before) >> 10
    if grown > MEBIBYTES:
        raise CrashError(f"{reader.name}: {grown} MiB more for {len(data)} bytes: {data[:500]!r}")
    return outcome


def _check_message(error: EvenhandError, reader: Reader, data: bytes) -> None:
    parts = {"came": error.problem, "accepted": error.expected, "todo": error.fix}
    if isinstance(error, MissingLibraryError):
        parts.pop("accepted")
    lacking = [name for name, said in parts.items() if not said.strip()]
    if lacking or len(str(error)) > 4000:
        what = f"lacks {', '.join(lacking)}" if lacking else "is endless"
        raise CrashError(f"{reader.name}: the message {what}: {str(error)[:300]} on {data[:300]!r}")


def _peak() -> int:
    """The largest size of the process so far, in KiB."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size >> 10 if sys.platform == "darwin" else size


@contextmanager
def _limited() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, earlier)


def _stop(number: int, frame: FrameType | None) -> None:
    raise _SlowError(f"took more than {SECONDS:g} s")


def of_trees(
    name: str,
    file: str,
    read: Callable[[Path], object],
    dump: Callable[[Tree], bytes],
    *trees: Tree,
    prepare: Callable[[Path], object] = lambda folder: None,
    cost: int = 1,
) -> Reader:
    """A reader of files that are contents written down."""
    return Reader(
        name, file, read, lambda: [dump(tree) for tree in trees], lambda: trees, dump, prepare, cost=cost
    )
