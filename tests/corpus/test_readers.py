"""Every format and packing gives the same texts; what is damaged is reported, the rest is read."""

import bz2
import gzip
import lzma
import os
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest
from tests.corpus.reading import TEXTS, read, records, write

from evenhand.core.errors import InputError
from evenhand.corpus.readers import find_line_start, read_blocks
from evenhand.store.text_sources import find_sources, refuse_keys


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
def test_tables(tmp_path, name):
    write(tmp_path / name)
    assert records(tmp_path / name) == ([text.encode() for text in TEXTS], [])


@pytest.mark.parametrize(
    ("ending", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_packings(tmp_path, ending, pack):
    (tmp_path / f"a.txt{ending}").write_bytes(pack(b"happy\n" * 1000) + pack(b"sad\n"))
    assert read(tmp_path / f"a.txt{ending}") == (b"happy\n" * 1000 + b"sad\n", [])
    write(tmp_path / "b.jsonl")
    (tmp_path / f"b.jsonl{ending}").write_bytes(pack((tmp_path / "b.jsonl").read_bytes()))
    assert records(tmp_path / f"b.jsonl{ending}")[0] == [text.encode() for text in TEXTS]


def test_zstd(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    frame = zstandard.ZstdCompressor().compress(b"happy\n" * 1000)
    (tmp_path / "a.txt.zst").write_bytes(frame + frame)
    assert read(tmp_path / "a.txt.zst") == (b"happy\n" * 2000, [])
    # A skippable frame of two bytes: its magic number, its size, its content.
    (tmp_path / "a.txt.zst").write_bytes(b"\x50\x2a\x4d\x18\x02\0\0\0no" + frame)
    assert read(tmp_path / "a.txt.zst") == (b"happy\n" * 1000, [])


@pytest.mark.parametrize("left", [0.02, 0.5, 0.999])
def test_a_cut_zstd_file_is_not_taken_for_a_whole_one(tmp_path, left):
    zstandard = pytest.importorskip("zstandard")
    whole = b"".join(b"%d is happy\n" % (i * i) for i in range(50_000))
    packed = zstandard.ZstdCompressor().compress(whole)
    (tmp_path / "a.txt.zst").write_bytes(packed[: int(len(packed) * left)])
    data, ((byte, reason),) = read(tmp_path / "a.txt.zst")
    assert whole.startswith(data)
    assert byte == int(len(packed) * left)
    assert reason == (
        "reading failed: Compressed file ended before the end of its last frame; counted up to here"
    )


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_long_texts_are_handed_over_a_few_at_a_time(tmp_path, name):
    texts = [f"{number} {'happy ' * 200_000}" for number in range(40)]
    if name == "a.csv":
        (tmp_path / name).write_text("text\n" + "".join(f"{text}\n" for text in texts))
    else:
        pl.DataFrame({"text": texts}).write_parquet(tmp_path / name)
    (source,), _ = find_sources([tmp_path / name])
    pieces = [block.data for block in read_blocks(source, pytest.fail)]
    assert b"".join(pieces).count(b"\xff") == 40
    assert max(map(len, pieces)) < 25_000_000


def test_parquet_is_cut_by_bytes_where_short_texts_come_before_long_ones(tmp_path):
    texts = [*["sad"] * 5_000, *[f"{number} {'happy ' * 7_000}" for number in range(2_000)]]
    pl.DataFrame({"text": texts}).write_parquet(tmp_path / "a.parquet")
    (source,), _ = find_sources([tmp_path / "a.parquet"])
    pieces = list(read_blocks(source, pytest.fail))
    assert b"".join(piece.data for piece in pieces) == b"".join(text.encode() + b"\xff" for text in texts)
    assert [place for piece in pieces for place in piece.places] == list(range(7_000))
    assert max(len(piece.data) for piece in pieces) < 9_000_000


@pytest.mark.parametrize("kind", [pl.String, pl.Binary, pl.Categorical])
def test_parquet_that_names_one_text_many_times_is_cut_by_bytes(tmp_path, kind):
    texts = pl.Series("text", [None, "x" * 10_000], dtype=pl.String).cast(kind)
    texts.gather([0, *[1] * 4_000, 0]).to_frame().write_parquet(tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 100_000
    (source,), _ = find_sources([tmp_path / "a.parquet"])
    pieces = list(read_blocks(source, pytest.fail))
    assert [place for piece in pieces for place in piece.places] == list(range(1, 4_001))
    assert max(len(piece.data) for piece in pieces) < 9_000_000


def test_a_text_of_parquet_that_is_too_long_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.corpus.readers.LONGEST_RECORD", 1 << 20)
    monkeypatch.setattr("evenhand.corpus.readers._SLICE_BYTES", 1 << 18)
    texts = ["happy", "x" * ((1 << 20) + 1), "sad"]
    pl.DataFrame({"text": texts}).write_parquet(tmp_path / "a.parquet")
    problems = [(None, "row 1 is longer than 1 MiB; not counted")]
    assert records(tmp_path / "a.parquet") == ([b"happy", b"sad"], problems)


def test_bytes_and_spans_of_time_are_texts_of_parquet_and_lists_are_not(tmp_path):
    columns = {"text": [b"caf\xe9 happy", b"sad"], "span": [timedelta(days=1), None], "list": [["a"], ["b"]]}
    pl.DataFrame(columns).write_parquet(tmp_path / "a.parquet")
    assert records(tmp_path / "a.parquet") == (["caf\ufffd happy".encode(), b"sad"], [])
    assert records(tmp_path / "a.parquet", column="span") == ([b"P1D"], [])
    reason = "the column 'list' holds lists or structs, not texts; name another with --text; not counted"
    assert records(tmp_path / "a.parquet", column="list") == ([], [(0, reason)])


def test_a_name_with_brackets_is_that_file(tmp_path):
    write(tmp_path / "part[0].parquet", ["happy", "sad", "angry"])
    write(tmp_path / "part0.parquet", ["no", "not", "none"])
    assert records(tmp_path / "part[0].parquet") == ([b"happy", b"sad", b"angry"], [])


@pytest.mark.parametrize("name", ["run?", "run[1]", "**", "{a}", "~", "%20", "a b", "Zoë 東"])
def test_what_is_there_by_name_is_no_pattern(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for folder in ("run1", name):
        Path(folder).mkdir()
        for file in ("x1.txt", f"{name}.txt"):
            Path(folder, file).write_text("a")

    def paths(place):
        return sorted(source.path for source in find_sources([place])[0])

    both = sorted([f"{name}/x1.txt", f"{name}/{name}.txt"])
    assert paths(name) == paths(f"ours={name}") == both
    assert paths(f"{name}/{name}.txt") == [f"{name}/{name}.txt"]
    assert paths(f"{name}/x?.txt") == [f"{name}/x1.txt"]
    assert paths(tmp_path / name / "x*") == [str(tmp_path / name / "x1.txt")]
    pytest.importorskip("fsspec")
    assert paths(f"file://{tmp_path}/{name}/{name}.txt") == [f"file://{tmp_path}/{name}/{name}.txt"]


def test_folders_globs_names_and_urls(tmp_path):
    for name in ("a/x.txt", "a/b/y.jsonl", "a/.hidden/z.txt", "c/w.xml.bz2"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"1")
    found, problems = find_sources(
        [f"one={tmp_path / 'a'}", f"two={tmp_path}/*/w*", tmp_path / "nothing.txt"]
    )
    assert [(s.corpus, s.path.removeprefix(str(tmp_path)), s.format, s.packing) for s in found] == [
        ("one", "/a/b/y.jsonl", "jsonl", ""),
        ("one", "/a/x.txt", "text", ""),
        ("two", "/c/w.xml.bz2", "mediawiki", "bz2"),
    ]
    assert [problem.reason for problem in problems] == ["no such file, or an empty folder"]
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://corpus/part.txt", "wb") as file:
        file.write(b"happy")
    assert read("memory://corpus/*.txt") == (b"happy", [])
    with pytest.raises(InputError, match="no files to read"):
        find_sources([tmp_path / "nothing"])


def test_truncated_gzip_is_read_up_to_the_break(tmp_path):
    lines = b"".join(b"line %d\n" % number for number in range(200_000))
    whole = gzip.compress(lines)
    (tmp_path / "a.txt.gz").write_bytes(whole[: len(whole) // 2])
    data, problems = read(tmp_path / "a.txt.gz")
    assert lines.startswith(data)
    assert len(data) > len(lines) // 3
    ((byte, reason),) = problems
    assert byte == len(whole) // 2
    assert reason.startswith("reading failed: Compressed file ended")


def test_what_is_not_text_is_reported(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"abc\x00def")
    assert read(tmp_path / "a.txt") == (b"", [(3, "is not text (a zero byte); not counted")])
    (tmp_path / "b.txt").write_bytes("happy".encode("utf-16"))
    assert read(tmp_path / "b.txt") == (b"", [(0, "is UTF-16, not UTF-8; not counted")])
    (tmp_path / "c.parquet").write_bytes(b"nothing")
    ((byte, reason),) = read(tmp_path / "c.parquet")[1]
    assert (byte, reason[:14]) == (0, "is not Parquet")
    (tmp_path / "d.csv").write_text("a,b\n1,2\n")
    ((byte, reason),) = read(tmp_path / "d.csv")[1]
    assert (byte, reason[:13]) == (0, "has no column")


def test_bad_lines_of_jsonl_are_placed(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "one"}\n{"text": \n{"other": 1}\n\n{"text": "two"}')
    texts, problems = records(tmp_path / "a.jsonl")
    assert texts == [b"one", b"two"]
    assert [(byte, reason.split(" (")[0]) for byte, reason in problems] == [
        (16, "a line is not JSON"),
        (26, "a line has no text; not counted"),
    ]


def test_records_say_where_they_begin(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'text\n"a\nb"\nd\xe9j\xe0\nlast\n')
    (tmp_path / "b.jsonl").write_bytes('{"text": "é"}\n\n{"text": "b"}'.encode())
    pl.DataFrame({"text": ["a", None, "c"]}).write_parquet(tmp_path / "c.parquet")
    (tmp_path / "d.xml").write_text("<mediawiki> <page><text>a</text></page><page><text>b</text></page>")
    (tmp_path / "e.json").write_text('["a",\n "b"]')
    places = {}
    for name in ("a.csv", "b.jsonl", "c.parquet", "d.xml", "e.json"):
        (source,), _ = find_sources([tmp_path / name])
        found = read_blocks(source, lambda problem: None)
        places[name] = [place for block in found for place in block.places]
    assert places == {
        "a.csv": [5, 11, 16],
        "b.jsonl": [0, 16],
        "c.parquet": [0, 2],
        "d.xml": [12, 39],
        "e.json": [1, 7],
    }


def test_lines_begin_where_they_begin(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab\ncd\n\nef")
    with (tmp_path / "a.txt").open("rb") as file:
        assert [find_line_start(file, place) for place in range(10)] == [0, 3, 3, 3, 6, 6, 6, 7, 9, 9]


def test_mixed_encodings_in_a_table_are_placed(tmp_path):
    (tmp_path / "a.csv").write_bytes("text\nhäppy\n".encode() + b"d\xe9j\xe0 vu\nhappy\n")
    texts, problems = records(tmp_path / "a.csv")
    assert texts == ["häppy".encode(), "d\ufffdj\ufffd vu".encode(), b"happy"]
    # "text", a newline, six bytes and a newline, then "d".
    assert problems == [(13, "is not UTF-8 here; such bytes separate words")]
    (tmp_path / "a.jsonl").write_text('{"text": "half \\ud83d happy"}\n')
    assert records(tmp_path / "a.jsonl")[0][0].decode().replace("\ufffd", "") == "half  happy"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_links_to_pipes_and_devices_are_no_texts(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for name, target in {
        "zero.csv": "/dev/zero",
        "linked.csv": "pipe.csv",
        "gone.csv": "no such file",
    }.items():
        (tmp_path / name).symlink_to(target)
    (tmp_path / "a.csv").write_text("text\nhappy\n")
    assert [Path(source.path).name for source in find_sources([tmp_path])[0]] == ["a.csv", "gone.csv"]
    named = [tmp_path / name for name in ("a.csv", "pipe.csv", "zero.csv")]
    sources, problems = find_sources(named)
    assert [source.path for source in sources] == [str(named[0])]
    assert [problem.reason for problem in problems] == ["it is a named pipe", "it is a device"]
    with pytest.raises(InputError, match=r"^no files to read in .*pipe\.csv: it is a named pipe\. "):
        find_sources([tmp_path / "pipe.csv"])
    with pytest.raises(InputError, match="it is a named pipe"):
        find_sources([f"file://{tmp_path}/pipe.csv"])


def test_folders_of_tables_and_runs(tmp_path, monkeypatch):
    for name in ("split=train/a.txt", "runs/one/run.json", "runs/one/.lock", "runs/one/shards/b.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("happy")
    monkeypatch.chdir(tmp_path)
    for path in (".", "split=train", "split=train/*.txt"):
        assert [source.path for source in find_sources([path])[0]] == ["split=train/a.txt"]


@pytest.mark.parametrize(
    "url",
    [
        "https://me:secret@localhost/a.txt",
        "https://localhost/a.txt?sig=secret",
        "ftp://me:secret@localhost/",
        "filecache::https://me:secret@localhost/a.txt",
        "s3://key:secret@bucket/a.txt",
        "ssh://:secret@localhost/a.txt",
        "http://[secret",
    ],
)
def test_keys_in_urls_are_refused_and_not_repeated(url):
    with pytest.raises(InputError) as caught:
        find_sources([url])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["github://org:name@main/a.txt", "abfs://box@host/a.txt", "s3://b/p[0-9].txt"]
)
def test_what_only_looks_like_a_key_is_not(url):
    refuse_keys(url)
