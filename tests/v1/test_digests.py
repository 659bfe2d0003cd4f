"""Digests: the seeded texts of the embedded models, the identity of runs, and the keys of what is cached."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.v1 import texts
from tests.v1.held import pinned

from evenhand.core.records import Group, Mention, Prompt

OURS = pinned("texts")


@pytest.mark.parametrize("name", texts.WRITTEN)
def test_a_mitigated_model_writes_the_same(name: str) -> None:
    pytest.importorskip("torch")
    assert texts.written(name) == OURS["written"][name]


@pytest.mark.parametrize("name", texts.AUDITED)
def test_a_model_writes_the_same(name: str) -> None:
    pytest.importorskip("torch")
    assert texts.audited(name) == OURS["audited"][name]


def test_default_folders_keep_their_names() -> None:
    """A folder's name ends in the digest of the run's identity: the same command finds it again."""
    assert {line: texts.folder(line) for line in texts.NAMED} == OURS["folders"]


def test_the_keys_of_texts_and_scores_stay(tmp_path: Path) -> None:
    """What version 1 generated and scored is found again in its cache."""
    pytest.importorskip("torch")
    assert texts.keys(tmp_path) == OURS["keys"]


def test_a_prompt_keeps_its_id() -> None:
    """It keys the random numbers, so that a text is the same in every order and batch."""
    prompt = Prompt.create(
        "doors",
        "When a visitor came, people",
        groups=(Group("origin", "foreign"),),
        cluster="1",
        template_id="1/place=door",
        mentions=(Mention("a visitor"),),
    )
    assert prompt.id == "9f171312b33d624bbeafd30baccf4ae0"
