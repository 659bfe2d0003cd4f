from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evenhand.audits.audit import prepare
from evenhand.core.errors import InputError
from evenhand.core.records import GenerationSpec, Request
from evenhand.mitigations.replacement import Replacement, Rewriter, _largest, nearest_neighbours
from evenhand.mitigations.word_lists import WordLists
from evenhand.testing.contract_checks import check_model
from evenhand.testing.stub import StubModel
from evenhand.text.word_vectors import WordVectors, save_vectors

WORDS = ("teacher", "pupil", "rain", "snow", "hail")
MATRIX = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9], [0.2, 0.8]], dtype=np.float32)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    words, vectors = tmp_path / "words.json", tmp_path / "vectors.safetensors"
    words.write_text(json.dumps({"one": ["teacher"], "two": ["rain"]}))
    save_vectors(WORDS, MATRIX, vectors)
    return str(words), str(vectors)


def test_neighbours_are_the_nearest_words_outside_both_lists() -> None:
    vectors = WordVectors.create(WORDS, MATRIX, source="here")
    sides = WordLists(("a", "b"), (("rain", "unknown"), ("snow",)))
    # snow is nearest to rain but listed; hail comes next, then pupil, then teacher.
    assert nearest_neighbours(sides, vectors, count=2) == {
        "rain": ("hail", "pupil"),
        "snow": ("hail", "pupil"),
    }


@pytest.mark.parametrize("count", [1, 3, 7, 19, 20, 40])
def test_the_largest_are_those_of_a_whole_stable_sort(count: int) -> None:
    # Drawn from five values, so that most are equal to others and the cut falls among equals.
    values = np.random.default_rng(count).integers(0, 5, size=20).astype(np.float32)
    assert _largest(values, count).tolist() == (-values).argsort(kind="stable")[:count].tolist()


def test_case_and_everything_else_stay() -> None:
    write = Rewriter({"rain": ("hail",)}, share=1.0)
    text = "Rain, RAIN and rain; rainy trains."
    assert write(text, seed=0, request_id="x", sample=0) == "Hail, HAIL and hail; rainy trains."
    assert Rewriter({"rain": ("hail",)}, share=0.0)(text, seed=0, request_id="x", sample=0) == text


def test_draws_depend_on_the_text_alone() -> None:
    write = Rewriter({"rain": ("hail", "snow")}, share=0.5)
    texts = {write("rain " * 12, seed=0, request_id="x", sample=sample) for sample in range(8)}
    assert len(texts) > 1
    again = write("rain " * 12, seed=0, request_id="x", sample=3)
    assert again == write("rain " * 12, seed=0, request_id="x", sample=3)


@pytest.mark.parametrize("mode", ["naive", "in-glove"])
def test_any_model_can_be_rewritten(files: tuple[str, str], mode: str) -> None:
    words, vectors = files
    mitigation = Replacement(mode=mode, words=words, vectors=vectors, share=1.0)  # type: ignore[arg-type]
    model = mitigation.apply(StubModel())
    check_model(model)
    assert model.ref.options["mitigation"] == f"replacement:{mode}"
    assert model.ref.options["mitigation.replaceable"] == "2"
    requests = [Request(f"p{place}", "Then", tuple(range(6))) for place in range(6)]
    spec = GenerationSpec()
    plain = {(c.request_id, c.sample): c.text or "" for c in StubModel().generate(requests, spec)}
    found = {(c.request_id, c.sample): c.text or "" for c in model.generate(requests, spec)}
    assert any("teacher" in text or "rain" in text for text in plain.values())
    assert not any("teacher" in text or "rain" in text for text in found.values())


def test_failures_stay_failures(files: tuple[str, str]) -> None:
    model = Replacement(words=files[0], vectors=files[1]).apply(StubModel(fail_every=1))
    assert all(item.text is None for item in model.generate([Request("x", "A", (0,))], GenerationSpec()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"mode": "in-glove"},
            "the mode in-glove needs vectors. Expected: a file of ideology-neutral word vectors. "
            "Fix: train them: python -m evenhand.training.neutral_vectors ARTICLES.jsonl --out DIR.",
        ),
        (
            {"mode": "glove"},
            "mode is 'glove'. Expected: naive, in-glove. Fix: for example replacement:naive.",
        ),
        (
            {"share": "half"},
            "share is 'half'. Expected: 0 to 1. Fix: change the mitigation's option share.",
        ),
        ({"share": 2.0}, "share is 2.0. Expected: 0 to 1. Fix: change the mitigation's option share."),
    ],
)
def test_what_cannot_be_done_is_said(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Replacement(**options)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_vectors_without_any_of_the_words_are_refused() -> None:
    vectors = WordVectors.create(WORDS, MATRIX, source="here")
    with pytest.raises(InputError, match=r"^here has no vector for any of the 2 words\."):
        nearest_neighbours(WordLists(("a", "b"), (("x",), ("y",))), vectors, count=1)


def test_the_plan_of_an_audit_says_what_is_on() -> None:
    plan = prepare("stub", suite="political", limit=4, mitigate="replacement:naive").plan()
    assert "with    replacement:naive" in plan.lines
    assert not any("with " in line for line in prepare("stub", suite="political", limit=4).plan().lines)
