import pytest

from evenhand.core.errors import (
    EvenhandError,
    InputError,
    MissingLibraryError,
    StorageError,
    UnknownNameError,
)


def test_a_message_has_three_parts():
    error = InputError("column 'txt' is missing", expected="id, text", fix="name one with --text")
    assert str(error) == ("column 'txt' is missing. Expected: id, text. Fix: name one with --text.")


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (InputError, ValueError),
        (UnknownNameError, LookupError),
        (MissingLibraryError, ImportError),
        (StorageError, OSError),
    ],
)
def test_errors_are_also_what_python_calls_them(kind, builtin):
    assert issubclass(kind, builtin)
    assert issubclass(kind, EvenhandError)
