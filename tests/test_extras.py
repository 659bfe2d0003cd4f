"""Which errors ``pytest --core`` may turn into skips: absent extras, and nothing else."""

from __future__ import annotations

from tests.extras import missing

import evenhand
from evenhand.core.errors import InputError, MissingLibraryError


def error_of(code: str, *, file: str) -> BaseException:
    """What running the code raises, as if it stood in the file."""
    try:
        exec(compile(code, file, "exec"), {})
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_what_evenhand_names_itself_is_a_skip() -> None:
    assert missing(MissingLibraryError("regard needs torch")) == "core alone: regard needs torch"
    wrapped = RuntimeError("later")
    wrapped.__cause__ = MissingLibraryError("regard needs torch")
    assert missing(wrapped) == "core alone: regard needs torch"


def test_a_library_that_a_test_imports_is_a_skip() -> None:
    absent = error_of("import no_such_library.part", file=__file__)
    assert missing(absent) == "core alone: no_such_library is not installed"


def test_an_undeclared_library_of_the_package_is_a_defect() -> None:
    absent = error_of("import no_such_library", file=f"{evenhand.__path__[0]}/core/seeds.py")
    assert missing(absent) is None


def test_a_missing_module_of_ours_and_any_other_error_are_defects() -> None:
    assert missing(error_of("import evenhand.no_such_part", file=__file__)) is None
    assert missing(InputError("wrong")) is None
    assert missing(AssertionError("1 == 2")) is None
