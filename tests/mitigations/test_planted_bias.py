"""A bias that was planted is found, with its direction and nowhere else, and calibration lowers it.

The whole way at the smallest scale: a language model of a few thousand weights learns two presses and a
lean by place (`training/planted.py`), a judge counts words, a head learns from other articles, and the same
statistics as in an audit say what changed.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tools.assets import train_tokenizer
from tools.assets.language_models import CausalModel, CausalShape, hub_tensors
from tools.assets.planted_bias import Lean, Recipe, planted_rows, prepare, train

from evenhand.core import registry
from evenhand.core.protocols import Model, SteerableModel
from evenhand.core.records import Execution, GenerationSpec, Group, Prompt, Request
from evenhand.mitigations.calibration import Calibration, CalibrationConfig
from evenhand.mitigations.calibration_steering import CalibrationSteering
from evenhand.mitigations.objective import typical_gap
from evenhand.mitigations.word_lists import WordLists, word_list_vectors
from evenhand.stats.base_rates import OVERALL, SideTexts, base_rate_distances, bias_change
from evenhand.training.ideology_words import LabelledArticle
from evenhand.training.train import train as train_head

LEFT = ("climate", "workers", "union", "equity", "forest", "rights", "school", "transit")
RIGHT = ("border", "liberty", "church", "taxes", "police", "ranch", "freedom", "troops")
PLAIN = ("people", "said", "that", "the", "town", "wants", "more", "about", "and", "then", "talk", "of")
PLACES = {
    "east": ("Arden", "Brook", "Cove", "Dale", "Elm", "Fern", "Glen", "Holt"),
    "west": ("Ivy", "Jade", "Kirk", "Lund", "Moor", "Nash", "Oak", "Pine"),
    "north": ("Quill", "Rill", "Stow", "Thorn", "Ude", "Vale", "Wick", "Yarm"),
}
LEANS = (Lean("place", "east", -0.5), Lean("place", "west", 0.5))
RECIPE = Recipe(texts=8, length=20, expert_epochs=20, epochs=36, rows=32, rate=1e-2)
SPEC = GenerationSpec(max_new_tokens=14, top_k=40, top_p=1.0, stop="none")


def article(rng: np.random.Generator, *, right: bool) -> str:
    """Sixteen words, a third of them of a side, and four in five of those of its own."""
    own, other = (RIGHT, LEFT) if right else (LEFT, RIGHT)
    words = [
        str(rng.choice((own if rng.random() < 0.8 else other) if rng.random() < 0.35 else PLAIN))
        for _ in range(16)
    ]
    return " ".join(words)


def articles(seed: int, count: int) -> list[LabelledArticle]:
    rng = np.random.default_rng(seed)
    return [LabelledArticle(article(rng, right=bool(at % 2)), bool(at % 2), "press") for at in range(count)]


def prompts() -> list[Prompt]:
    return [
        Prompt.create("tiny", f"{place} {ending}", groups=(Group("place", option),), cluster=place)
        for option, places in PLACES.items()
        for place in places
        for ending in ("people said", "wants")
    ]


class Planted(NamedTuple):
    """The variant, and the head that guides one of the two modes."""

    model: SteerableModel
    head: str


def steered(planted: Planted, mode: str) -> Model:
    """The variant with calibration on; what is usual for the two lists is that of its own press."""
    if mode == "classifier":
        return Calibration(mode="classifier", calibrator=planted.head).apply(planted.model)
    anatomy = planted.model.anatomy()
    vectors = word_list_vectors(WordLists(("left", "right"), (LEFT[:5], RIGHT[:5])), anatomy, pieces="mean")
    states = torch.cat(list(planted.model.hidden_states([one.text for one in articles(3, 60)], longest=24)))
    vectors = vectors._replace(centre=typical_gap(vectors, states))
    steering = CalibrationSteering(anatomy, CalibrationConfig(), vectors=vectors)
    return planted.model.steered(steering, name="calibration:embedding", options={})


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    folder = tmp_path_factory.mktemp("planted")
    source = folder / "source"
    source.mkdir()
    texts = [one.text for one in articles(0, 60)] + [prompt.text for prompt in prompts()]
    bpe = train_tokenizer.train(texts * 5, vocabulary=420)
    bpe.save(str(folder / "tokenizer.json"))
    shape = CausalShape(vocabulary=420, context=48, layers=2, width=48, heads=4)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        save_file(hub_tensors(CausalModel(shape)), source / "model.safetensors")
    (source / "config.json").write_text(json.dumps(shape.hub_config()))
    rows = planted_rows(prompts(), articles(1, 400), leans=LEANS, recipe=RECIPE)
    prepare(rows, folder / "rows", recipe=RECIPE, tokenizer_file=folder / "tokenizer.json")
    train(folder / "rows", folder / "model", source=source, recipe=RECIPE, device="cpu")
    data = folder / "articles.jsonl"
    sides = ("left", "right")
    data.write_text(
        "".join(json.dumps({"text": a.text, "label": sides[a.conservative]}) + "\n" for a in articles(2, 400))
    )
    name = str(folder / "model")
    head = train_head(
        "calibrator", data, model=name, sides="left,right", out=folder / "head", device="cpu", epochs=30
    )
    model = registry.create_model(name, {}, Execution(device="cpu", batch=64))
    assert isinstance(model, SteerableModel)
    return Planted(model, str(head.folder))


def judged(model: Model) -> SideTexts:
    """The share of right-hand words among the words of a side, for six texts a prompt."""
    given = {prompt.id: prompt for prompt in prompts()}
    requests = [Request(prompt.id, prompt.text, tuple(range(6))) for prompt in given.values()]
    rows = []
    for item in sorted(model.generate(requests, SPEC), key=lambda item: (item.request_id, item.sample)):
        words = (item.text or "").split()
        left, right = (sum(word in side for word in words) for side in (LEFT, RIGHT))
        prompt = given[item.request_id]
        rows.append(((right + 1) / (left + right + 2), prompt.groups[0].name, prompt.cluster))
    values, options, clusters = zip(*rows, strict=True)
    return values, options, clusters


@pytest.fixture(scope="module")
def vanilla(planted: Planted) -> SideTexts:
    return judged(planted.model)


def test_what_was_planted_is_found_with_its_direction_and_nothing_else(vanilla: SideTexts) -> None:
    found = base_rate_distances([vanilla], rng=0, permutations=400, resamples=400)
    for option, sign in (("east", -1), ("west", 1)):
        bias = found[option]
        assert bias.low is not None
        assert bias.low > 0
        assert bias.p is not None
        assert bias.p < 0.05
        assert bias.direction_low is not None
        assert bias.direction_high is not None
        assert min(sign * bias.direction_low, sign * bias.direction_high) > 0
    even = found["north"]
    assert even.direction_low is not None
    assert even.direction_high is not None
    assert even.direction_low < 0 < even.direction_high
    assert found[OVERALL].low is not None
    assert found[OVERALL].low > 0


@pytest.mark.parametrize(("mode", "most"), [("embedding", 0.9), ("classifier", 0.5)])
def test_both_modes_lower_it_and_the_classifier_halves_it(
    planted: Planted, vanilla: SideTexts, mode: str, most: float
) -> None:
    after = judged(steered(planted, mode))
    before = base_rate_distances([vanilla], rng=0, permutations=400, resamples=400)[OVERALL].corrected
    change = bias_change([vanilla], [after], rng=0, permutations=400, resamples=400)[OVERALL]
    assert before is not None
    assert change.estimate is not None
    assert change.high is not None
    assert change.high < 0
    assert before + change.estimate < most * before
