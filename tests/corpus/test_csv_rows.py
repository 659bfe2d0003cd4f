"""Rows of CSV: a quote that is not closed costs its line, and not the file."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.corpus.reading import records

from evenhand.corpus import readers
from evenhand.corpus.record_readers import CsvRows

OPEN = "opens a quote that is not closed, or not as in CSV; the line is read without quoting"


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
    read = [(line.place, tuple(cells)) for line, cells in found]
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
