"""The errors evenhand raises on purpose; anything else is a defect.

    EvenhandError
    ├── InputError (ValueError)         a file, column, value or option we cannot use
    │   └── UnknownKeywordError (TypeError)  an argument that a public function does not have
    ├── UnknownNameError (LookupError)  no such suite, model, metric, mitigation
    ├── MissingLibraryError (ImportError)  an optional library is absent: the message names the extra
    ├── ModelError                      a model that cannot be loaded or asked
    ├── RunFolderError                  a run folder that is locked, foreign or damaged
    ├── StorageError (OSError)          the disk is full or refuses to write
    └── FailureRateError                too many items failed for the rest to mean anything

Every message has three parts: what was wrong, what is accepted, how to fix it.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Final

from evenhand.core.printable import printable

_LONGEST: Final = 1200
"""Letters of each part of a message."""


class EvenhandError(Exception):
    """An error with a message for people.

    Args:
        problem: What was wrong, with the value.
        expected: What is accepted.
        fix: How to fix it.
        expected: The former name of ``expected``, read for one release.
        todo: The former name of ``fix``, read for one release.
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
        # Made fit for a terminal: what files hold may be endless, or move the cursor.
        self.problem, self.expected, self.fix = (
            printable(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 5]} ...")
            for text in (problem, expected or accepted, fix or todo)
        )
        parts = {"": self.problem, "Expected: ": self.expected, "Fix: ": self.fix}
        said = [name + text for name, text in parts.items() if text]
        super().__init__(" ".join(text if text.endswith((".", "?", "!")) else text + "." for text in said))

    def __reduce__(self) -> tuple[partial[EvenhandError], tuple[()]]:
        """The error with its parts, for another process."""
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
    """A keyword argument that a function does not have."""


class UnknownNameError(EvenhandError, LookupError):
    """A name that no suite, model, metric or mitigation answers to."""


class MissingLibraryError(EvenhandError, ImportError):
    """An optional library that is not installed."""


class ModelError(EvenhandError):
    """A model that cannot be loaded, or does not answer."""


class RunFolderError(EvenhandError):
    """A run folder that is locked, belongs to another configuration, or is damaged."""


class StorageError(EvenhandError, OSError):
    """A disk that is full or refuses to write."""


class FailureRateError(EvenhandError):
    """More items failed than the run may lose."""
