"""Writes and reads the small files of the tests of readers."""

import csv
import json

import polars as pl

from evenhand.corpus.readers import read_blocks
from evenhand.store.text_sources import find_sources

TEXTS = ['She is happy.\nTwo lines, "quoted".', "Ünïcode, fear", "a\tb"]


def read(path, **options):
    (source,), _ = find_sources([path])
    problems = []
    data = b"".join(block.data for block in read_blocks(source, problems.append, **options))
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
