"""Every format and packing gives the same texts; what is damaged is reported, the rest is read."""

import bz2
import csv
import gzip
import json
import lzma
import time

import polars as pl
import pytest

from evenhand.core.errors import InputError
from evenhand.corpus.readers import blocks, line_start
from evenhand.corpus.sources import find_sources
from evenhand.corpus.wikitext import plain

TEXTS = ['She is happy.\nTwo lines, "quoted".', "Ünïcode, fear", "a\tb"]


def read(path, **options):
    (source,), _ = find_sources([path])
    problems = []
    data = b"".join(blocks(source, problems.append, **options))
    return data, [(problem.byte, problem.reason) for problem in problems]


def records(path, **options):
    data, problems = read(path, **options)
    return data.decode("utf-8", "surrogateescape").encode("utf-8", "surrogateescape").split(b"\xff")[
        :-1
    ], problems


def write(path, texts=TEXTS):
    if path.suffix == ".parquet":
        pl.DataFrame({"id": [1, 2, 3], "text": texts}).write_parquet(path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            rows = [["id", "Text"], *([str(i), text] for i, text in enumerate(texts))]
            csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",").writerows(rows)


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
        "cannot be read on: Compressed file ended before the end of its last frame; counted up to here"
    )


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_long_texts_are_handed_over_a_few_at_a_time(tmp_path, name):
    texts = [f"{number} {'happy ' * 200_000}" for number in range(40)]
    if name == "a.csv":
        (tmp_path / name).write_text("text\n" + "".join(f"{text}\n" for text in texts))
    else:
        pl.DataFrame({"text": texts}).write_parquet(tmp_path / name)
    (source,), _ = find_sources([tmp_path / name])
    pieces = list(blocks(source, pytest.fail))
    assert b"".join(pieces).count(b"\xff") == 40
    assert max(map(len, pieces)) < 25_000_000


def test_a_name_with_brackets_is_that_file(tmp_path):
    write(tmp_path / "part[0].parquet", ["happy", "sad", "angry"])
    write(tmp_path / "part0.parquet", ["no", "not", "none"])
    assert records(tmp_path / "part[0].parquet") == ([b"happy", b"sad", b"angry"], [])


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
    assert [problem.reason for problem in problems] == ["no such file, or nothing in it"]
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://corpus/part.txt", "wb") as file:
        file.write(b"happy")
    assert read("memory://corpus/*.txt") == (b"happy", [])
    with pytest.raises(InputError, match="no file to read"):
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
    assert reason.startswith("cannot be read on: Compressed file ended")


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


def test_lines_begin_where_they_begin(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"ab\ncd\n\nef")
    with (tmp_path / "a.txt").open("rb") as file:
        assert [line_start(file, place) for place in range(10)] == [0, 3, 3, 3, 6, 6, 6, 7, 9, 9]


def test_a_wiki_dump(tmp_path):
    page = "<page><title>{t}</title><ns>{n}</ns><revision><text>{x}</text></revision></page>"
    body = page.format(
        t="A", n=0, x="'''Joy''' is [[happiness|happy]].&lt;ref&gt;note&lt;/ref&gt; {{box|{{in}}}}"
    )
    body += page.format(t="Talk", n=1, x="talk") + page.format(t="B", n=0, x="Fear")
    (tmp_path / "dump.xml").write_text(f'<mediawiki xmlns="http://www.mediawiki.org/xml/">{body}</mediawiki>')
    texts, problems = records(tmp_path / "dump.xml")
    assert ([b" ".join(text.split()) for text in texts], problems) == ([b"Joy is happy.", b"Fear"], [])
    (tmp_path / "cut.xml").write_text(f"<mediawiki>{body}<page>")
    texts, problems = records(tmp_path / "cut.xml")
    assert len(texts) == 2
    assert "is not XML" in problems[0][1]


def test_wikitext():
    text = "== Head ==\n* [[Paris]] and [http://x.org the site] {| a\n| b\n|} "
    text += "[[File:x.png|thumb|a [[b]] c]] end<br/>"
    assert plain(text).split() == ["Head", "Paris", "and", "the", "site", "end"]


def test_notes_of_any_spelling_are_taken_out():
    text = 'a<REF name="x" />b<ref>c<Ref>d</ref >e<!-- <ref> -->f<math>g</MATH>h<references/>i<ref>j'
    assert plain(text).split() == ["a", "b", "e", "f", "hij"]


@pytest.mark.parametrize(
    "opening",
    ["<!--", "<ref>a ", "<ref ", "[[File:a ", "[http://a ", "[http://a", "=a", "{{a", "{|", "= ", " "],
)
def test_a_page_of_things_that_never_close_holds_nothing_up(opening):
    text = "x" + opening * (300_000 // len(opening)) + "y"
    started = time.process_time()
    plain(text)
    # Quadratic patterns took minutes.
    assert time.process_time() - started < 5


def test_mixed_encodings_in_a_table_are_placed(tmp_path):
    (tmp_path / "a.csv").write_bytes("text\nhäppy\n".encode() + b"d\xe9j\xe0 vu\nhappy\n")
    texts, problems = records(tmp_path / "a.csv")
    assert texts == ["häppy".encode(), "d\ufffdj\ufffd vu".encode(), b"happy"]
    # "text", a newline, six bytes and a newline, then "d".
    assert problems == [(13, "is not UTF-8 here; such bytes separate words")]
    (tmp_path / "a.jsonl").write_text('{"text": "half \\ud83d happy"}\n')
    assert records(tmp_path / "a.jsonl")[0][0].decode().replace("\ufffd", "") == "half  happy"


def test_folders_of_tables_and_runs(tmp_path, monkeypatch):
    for name in ("split=train/a.txt", "runs/one/run.json", "runs/one/.lock", "runs/one/shards/b.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("happy")
    monkeypatch.chdir(tmp_path)
    for path in (".", "split=train", "split=train/*.txt"):
        assert [source.path for source in find_sources([path])[0]] == ["split=train/a.txt"]


@pytest.mark.parametrize(
    "url",
    ["https://me:secret@localhost/a.txt", "https://localhost/a.txt?sig=secret", "ftp://me:secret@localhost/"],
)
def test_keys_in_urls_are_refused_and_not_repeated(url):
    with pytest.raises(InputError) as caught:
        find_sources([url])
    assert "secret" not in str(caught.value)
