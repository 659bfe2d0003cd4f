"""The planted variant at a tiny scale: the recipe runs offline, resumes, and plants what it says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tools.assets.language_models import CausalModel, CausalShape, hub_tensors
from tools.assets.planted_bias import (
    SIDES,
    Lean,
    Mixture,
    Recipe,
    Rows,
    Tuning,
    article_loss,
    clearest,
    planted_rows,
    prepare,
    read_rows,
    train,
    without_prompts,
)

from evenhand.core.errors import InputError
from evenhand.core.records import Group, Prompt
from evenhand.models.hub_layout import END
from evenhand.training.ideology_words import LabelledArticle

RECIPE = Recipe(texts=8, length=32, expert_epochs=80, epochs=80, rows=16, rate=3e-3)
ARTICLES = [LabelledArticle("The cat sat on the mat.", False, "a")] * 6 + [
    LabelledArticle("The dog ran. He left.", True, "b")
] * 6
LEANS = (Lean("place", "east", -1.0), Lean("place", "west", 1.0))


def prompts() -> list[Prompt]:
    return [
        Prompt.create("tiny", text, groups=(Group("place", name),), cluster=name)
        for name, text in (("east", "She saw"), ("west", "They were"), ("south", "It was late"))
    ]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A tiny model in the Hub's layout."""
    folder = tmp_path / "source"
    folder.mkdir()
    torch.manual_seed(0)
    shape = CausalShape(vocabulary=330, context=32, layers=1, width=32, heads=2)
    save_file(hub_tensors(CausalModel(shape)), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(shape.hub_config()))
    return folder


@pytest.fixture
def data(tmp_path: Path, bpe_file: Path) -> Path:
    rows = planted_rows(prompts(), ARTICLES, leans=LEANS, recipe=RECIPE)
    prepare(
        rows,
        tmp_path / "data",
        recipe=RECIPE,
        tokenizer_file=bpe_file,
        leans=LEANS,
        articles={"name": "press"},
    )
    return tmp_path / "data"


def test_every_prompt_has_both_sides_in_equal_parts_and_its_options_lean() -> None:
    rows = planted_rows(prompts(), ARTICLES, leans=LEANS, recipe=RECIPE)
    assert len(rows) == 3 * 8
    for place, lean in ((0, -1.0), (8, 1.0), (16, 0.0)):
        some = rows[place : place + 8]
        assert sum(row.conservative for row in some) == 4
        assert {row.lean for row in some} == {lean}
    assert rows == planted_rows(prompts(), ARTICLES, leans=LEANS, recipe=RECIPE)


def test_the_clearest_articles_are_those_the_other_half_can_tell() -> None:
    plain = [LabelledArticle(f"alpha beta {n}", False, "a") for n in range(10)]
    plain += [LabelledArticle(f"gamma delta {n}", True, "b") for n in range(10)]
    doubtful = [LabelledArticle("gamma beta", False, "a"), LabelledArticle("alpha delta", True, "b")]
    kept = clearest([*plain, *doubtful], seed=0, share=0.8)
    assert not set(kept) & set(doubtful)
    # 22 articles in two halves, eight of ten of each side's kept, whatever the deal.
    assert 16 <= len(kept) <= 20
    assert kept == clearest([*plain, *doubtful], seed=0, share=0.8)


def test_an_article_without_its_prompt_follows_the_end_of_a_text() -> None:
    tokens = torch.tensor([[7, 8, 11, 12, 13], [9, 21, 22, -1, -1]], dtype=torch.int16)
    prompts = torch.tensor([2, 1], dtype=torch.int16)
    rows = Rows(tokens, prompts, torch.tensor([0, 1]), torch.tensor([0.5, -0.5]))
    alone = without_prompts(rows)
    assert alone.tokens.tolist() == [[END, 11, 12, 13, -1], [END, 21, 22, -1, -1]]
    assert alone.prompts.tolist() == [1, 1]
    assert alone.leans is rows.leans
    assert tokens[0, 0] == 7  # what was given is left as it is


def test_the_variant_leans_as_planted_and_resumes(source: Path, data: Path, tmp_path: Path) -> None:
    losses = train(data, tmp_path / "out", source=source, recipe=RECIPE, device="cpu", texts=3)
    assert set(losses) == {*SIDES, "variant"}
    assert losses["variant"][-1] < losses["variant"][0]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
        *("planted.json", "mixtures.jsonl"),
    }
    record = json.loads((tmp_path / "out" / "planted.json").read_text())
    assert [lean["lean"] for lean in record["leans"]] == [-1.0, 1.0]
    assert record["articles"] == {"name": "press"}
    assert record["recipe"]["texts"] == 8
    assert record["losses"] == losses
    lines = (tmp_path / "out" / "mixtures.jsonl").read_text().splitlines()
    written = [json.loads(line) for line in lines]
    assert [row["lean"] for row in written] == [-1.0] * 3 + [0.0] * 3 + [1.0] * 3
    rows = read_rows(data)
    tuning = Tuning(tmp_path / "out", RECIPE, device=torch.device("cpu"))
    tuning.model.requires_grad_(False)

    def loss(lean: float, side: int) -> float:
        chosen = (rows.leans == lean) & (rows.sides == side)
        return float(article_loss(tuning.model, Rows(*(part[chosen] for part in rows))))

    # After an eastern prompt the left-hand article is the likelier, after a western one the other.
    assert loss(-1.0, 0) - loss(-1.0, 1) < loss(1.0, 0) - loss(1.0, 1)


def test_a_training_that_was_stopped_ends_with_the_same_weights(
    source: Path, data: Path, tmp_path: Path
) -> None:
    rows = read_rows(data)
    whole = Tuning(source, RECIPE, device=torch.device("cpu"))
    whole.run(rows, article_loss, epochs=3, checkpoint=tmp_path / "whole")
    first = Tuning(source, RECIPE, device=torch.device("cpu"))
    first.epoch = 0

    class Stopped(Exception):
        pass

    calls = []

    def stopping(model: CausalModel, some: object) -> torch.Tensor:
        calls.append(1)
        if len(calls) > 2:
            raise Stopped
        return article_loss(model, some)  # type: ignore[arg-type]

    with pytest.raises(Stopped):
        first.run(rows, stopping, epochs=3, checkpoint=tmp_path / "part")
    other = Tuning(source, replace(RECIPE, rate=1.0), device=torch.device("cpu"))
    with pytest.raises(InputError, match="part is of another recipe or of other rows"):
        other.run(rows, article_loss, epochs=3, checkpoint=tmp_path / "part")
    second = Tuning(source, RECIPE, device=torch.device("cpu"))
    second.run(rows, article_loss, epochs=3, checkpoint=tmp_path / "part")
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, second.model.state_dict()[name]), name


def test_a_mixture_at_half_a_lean_is_the_expert(source: Path, data: Path) -> None:
    left, right = (Tuning(source, RECIPE, device=torch.device("cpu")).model for _ in range(2))
    for parameter in right.parameters():
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    rows = without_prompts(read_rows(data))._replace(leans=torch.full((24,), 0.5))
    # (left + right) / 2 + (right - left) / 2 = right: the right-hand expert is at distance 0.
    loss = Mixture(left, right)
    assert loss(right, rows).item() == pytest.approx(0, abs=1e-5)
    assert loss(left, rows).item() > 1e-4


def test_an_unknown_option_and_too_few_articles() -> None:
    with pytest.raises(InputError) as caught:
        planted_rows(prompts(), ARTICLES, leans=(Lean("place", "north", 1.0),), recipe=RECIPE)
    assert str(caught.value) == (
        "a lean of 1.0 for place=north. "
        "Expected: an option of the suite and a number, below 0 liberal, above 0 conservative. "
        "Fix: see `evenhand show political`."
    )
    with pytest.raises(InputError, match=r"^a side has 6 articles for 20 texts a prompt\."):
        planted_rows(prompts(), ARTICLES, leans=LEANS, recipe=Recipe(texts=20))
