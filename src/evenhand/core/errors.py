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

Every message has three parts: what came, what is accepted, what to do.
"""

from __future__ import annotations

from typing import Final

from evenhand.core.printable import printable

_LONGEST: Final = 1200
"""Letters of each part of a message."""


class EvenhandError(Exception):
    """An error with a message for people.

    Args:
        came: What was found, with the value.
        accepted: What would have been accepted.
        todo: What to do next.
    """

    def __init__(self, came: str, *, accepted: str = "", todo: str = "") -> None:
        self.came, self.accepted, self.todo = _shown(came), _shown(accepted), _shown(todo)
        parts = [_sentence(self.came)]
        if accepted:
            parts.append(f"Accepted: {_sentence(self.accepted)}")
        if todo:
            parts.append(f"What to do: {_sentence(self.todo)}")
        super().__init__(" ".join(parts))


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


def _shown(text: str) -> str:
    """The text fit for a terminal: what files hold may be endless, or move the cursor."""
    return printable(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 5]} ...")


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else text + "."
