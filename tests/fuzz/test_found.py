"""Inputs that once ended a command with a trace, took all memory, or were read as something else."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import polars as pl
import pytest
from tests.fuzz.app import served
from tests.fuzz.contents import as_json
from tests.fuzz.harness import Outcome, try_input
from tests.fuzz.models import _masked_tokenizer
from tests.fuzz.registry import READERS
from tests.fuzz.runs import ARGILLA
from tests.fuzz.tables import _parquet

from evenhand.core.errors import InputError

BY_NAME = {reader.name: reader for reader in READERS}
DEEP = "[" * 20_000
MANY = "9" * 5_000
TASK = """
[task]
name = "a"
title = "A"
[[questions]]
name = "q"
ask = "How much?"
scale = { low = 1, high = 7, low_title = "little", high_title = "much" }
"""


def _vectors(shape: tuple[int, ...], scale: tuple[int, ...]) -> bytes:
    """Vectors whose scales would spread them into a matrix of another size."""
    sizes = [2 * (scale[0] * scale[1]), shape[0] * shape[1]]
    header = {
        "scale": {"dtype": "F16", "shape": scale, "data_offsets": [0, sizes[0]]},
        "vectors": {"dtype": "I8", "shape": shape, "data_offsets": [sizes[0], sum(sizes)]},
        "words": {"dtype": "U8", "shape": [1], "data_offsets": [sum(sizes), sum(sizes) + 1]},
    }
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(sum(sizes)) + b"a"


def _lying_parquet() -> bytes:
    """One byte changed: the dictionary of the column says that it has a negative number of entries."""
    data = bytearray(_parquet(pl.DataFrame({"text": ["a", "b"]})))
    data[data.index(b"L\x15") + 2] = 0x03
    return bytes(data)


FOUND: tuple[tuple[str, bytes, Outcome], ...] = (
    *(
        (name, content.encode(), "refused")
        for name in (
            "settings",
            "regard suite",
            "pairs .toml",
            "template suite .toml",
            "groups of pages",
            "task of a study",
        )
        for content in (f"a = {DEEP}", f"a = {MANY}", f"a = 0x{'f' * 5_000}")
    ),
    ("settings", b"generation = 5\n", "refused"),
    ("task of a study", TASK.replace("high = 7", f"high = {2**62}").encode(), "refused"),
    ("corpus .json", f'[{{"text": {MANY}}}]'.encode(), "read"),
    ("table .jsonl", b'{"\\ud800": "a"}\n', "read"),
    ("bold .jsonl", b'{"group": "a", "key": "b", "idx": 1e999}', "refused"),
    ("corpus text .zst", b"::::::::", "read"),
    ("terms .json", f'{{"joy": {DEEP}}}'.encode(), "refused"),
    ("word lists of two sides", DEEP.encode(), "refused"),
    ("evidence for a card", DEEP.encode(), "refused"),
    ("bold .jsonl", DEEP.encode(), "refused"),
    ("gender words", b"[]", "refused"),
    ("gender words", b"\xff", "refused"),
    (
        "gender words",
        b'{"definitional_pairs": ["ab"], "equalise_pairs": [], "gender_specific": "queen"}',
        "refused",
    ),
    ("closed-class words", b"\xff\xfe", "refused"),
    ("lexicon .csv", b'word,"' + b"a" * 200_000, "refused"),
    ("ARPA", b"\\data\\\nngram 1=3\n\n\\1-grams:\n-1\t<unk>\n-1\t</s>\n", "refused"),
    ("ARPA", b"\\data\\\nngram 1=2\n\n\\1-grams:\n-1e308\t<unk>\n-1\t</s>\n\\end\\\n", "refused"),
    ("ARPA", b"\\data\\\nngram 1=1\n\n\\1-grams:\n-1\t<unk>\n\\end\\\n", "refused"),
    ("vectors .bin", b"1 2\n" + b"\xff" * 5_000, "refused"),
    ("vectors .safetensors", _vectors((1, 3), (1, 1)), "read"),
    ("vectors .safetensors", _vectors((1, 30_000), (30_000, 1)), "refused"),
    ("table .parquet", _lying_parquet(), "refused"),
    ("corpus .parquet", _lying_parquet(), "read"),
    ("table .tsv", b'a\tb\n"' + b":" * 100_000, "refused"),
    (
        "weights: model.safetensors.index.json",
        json.dumps({"weight_map": {"a": "x" * 5_000}}).encode(),
        "refused",
    ),
    ("classifier: config.json", b"{}", "refused"),
    ("classifier: vocab.txt", b"[PAD]\n", "refused"),
    ("word classifier: config.json", b'{"model_type": "evenhand-lstm"}', "refused"),
    ("labels of Argilla", as_json(ARGILLA).replace(b"A kind day", b"\\ud800"), "read"),
    ("masked tokenizer", _masked_tokenizer()[0].replace(b'"[UNK]":1', b'"x":1'), "refused"),
    ("masked tokenizer", b"{}", "refused"),
    ("masked tokenizer", _masked_tokenizer()[0].replace(b'"man":6', b'"man":2147483648'), "refused"),
    ("tokenizer: tokenizer.json", b"\xff", "refused"),
    ("calibrator: calibrator.safetensors", b"\0" * 16, "refused"),
    ("int8 weights: own.safetensors", b"\0" * 16, "refused"),
    ("linear classifier: config.json", b'{"id2label": []}', "refused"),
    ("study: study.toml", f"[study]\nid = {DEEP}".encode(), "refused"),
    ("run: run.json", DEEP.encode(), "refused"),
    ("run: run.json", b'{"format": 2, "identity": {}, "stages": 7}', "refused"),
    ("norms .csv", b"word,valence\ncalm\n", "read"),
    ("norms .csv", b"\xff,valence\n", "refused"),
    ("affective data: EI-oc tweets", b"ID\tTweet\tA\tI\n1\t\xff\tanger\t0\n", "read"),
    ("affective data: EI-oc tweets", b"ID\tTweet\tA\tI\n1\ta\tspite\t0\n", "refused"),
    ("affective data: semeval_test.csv", b"Tweets,Label\na,\n", "refused"),
    ("affective data: semeval_test.csv", b"Tweets,Label\na,-1\n", "refused"),
    ("affective data: semeval_test.csv", b"Tweets\na\n", "refused"),
    ("articles .jsonl", b"\xff", "refused"),
    ("articles .jsonl", DEEP.encode(), "refused"),
    ("articles .jsonl", b'{"text": 1, "label": 0, "source": "a"}\n', "refused"),
    ("articles .jsonl", '{"text": "a\u2028b", "label": 0, "source": "c"}\n'.encode(), "read"),
    ("articles in parts", b"text,label\na,liberal\n", "refused"),
    ("predictions of a training", b"part,text,label\ntest,a,liberal\n", "refused"),
    ("bold data: labels of people", b"task,text,label\n,,\n", "refused"),
    ("app: address", b"/work/?page=\xb1", "refused"),
    ("app: headers", b"content-length: \xb2", "read"),
    ("app: headers", b"content-length: " + MANY.encode(), "refused"),
)


@pytest.mark.parametrize("number", range(len(FOUND)))
def test_it_is_read_or_refused_now(number: int, tmp_path: Path) -> None:
    name, data, outcome = FOUND[number]
    reader = BY_NAME[name]
    reader.prepare(tmp_path)
    assert try_input(reader, tmp_path, data) == outcome


def test_a_request_that_breaks_off_is_refused() -> None:
    """It was a trace in the server's log."""
    with pytest.raises(InputError, match=r"^400\."):
        served().ask("POST", b"/answers", None)


def test_a_classifier_of_a_billion_words_takes_no_memory(tmp_path: Path) -> None:
    reader = BY_NAME["classifier: config.json"]
    reader.prepare(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    for name, value in {"vocabulary": 10**9, "layers": 10**9, "width": 10**6, "heads": 2**64}.items():
        changed = config | {"shape": config["shape"] | {name: value}}
        assert try_input(reader, tmp_path, json.dumps(changed).encode()) == "refused"
