"""Tokenizer files of a few kilobytes that would end the process are refused before they are loaded."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.models import tiny

from evenhand.core.errors import ModelError
from evenhand.core.files import asset_path
from evenhand.core.records import Execution
from evenhand.generation.tokenizer import read_tokenizer
from evenhand.models.hub import load
from evenhand.tensors.checkpoints import raise_model_errors
from evenhand.tensors.model_files import check_tokenizer

LONGER = {"type": "Replace", "pattern": {"Regex": "."}, "content": "a" * 16}
TWICE = {
    "type": "TemplateProcessing",
    "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 2,
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
    "special_tokens": {},
}
PADDING = {"direction": "Right", "pad_id": 0, "pad_type_id": 0, "pad_token": "x", "pad_to_multiple_of": None}
LONG = r"makes texts more than 10,000 times longer\."
HARMFUL: dict[str, tuple[dict[str, Any], str]] = {
    "normaliser": ({"normalizer": {"type": "Sequence", "normalizers": [LONGER] * 10}}, LONG),
    "prefix": ({"normalizer": {"type": "Prepend", "prepend": "x" * 50_000}}, LONG),
    "decoder": ({"decoder": {"type": "Sequence", "decoders": [LONGER] * 10}}, LONG),
    "frame": ({"post_processor": {"type": "Sequence", "processors": [TWICE] * 40}}, LONG),
    "table": (
        {
            "normalizer": {
                "type": "Precompiled",
                "precompiled_charsmap": base64.b64encode(b"\xff\xff\xff\xff").decode(),
            }
        },
        r"has a truncated character table\.",
    ),
    "padding": (
        {"padding": {**PADDING, "strategy": {"Fixed": 10**12}}},
        r"pads texts to 1,000,000,000,000 tokens\.",
    ),
    "multiple": (
        {"padding": {**PADDING, "strategy": "BatchLongest", "pad_to_multiple_of": 10**12}},
        r"pads texts to 1,000,000,000,000 tokens\.",
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny.save(tiny.gpt2(), tmp_path / "model")


def change(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("name", HARMFUL)
def test_a_tokenizer_that_would_take_all_memory_is_refused(name: str, folder: Path) -> None:
    changes, message = HARMFUL[name]
    change(folder / "tokenizer.json", **changes)
    for read in (lambda: load(str(folder), execution=Execution(device="cpu")),
                 lambda: read_tokenizer(folder / "tokenizer.json")):  # fmt: skip
        with pytest.raises(ModelError, match=message):
            read()


@pytest.mark.parametrize("name", ["extra_ids", "offset"])
def test_a_configuration_that_asks_for_endless_tokens_is_refused(name: str, folder: Path) -> None:
    change(folder / "tokenizer_config.json", **{name: 10**9})
    with pytest.raises(ModelError, match=rf"adds 1,000,000,000 tokens \({name}\)\."):
        load(str(folder), execution=Execution(device="cpu"))


def test_usual_tokenizers_pass(folder: Path) -> None:
    check_tokenizer(folder)
    check_tokenizer(asset_path("builtin"))
    change(
        folder / "tokenizer.json",
        normalizer={
            "type": "Sequence",
            "normalizers": [
                {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(b"\x04\0\0\0abcd").decode()},
                {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
                {"type": "Prepend", "prepend": "\u2581"},
            ],
        },
        post_processor={**TWICE, "special_tokens": {"s": {"id": "s", "ids": [1], "tokens": ["s"]}}},
        padding={**PADDING, "strategy": {"Fixed": 128}},
    )
    check_tokenizer(folder)


@pytest.mark.parametrize("content", ["{", "[" * 100_000, "[]"])
def test_files_that_are_no_objects(content: str, folder: Path) -> None:
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(ModelError):
        load(str(folder), execution=Execution(device="cpu"))


def test_a_panic_of_a_library_is_an_error_of_ours() -> None:
    class PanicException(BaseException):
        pass

    with (
        pytest.raises(ModelError, match=r"^x cannot be loaded: PanicException: out of range\."),
        raise_model_errors("x", expected="", fix=""),
    ):
        raise PanicException("out of range")
    with pytest.raises(KeyboardInterrupt), raise_model_errors("x", expected="", fix=""):
        raise KeyboardInterrupt
