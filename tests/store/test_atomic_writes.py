import errno

import polars as pl
import pytest

from evenhand.core.errors import StorageError
from evenhand.store.atomic_writes import replace_file, write_text


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError), replace_file(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_full_disk_is_said(tmp_path):
    with pytest.raises(StorageError) as caught, replace_file(tmp_path / "a"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.problem == f"the disk is full: {tmp_path / 'a'} could not be written"
    assert "finished shards are kept" in caught.value.fix


def test_a_folder_in_the_way_is_said(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(StorageError, match="cannot be written"):
        write_text(tmp_path / "a", "x")


@pytest.mark.parametrize("error", [RuntimeError, OSError])
@pytest.mark.parametrize("told", ["told (os error 27)", "told (os error 28)", "(Os { code: 27, kind: A })"])
def test_a_full_disk_that_is_told_in_words(tmp_path, error, told):
    """As libraries written in Rust tell it: in their own exceptions, or in an OSError without a number."""
    said = r"^the disk is full: .*x\.bin could not be written\."
    with pytest.raises(StorageError, match=said), replace_file(tmp_path / "x.bin"):
        raise error(f"I/O error: {told}")
    assert not list(tmp_path.iterdir())


def test_a_limit_that_polars_does_not_name_is_found_out(tmp_path, monkeypatch):
    """The footer of a Parquet file that does not fit: Polars speaks of a transport error."""
    monkeypatch.setattr(
        "evenhand.store.atomic_writes._refusal", lambda path: OSError(errno.EFBIG, "File too large")
    )
    with pytest.raises(StorageError, match=r"^the disk is full"), replace_file(tmp_path / "a.parquet"):
        raise pl.exceptions.ComputeError("parquet: Invalid thrift: transport error")


def test_what_polars_says_on_a_disk_with_room_is_left_as_it_is(tmp_path):
    with pytest.raises(pl.exceptions.ComputeError), replace_file(tmp_path / "a.parquet"):
        raise pl.exceptions.ComputeError("parquet: Invalid thrift: transport error")
    assert not list(tmp_path.iterdir())
