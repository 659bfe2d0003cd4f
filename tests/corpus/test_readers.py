"""Every format and packing gives the same texts; what is damaged is reported, the rest is read."""

import bz2
import csv
import gzip
import io
import json
import lzma
import time
from itertools import accumulate

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.errors import InputError
from evenhand.corpus import readers
from evenhand.corpus.csv_rows import CsvRows
from evenhand.corpus.json_values import JsonValues
from evenhand.corpus.readers import blocks, line_start
from evenhand.corpus.sources import find_sources
from evenhand.corpus.wikitext import plain

TEXTS = ['She is happy.\nTwo lines, "quoted".', "Ünïcode, fear", "a\tb"]


def read(path, **options):
    (source,), _ = find_sources([path])
    problems = []
    data = b"".join(block.data for block in blocks(source, problems.append, **options))
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
    pieces = [block.data for block in blocks(source, pytest.fail)]
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


def test_an_array_is_read_element_by_element(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([{"text": text} for text in TEXTS], indent=1))
    assert records(tmp_path / "a.json") == ([text.encode() for text in TEXTS], [])
    (tmp_path / "a.json").write_text(json.dumps(TEXTS, ensure_ascii=False), encoding="utf-8-sig")
    assert records(tmp_path / "a.json") == ([text.encode() for text in TEXTS], [])
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(json.dumps([{"no": 1, "Body": "x"}]).encode()))
    assert records(tmp_path / "a.json.gz", column="Body") == ([b"x"], [])
    # One object over several lines, and two of them after each other.
    (tmp_path / "b.json").write_text('{\n"text": "one"\n}\n{\n"text": "two"\n}\n')
    assert records(tmp_path / "b.json") == ([b"one", b"two"], [])


def test_damage_in_an_array_costs_the_element_it_stands_in(tmp_path):
    elements = [
        ('{"text": "one"}', b"one", ""),
        ('{"text": ]}', None, "a value is not JSON (Expecting value); not counted"),
        ('{"other": ["two", "{"]}', None, "a value has no text; not counted"),
        ("7", None, "a value has no text; not counted"),
        ('["in", "array"]', None, "a value has no text; not counted"),
        ('{"text": "no end}', None, "a value is not JSON (Invalid control character at); not counted"),
        ('{"text": "thr\u00e9e \\" \\\\"}', 'thr\u00e9e " \\'.encode(), ""),
    ]
    text, places = "[", []
    for element, _, _ in elements:
        places.append(len(text.encode()))
        text += f"{element},\n"
    (tmp_path / "a.json").write_text(text + '{"text": "last"}]', encoding="utf-8")
    texts, problems = records(tmp_path / "a.json")
    assert texts == [found for _, found, _ in elements if found] + [b"last"]
    wanted = zip(places, (reason for _, _, reason in elements), strict=True)
    assert problems == [(place, reason) for place, reason in wanted if reason]


@pytest.mark.parametrize(
    ("data", "texts", "problems"),
    [
        (b'["a", "b"', [b"a", b"b"], [(0, "the array that begins here does not end; counted up to there")]),
        (b'["a"], "b"]', [b"a", b"b"], [(5, "a ',' stands where none can; it is skipped"),
                                         (10, "a ']' stands where none can; it is skipped")]),
        (b'["a", "d\xe9j\xe0"]', [b"a", "d\ufffdj\ufffd".encode()],
         [(8, "is not UTF-8 here; such bytes separate words")]),
        (b"[" * 100_000, [], [(1, "a value is not JSON (it is nested too deeply); not counted"),
                              (0, "the array that begins here does not end; counted up to there")]),
        (b"[]", [], []),
        (b"  [ ]\n", [], []),
        (b"", [], []),
    ],
)  # fmt: skip
def test_arrays_that_are_cut_or_odd(tmp_path, data, texts, problems):
    (tmp_path / "a.json").write_bytes(data)
    found, reported = records(tmp_path / "a.json")
    assert [text.replace(b"\xef\xbf\xbd" * 3, b"\xef\xbf\xbd") for text in found] == texts
    assert reported == problems


ROWS = st.lists(st.dictionaries(st.sampled_from(["text", "n"]), st.text() | st.integers() | st.floats(-9, 9)))


@settings(deadline=None)
@given(ROWS, st.integers(1, 40), st.integers(0, 2))
def test_pieces_of_any_size_give_the_same_values(rows, size, indent):
    data = json.dumps(rows, ensure_ascii=bool(size % 2), indent=indent or None).encode("utf-8", "replace")
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    found = list(JsonValues(pieces, longest=1 << 20))
    assert [(value.value, value.error) for value in found] == [(row, "") for row in json.loads(data)]
    # Each begins where it is said to begin.
    assert all(data[value.place : value.place + 1] == b"{" for value in found)


def test_an_element_without_end_is_skipped_and_memory_stays_flat(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "LONGEST_RECORD", 1 << 20)
    long = "happy " * 500_000
    (tmp_path / "a.json").write_text(json.dumps([{"text": "a"}, {"text": long}, {"text": "b"}]))
    texts, problems = records(tmp_path / "a.json")
    assert texts == [b"a", b"b"]
    assert problems == [(len('[{"text": "a"}, '), "a value is longer than 1 MiB; not counted")]


OPEN = "opens a quote that is not closed, or not as CSV does; the line is taken as it stands"


@pytest.mark.parametrize(
    ("data", "texts", "problems"),
    [
        # To the end of the file.
        ('id,text\n1,"one\n2,two\n3,three\n', ['"one', "two", "three"], [(8, f"line 2 {OPEN}")]),
        # Up to the quote of a later row, which is whole.
        ('id,text\n1,"one\n2,"two, 2"\n3,three\n', ['"one', "two, 2", "three"], [(8, f"line 2 {OPEN}")]),
        ('id,text\n1,one\n2,"two', ["one", '"two'], [(14, f"line 3 {OPEN}")]),
        # Rows over several lines, and letters after a quote, are no damage.
        ('id,text\n1,"a\n""b""\nc"\n2,two\n', ['a\n"b"\nc', "two"], []),
        ('id,text\n1,"one" more\n2,two\n', ["one more", "two"], []),
        # The header, of which only the names matter.
        ('"id,text\n1,one\n', ["one"], [(0, f"line 1 {OPEN}")]),
        ('\ufeffid,text\n1,é\n2,"two\n3,é\n', ["é", '"two', "é"], [(3 + 8 + 5, f"line 3 {OPEN}")]),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_quote_that_is_not_closed_costs_its_line(tmp_path, data, texts, problems, ending):
    (tmp_path / f"a.{ending}").write_text(data.replace(",", "\t") if ending == "tsv" else data)
    found, reported = records(tmp_path / f"a.{ending}")
    assert [text.decode().replace("\t", ",") for text in found] == texts
    assert reported == problems


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), max_size=9), st.sampled_from(["\n", "\r\n"])
)
def test_whatever_a_writer_writes_is_read_as_it_was(rows, ending):
    out = io.StringIO()
    # With short line ends the writer leaves a carriage return without quotes, which nobody could read back.
    quoting = csv.QUOTE_ALL if ending == "\n" else csv.QUOTE_MINIMAL
    csv.writer(out, lineterminator=ending, quoting=quoting).writerows([("a", "b"), *rows])
    data, problems = out.getvalue().encode(), []
    found = CsvRows(
        io.BytesIO(data), delimiter=",", longest=1 << 20, report=lambda *told: problems.append(told)
    )
    read = [(found.place, tuple(row)) for row in found]
    assert [row for _, row in read if row] == [("a", "b"), *rows]
    assert problems == []
    # From where a row is said to begin, the same reader finds it and those after it.
    for place, row in read:
        assert tuple(next(csv.reader(io.StringIO(data[place:].decode(), newline="")))) == row


def test_a_row_that_goes_on_for_too_long_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "LONGEST_ROW", 1 << 20)
    (tmp_path / "a.csv").write_text('text\n"one\n' + "happy\n" * 50_000 + '"last"\n')
    texts, problems = records(tmp_path / "a.csv")
    assert texts == [b'"one', *[b"happy"] * 50_000, b"last"]
    assert problems == [(5, f"line 2 {OPEN}")]


def test_records_say_where_they_begin(tmp_path):
    (tmp_path / "a.csv").write_bytes(b'text\n"a\nb"\nd\xe9j\xe0\nlast\n')
    (tmp_path / "b.jsonl").write_bytes('{"text": "é"}\n\n{"text": "b"}'.encode())
    pl.DataFrame({"text": ["a", None, "c"]}).write_parquet(tmp_path / "c.parquet")
    (tmp_path / "d.xml").write_text("<mediawiki> <page><text>a</text></page><page><text>b</text></page>")
    (tmp_path / "e.json").write_text('["a",\n "b"]')
    places = {}
    for name in ("a.csv", "b.jsonl", "c.parquet", "d.xml", "e.json"):
        (source,), _ = find_sources([tmp_path / name])
        found = blocks(source, lambda problem: None)
        places[name] = [place for block in found for place in block.places]
    assert places == {
        "a.csv": [5, 11, 16],
        "b.jsonl": [0, 16],
        "c.parquet": [0, 2],
        "d.xml": [12, 39],
        "e.json": [1, 7],
    }


BAD_XML = "a page is not XML"


def test_a_page_without_end_is_left_out_and_the_others_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "LONGEST_ROW", 2 << 20)
    page = "<page><ns>0</ns><revision><text>{}</text></revision></page>"
    endless = "<page><text>"
    parts = [
        ("<mediawiki>", ""),
        (page.format("one"), ""),
        ("<page><text>begun", "a page does not end; not counted"),
        (page.format("two"), ""),
        (page.format("happy " * 600_000), "a page is longer than 2 MiB; not counted"),
        (page.format("a < b"), BAD_XML),
        (page.format("three"), ""),
        (endless + "sad " * 900_000, "a page is longer than 2 MiB; not counted"),
        (page.format("four"), ""),
        (endless, "a page does not end; not counted"),
    ]  # fmt: skip
    (tmp_path / "dump.xml").write_text("".join(text for text, _ in parts))
    texts, problems = records(tmp_path / "dump.xml")
    assert texts == [b"one", b"two", b"three", b"four"]
    places = accumulate((len(text) for text, _ in parts), initial=0)
    wanted = [(place, reason) for place, (_, reason) in zip(places, parts, strict=False) if reason]
    # What the parser says of it is its own matter.
    assert sorted((place, reason.split(" (")[0]) for place, reason in problems) == sorted(wanted)


def test_xml_without_a_page_is_said(tmp_path):
    (tmp_path / "a.xml").write_text("<rss><channel>happy</channel></rss>")
    assert records(tmp_path / "a.xml") == ([], [(0, "holds no page of a MediaWiki dump; not counted")])


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
    assert problems == [(len("<mediawiki>") + len(body), "a page does not end; not counted")]


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
