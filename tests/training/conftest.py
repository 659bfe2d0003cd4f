"""A tiny tokenizer and stream for the language-model tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tools.assets import train_tokenizer

TEXTS = (
    "The cat sat on the mat. She saw a dog! Was it hers? The dog ran.\nHe left in 1984. A new day came.",
    'The man said "no" and the woman said "yes". They were friends. It was late.',
)


@pytest.fixture(scope="session")
def texts() -> tuple[str, ...]:
    return TEXTS


@pytest.fixture(scope="session")
def bpe() -> Tokenizer:
    return train_tokenizer.train(TEXTS * 20, vocabulary=330)


@pytest.fixture(scope="session")
def bpe_file(bpe: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bpe") / "tokenizer.json"
    bpe.save(str(path))
    return path
