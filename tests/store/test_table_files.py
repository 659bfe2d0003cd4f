import gzip
import json
from datetime import timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.parquet_bytes import write_repeated

from evenhand.core.errors import InputError
from evenhand.store.table_files import column_names, read_table, text_size


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
        ("t.parquet", "not parquet", "is not a readable Parquet file"),
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
    assert str(path) in caught.value.problem
    assert message in caught.value.problem


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path)


def test_a_missing_column_lists_the_columns(tmp_path):
    path = _file(tmp_path, "t.csv", "id,words\n1,x\n")
    with pytest.raises(InputError) as caught:
        read_table(path, {"--text": "text"})
    assert caught.value.problem == f"{path} has no column 'text' (--text)"
    assert caught.value.expected == "id, words"


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_no_bytes_crash_the_readers(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("fuzz")
    for name in ("t.csv", "t.tsv", "t.jsonl", "t.parquet"):
        try:
            read_table(_file(folder, name, content))
        except InputError as error:
            assert error.expected


def test_a_byte_order_mark_is_not_part_of_the_first_name(tmp_path):
    for name, content in (("t.csv", b"text\nx\n"), ("t.jsonl", b'{"text": "x"}\n')):
        assert read_table(_file(tmp_path, name, b"\xef\xbb\xbf" + content)).columns == ["text"]


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.store.table_files._LARGEST", 1000)
    with pytest.raises(InputError, match="unpacks to more than"):
        read_table(_file(tmp_path, "t.jsonl.gz", gzip.compress(b"x" * 5000)))


def test_parquet_of_any_type_is_read_as_text(tmp_path):
    path = tmp_path / "t.parquet"
    spans = [timedelta(days=1, hours=6), None]
    columns = {"span": spans, "bytes": [b"caf\xe9", None], "texts": [[b"a"], None], "spans": [spans, []]}
    pl.DataFrame(columns).write_parquet(path)
    assert read_table(path).to_dict(as_series=False) == {
        "span": ["P1DT6H", None],
        "bytes": ["caf\ufffd", None],
        "texts": ["[\"b'a'\"]", None],
        "spans": ['["1 day, 6:00:00", null]', "[]"],
    }


TOO_MUCH = (
    "at most 100,000,000 rows, 10,000 columns, 250,000,000 cells (a value inside a list counts as 10) and "
    "4 GiB of text"
)


@pytest.mark.parametrize(
    ("about", "size"),
    [
        ({"rows": 2_000_000}, "19,073 MiB of text"),  # 2,000,000 x 10,000 bytes, 2.6 GiB modulo 4 GiB
        ({"rows": 2_000_000, "in_list": True}, "19,073 MiB of text"),
        ({"rows": 100_000_001}, "100,000,001 rows"),
        ({"rows": 50_000_000, "columns": 6}, "300,000,000 cells in 6 columns"),
        ({"rows": 100_000, "columns": 3_000}, "300,000,000 cells in 3,000 columns"),
        ({"rows": 30_000_000, "in_list": True}, "300,000,000 cells in 1 columns"),
        ({"rows": 1, "columns": 10_001}, "10,001 columns"),
    ],
)
def test_a_small_parquet_file_of_any_size_in_memory_is_refused(tmp_path, about, size):
    path = write_repeated(
        tmp_path / "t.parquet", b"x" * (10_000 if about.get("columns") is None else 1), **about
    )
    with pytest.raises(InputError) as caught:
        read_table(path)
    assert caught.value.problem == f"{path} holds {size}, too much to read into memory"
    assert caught.value.expected == TOO_MUCH
    assert caught.value.fix == "split the file, or leave out the columns and lists that are not needed"


@pytest.mark.parametrize(
    ("name", "header", "row"),
    [("t.jsonl", json.dumps(dict.fromkeys(map(str, range(50)), "x")), "{}"), ("t.csv", "x," * 49 + "x", "x")],
)
def test_cells_that_short_rows_lack_are_counted(tmp_path, monkeypatch, name, header, row):
    monkeypatch.setattr("evenhand.store.table_files._MOST_CELLS", 1_000)
    assert read_table(_file(tmp_path, name, "\n".join([header, *[row] * 18]))).width == 50
    with pytest.raises(InputError, match=r"cells in 50 columns, too much to read into memory"):
        read_table(_file(tmp_path, name, "\n".join([header, *[row] * 21])))


def test_line_ends_inside_cells_are_no_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.store.table_files._MOST_CELLS", 10)
    text = "\n".join("abcdefgh")
    assert read_table(_file(tmp_path, "t.csv", f'id,text\n1,"{text}"\n'))["text"].to_list() == [text]


def test_a_csv_file_of_endless_columns_is_refused(tmp_path):
    header = ",".join(map(str, range(10_001)))
    with pytest.raises(InputError, match="10,001 columns"):
        read_table(_file(tmp_path, "t.csv", f"{header}\n{header}\n"))


def test_what_the_headers_refuse_is_not_read(tmp_path, monkeypatch):
    path = write_repeated(tmp_path / "t.parquet", b"x", rows=50_000_000, columns=6)
    monkeypatch.setattr("evenhand.store.table_files.read_parquet", pytest.fail)
    with pytest.raises(InputError, match="300,000,000 cells"):
        read_table(path)


def test_unpacked_bytes_are_refused_from_the_headers(tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.store.table_files._LARGEST", 1 << 20)
    monkeypatch.setattr("evenhand.store.table_files.read_parquet", pytest.fail)
    path = tmp_path / "t.parquet"
    pl.DataFrame({"text": [f"{number:9}" * 20 for number in range(10_000)]}).write_parquet(path)
    with pytest.raises(InputError, match="holds 1 MiB"):
        read_table(path)


@pytest.mark.parametrize(
    "column",
    [
        pl.Series(["x" * 500] * 500),
        pl.Series([b"x" * 500] * 500),
        pl.Series(["x" * 500] * 500, dtype=pl.Categorical),
        pl.Series(["x" * 500] * 500, dtype=pl.Enum(["x" * 500])),
        pl.Series([["x" * 500] * 50] * 10),
        pl.Series([["x" * 500] * 50] * 10, dtype=pl.Array(pl.String, 50)),
        pl.Series([[{"a": 1, "b": [b"x" * 500] * 5}] * 10] * 10),
    ],
    ids=lambda column: str(column.dtype)[:9],
)
def test_texts_that_rows_share_are_counted_for_each_row(tmp_path, monkeypatch, column):
    pl.DataFrame({"text": column}).write_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").height == len(column)
    monkeypatch.setattr("evenhand.store.table_files._LARGEST", 200_000)
    monkeypatch.setattr("evenhand.store.table_files._require_room", lambda *_: None)
    with pytest.raises(InputError, match="MiB of text, too much"):
        read_table(tmp_path / "t.parquet")


def test_a_sum_of_bytes_does_not_wrap_around():
    # Rows that share one text take no memory: 5 x 10^9 bytes, more than 32 bits count.
    assert text_size(pl.Series(["x" * 1000]).new_from_index(0, 5_000_000)) == 5_000_000_000


def test_only_the_wanted_columns_of_parquet_are_read(tmp_path):
    path = write_repeated(tmp_path / "t.parquet", b"word", rows=50_000, columns=6_000)
    wanted = {"--text": "text7", "--prompt": None, "--group a": "text5"}
    table = read_table(path, wanted)
    assert table.columns == ["text5", "text7"]
    assert table["text7"].unique().to_list() == ["word"]
    with pytest.raises(InputError, match=r"has no column 'words' \(--text\)"):
        read_table(path, {"--text": "words"})
    assert column_names(path)[:3] == ["text", "text1", "text2"]
