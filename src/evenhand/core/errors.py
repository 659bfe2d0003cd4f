"""The errors that evenhand raises on purpose; any other error is a bug.

    EvenhandError
    ├── InputError (ValueError)         a file, column, value or option we cannot use
    │   └── UnknownKeywordError (TypeError)  an argument that a public function does not have
    ├── UnknownNameError (LookupError)  no such suite, model, metric, mitigation
    ├── MissingLibraryError (ImportError)  an optional library is absent: the message names the extra
    ├── ModelError                      a model that cannot be loaded or does not respond
    ├── RunFolderError                  a run folder that is locked, damaged or of another configuration
    ├── StorageError (OSError)          the disk is full or refuses to write
    └── FailureRateError                too many items failed for the rest to be meaningful

Every message has three parts: the problem, what is expected, how to fix it.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Final

from evenhand.core.printable import printable

_LONGEST: Final = 1200
"""Maximum length of each part of a message."""


class EvenhandError(Exception):
    """An error with a message for users.

    Args:
        problem: What is wrong, with the offending value.
        expected: What is accepted.
        fix: How to fix it.
        accepted: The former name of ``expected``, accepted for one release.
        todo: The former name of ``fix``, accepted for one release.
    """

    def __init__(
        self, problem: str, *, expected: str = "", fix: str = "", accepted: str = "", todo: str = ""
    ) -> None:
        if accepted or todo:
            warnings.warn(
                "accepted= and todo= of evenhand's errors are now expected= and fix=",
                DeprecationWarning,
                stacklevel=2,
            )
        # Made safe for a terminal: text from files may be very long, or contain control characters.
        self.problem, self.expected, self.fix = (
            printable(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 5]} ...")
            for text in (problem, expected or accepted, fix or todo)
        )
        by_prefix = {"": self.problem, "Expected: ": self.expected, "Fix: ": self.fix}
        parts = [name + text for name, text in by_prefix.items() if text]
        super().__init__(" ".join(text if text.endswith((".", "?", "!")) else text + "." for text in parts))

    def __reduce__(self) -> tuple[partial[EvenhandError], tuple[()]]:
        """Pickle the error by its parts, for another process."""
        return partial(type(self), self.problem, expected=self.expected, fix=self.fix), ()

    @property
    def came(self) -> str:
        """The former name of ``problem``, kept for one release."""
        return self.problem

    @property
    def accepted(self) -> str:
        """The former name of ``expected``, kept for one release."""
        return self.expected

    @property
    def todo(self) -> str:
        """The former name of ``fix``, kept for one release."""
        return self.fix


class InputError(EvenhandError, ValueError):
    """A file, column, value or option that cannot be used."""


class UnknownKeywordError(InputError, TypeError):
    """A keyword argument that a function does not accept."""


class UnknownNameError(EvenhandError, LookupError):
    """A name that is not registered for any suite, model, metric or mitigation."""


class MissingLibraryError(EvenhandError, ImportError):
    """An optional library that is not installed."""


class ModelError(EvenhandError):
    """A model that cannot be loaded or does not respond."""


class RunFolderError(EvenhandError):
    """A run folder that is locked, belongs to another configuration, or is damaged."""


class StorageError(EvenhandError, OSError):
    """A disk that is full or refuses to write."""


class FailureRateError(EvenhandError):
    """More items failed than the run tolerates."""
