"""What is read is what was written: no reader may take odd contents for other ones."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fuzz.contents import as_csv, as_json, as_json_lines, as_toml, as_tsv

from evenhand.annotate.study import ITEM_COLUMNS, StudyConfig, task_text, write_study
from evenhand.corpus.term_lists import load_terms
from evenhand.store.table_files import guard_table, read_table, unguard_table
from evenhand.text import ngram_model
from evenhand.text.word_vectors import read_vectors

letters = st.characters(exclude_categories=["Cs"])
cells = st.text(letters, max_size=12)
tables = st.lists(st.tuples(cells, cells), min_size=1, max_size=5)
few = settings(
    max_examples=20,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
WORDS = st.lists(
    st.text(st.characters(categories=["Ll", "Lu", "Nd"]), min_size=1, max_size=8),
    min_size=1,
    max_size=5,
    unique=True,
)


@few
@given(rows=tables)
def test_json_lines(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(as_json_lines([{"a": a, "b": b} for a, b in rows]))
    assert read_table(path).rows() == rows


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@few
@given(rows=tables)
def test_delimited(tmp_path: Path, ending: str, rows: list[tuple[str, str]]) -> None:
    path = tmp_path / f"t.{ending}"
    # A row of two empty cells and a number: an empty cell is no text.
    written = [["n", "a", "b"], *([str(n), a, b] for n, (a, b) in enumerate(rows))]
    path.write_bytes({"csv": as_csv, "tsv": as_tsv}[ending](written))
    assert read_table(path).drop("n").rows() == [(a or None, b or None) for a, b in rows]


@few
@given(rows=tables)
def test_parquet(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame(rows, schema=["a", "b"], orient="row").write_parquet(path)
    assert read_table(path).rows() == rows


@few
@given(rows=tables)
def test_guarded_cells(rows: list[tuple[str, str]]) -> None:
    table = pl.DataFrame(rows, schema=["a", "b"], orient="row")
    assert unguard_table(guard_table(table)).equals(table)


@pytest.mark.parametrize("ending", ["json", "toml"])
@few
@given(words=WORDS)
def test_terms(tmp_path: Path, ending: str, words: list[str]) -> None:
    path = tmp_path / f"t.{ending}"
    content = {"emotions": {"joy": words}, "groups": {"age": {"old": ["old"]}}}
    path.write_bytes({"json": as_json, "toml": as_toml}[ending](content))
    found = load_terms([path]).emotions["joy"]
    # Words that differ in case alone are one.
    assert {word.casefold() for word in found} == {word.casefold() for word in words}


@few
@given(words=WORDS, width=st.integers(1, 4))
def test_word_vectors(tmp_path: Path, words: list[str], width: int) -> None:
    matrix = np.arange(len(words) * width, dtype=np.float32).reshape(len(words), width) / 4 + 0.125
    text, binary = tmp_path / "v.txt", tmp_path / "v.bin"
    head = f"{len(words)} {width}\n"
    rows = [" ".join([word, *map(str, row)]) for word, row in zip(words, matrix.tolist(), strict=True)]
    text.write_text(head + "\n".join(rows) + "\n", encoding="utf-8")
    packed = [
        word.encode() + b" " + struct.pack(f"<{width}f", *row)
        for word, row in zip(words, matrix, strict=True)
    ]
    binary.write_bytes(head.encode() + b"".join(packed))
    for path in (text, binary):
        found = read_vectors(path)
        assert found.words == tuple(words)
        assert np.array_equal(found.matrix, matrix)


@few
@given(texts=st.lists(WORDS, min_size=1, max_size=4))
def test_n_gram_models(tmp_path: Path, texts: list[list[str]]) -> None:
    model = ngram_model.train_ngram_model(texts, order=3)
    model.write(tmp_path / "m.arpa")
    again = ngram_model.read_arpa(tmp_path / "m.arpa")
    for text in texts:
        assert again.log_likelihood(text).log10 == pytest.approx(model.log_likelihood(text).log10, rel=1e-6)


def test_odd_numbers_stay_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"a": 10**300, "b": 1e300, "c": 0.1}) + "\n")
    assert read_table(path).rows() == [(str(10**300), "1e+300", "0.1")]


def test_a_study_about_a_file_with_an_emoji_in_its_name(tmp_path: Path) -> None:
    said = {"\U0001f600 source": "a \U0001f468\u200d\U0001f680.csv \x7f \ud800"}
    made = StudyConfig(id="a", provenance=said)
    items = pl.DataFrame(schema=dict(ITEM_COLUMNS))
    study = write_study(tmp_path / "study", task=task_text("sentiment"), settings=made, items=items)
    assert study.settings.provenance == {name: text.replace("\ud800", "?") for name, text in said.items()}
