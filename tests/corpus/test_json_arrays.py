"""Arrays of JSON, read element by element; damage costs the element it stands in."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.corpus.reading import TEXTS, records

from evenhand.corpus import readers
from evenhand.corpus.record_readers import JsonElements


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
        (b'["a"], "b"]', [b"a", b"b"], [(5, "a ',' is misplaced; it is skipped"),
                                         (10, "a ']' is misplaced; it is skipped")]),
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
    found = list(JsonElements(pieces, longest=1 << 20, report=lambda *_: None))
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
