"""Names of files from names that users gave."""

from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.files import safe_file_name, user_path


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gpt2", "gpt2"),
        ("org/model@v1.0", "org-model-v1.0"),
        ("../../etc/passwd", "etc-passwd"),
        ("./my model", "my-model"),
        (".hidden", "hidden"),
        ("-rf", "rf"),
        ("..", "run"),
        ("", "run"),
    ],
)
def test_a_name_stays_readable(text: str, name: str) -> None:
    assert safe_file_name(text, "run") == name


@given(st.text())
def test_a_name_is_one_part_of_a_path_and_never_a_way_up(text: str) -> None:
    name = safe_file_name(text, "run")
    assert PurePosixPath(name).parts == PureWindowsPath(name).parts == (name,)
    assert name not in (".", "..")
    assert not name.startswith((".", "-"))


def test_the_home_folder_unless_something_has_that_very_name(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert user_path("~/x") == tmp_path / "home" / "x"
    assert user_path("~no-such-user/x") == Path("~no-such-user/x")
    Path("~").mkdir()
    assert user_path("~") == Path("~")
    assert user_path("a~") == Path("a~")
