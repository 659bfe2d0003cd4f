import gzip
import json

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.errors import InputError
from evenhand.store.files import read_table, require_columns


def _file(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.jsonl", '{"id": 1, "text": "a, b"}\n\n{"id": 2, "text": null}\n'),
        ("t.csv", 'id,text\n1,"a, b"\n2,\n'),
        ("t.tsv", "id\ttext\n1\ta, b\n2\t\n"),
    ],
)
def test_every_format_gives_the_same_columns_of_text(tmp_path, name, content):
    table = read_table(_file(tmp_path, name, content))
    assert table.to_dict(as_series=False) == {"id": ["1", "2"], "text": ["a, b", None]}


def test_parquet_is_read_as_text_with_nan_as_null_and_lists_as_json(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame(
        {"n": [1.5, float("nan")], "words": [["a", "b"], None], "flag": [True, False]}
    ).write_parquet(path)
    table = read_table(path)
    assert table["n"].to_list() == ["1.5", None]
    assert table["words"].to_list() == ['["a", "b"]', None]
    assert table["flag"].to_list() == ["true", "false"]


def test_gzip_is_read(tmp_path):
    path = _file(tmp_path, "t.jsonl.gz", gzip.compress(b'{"text": "x"}\n'))
    assert read_table(path)["text"].to_list() == ["x"]


def test_rows_may_have_different_keys(tmp_path):
    table = read_table(_file(tmp_path, "t.jsonl", '{"a": "1"}\n{"b": [1, {"c": 2}]}\n'))
    assert table.to_dict(as_series=False) == {"a": ["1", None], "b": [None, '[1,{"c":2}]']}


def test_bytes_that_are_not_utf8_become_the_replacement_character(tmp_path):
    for name, content in (("t.csv", b"text\ncaf\xe9\n"), ("t.jsonl", b'{"text": "caf\xe9"}\n')):
        assert read_table(_file(tmp_path, name, content))["text"].to_list() == ["caf�"]


def test_nan_in_json_is_null(tmp_path):
    assert read_table(_file(tmp_path, "t.jsonl", '{"v": NaN, "w": 1}\n'))["v"].to_list() == [None]


def test_a_line_of_100_kb_is_read(tmp_path):
    text = "long " * 20_000
    assert read_table(_file(tmp_path, "t.jsonl", json.dumps({"text": text})))["text"][0] == text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.jsonl", "", "has no rows"),
        ("t.csv", "", "has no rows"),
        ("t.csv", "id,text\n", "has no rows"),
        ("t.jsonl", '{"a": 1}\n{"a": \n', "line 2 is not JSON"),
        ("t.jsonl", "[1]\n", "line 1 holds a list"),
        ("t.parquet", "not parquet", "is not a Parquet file"),
        ("t.xlsx", "x", "ends in .xlsx"),
        ("t.jsonl.gz", "not gzip", "cannot be read"),
        ("t.csv.gz", gzip.compress(b"text" * 100, mtime=0)[:20] + b"xxxxxxxxxxxxxxxx", "cannot be read"),
        ("t.csv", "text\nx\n".encode("utf-16"), "is UTF-16"),
        ("t.jsonl", '{"a": ' + "9" * 5000 + "}", "line 1 is not JSON"),
    ],
)
def test_bad_files_are_named(tmp_path, name, content, message):
    path = _file(tmp_path, name, content)
    with pytest.raises(InputError) as caught:
        read_table(path)
    assert str(path) in caught.value.came
    assert message in caught.value.came


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(InputError, match="is not there"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path)


def test_a_missing_column_lists_the_columns(tmp_path):
    path = _file(tmp_path, "t.csv", "id,words\n1,x\n")
    with pytest.raises(InputError) as caught:
        require_columns(read_table(path), {"--text": "text"}, path)
    assert caught.value.came == f"{path} has no column 'text' (--text)"
    assert caught.value.accepted == "id, words"


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_no_bytes_crash_the_readers(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("fuzz")
    for name in ("t.csv", "t.tsv", "t.jsonl", "t.parquet"):
        try:
            read_table(_file(folder, name, content))
        except InputError as error:
            assert error.accepted


def test_a_byte_order_mark_is_not_part_of_the_first_name(tmp_path):
    for name, content in (("t.csv", b"text\nx\n"), ("t.jsonl", b'{"text": "x"}\n')):
        assert read_table(_file(tmp_path, name, b"\xef\xbb\xbf" + content)).columns == ["text"]


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.store.files._LARGEST", 1000)
    with pytest.raises(InputError, match="unpacks to more than"):
        read_table(_file(tmp_path, "t.jsonl.gz", gzip.compress(b"x" * 5000)))
