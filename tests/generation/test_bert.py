from __future__ import annotations

import pytest
import torch
from tests.models import tiny_masked
from torch import Tensor

from evenhand.core.errors import ModelError
from evenhand.generation.bert import Bert, BertShape
from evenhand.generation.hub_engine import HubMasked

LEAN = ["bert", "roberta", "distilbert"]


def rows() -> tuple[Tensor, Tensor, Tensor]:
    """Four rows of different lengths, with rubbish after their ends, and a place in each."""
    tokens = torch.randint(5, 40, (4, 12), generator=torch.Generator().manual_seed(3))
    return tokens, torch.tensor([12, 7, 9, 3]), torch.tensor([11, 0, 4, 2])


@pytest.mark.parametrize("name", LEAN)
def test_scores_are_those_of_transformers(name: str) -> None:
    model = tiny_masked.MODELS[name]()
    shape = BertShape.of(model.config.to_dict())
    assert shape is not None
    tokens, lengths, places = rows()
    found = Bert(shape, model.state_dict()).logits(tokens, lengths, places)
    for row in range(4):
        # Each row alone, cut to its length: neither padding nor neighbours may show.
        with torch.no_grad():
            expected = model(tokens[row : row + 1, : lengths[row]]).logits[0, places[row]]
        torch.testing.assert_close(found[row], expected, atol=1e-4, rtol=1e-4)


def test_other_architectures_run_through_transformers() -> None:
    model = tiny_masked.electra()
    assert BertShape.of(model.config.to_dict()) is None
    engine = HubMasked(model)
    assert engine.context == tiny_masked.CONTEXT
    tokens, lengths, places = rows()
    found = engine.logits(tokens, lengths, places)
    for row in range(4):
        with torch.no_grad():
            expected = model(tokens[row : row + 1, : lengths[row]]).logits[0, places[row]]
        torch.testing.assert_close(found[row], expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", LEAN)
def test_the_context_counts_what_a_row_may_hold(name: str) -> None:
    shape = BertShape.of(tiny_masked.MODELS[name]().config.to_dict())
    assert shape is not None
    # RoBERTa's table has two more positions, which stand for padding.
    assert shape.context == tiny_masked.CONTEXT


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_act": "relu"},
        {"position_embedding_type": "relative_key"},
        {"is_decoder": True},
        {"model_type": "albert"},
    ],
)
def test_variants_are_left_to_transformers(change: dict[str, object]) -> None:
    assert BertShape.of({**tiny_masked.bert().config.to_dict(), **change}) is None


def test_old_names_of_norms_and_an_output_table_of_its_own() -> None:
    model = tiny_masked.bert()
    tensors = {name: value.clone() for name, value in model.state_dict().items()}
    shape = BertShape.of(model.config.to_dict())
    assert shape is not None
    tokens, lengths, places = rows()
    expected = Bert(shape, tensors).logits(tokens, lengths, places)
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
        for name, value in tensors.items()
    }
    torch.testing.assert_close(Bert(shape, old).logits(tokens, lengths, places), expected)
    tied = {name: value for name, value in tensors.items() if "decoder" not in name}
    torch.testing.assert_close(Bert(shape, tied).logits(tokens, lengths, places), expected)
    # Doubling the table doubles the scores but for the bias, which is 0 in a fresh model.
    doubled = tensors | {"cls.predictions.decoder.weight": tensors["cls.predictions.decoder.weight"] * 2}
    torch.testing.assert_close(Bert(shape, doubled).logits(tokens, lengths, places), expected * 2)


def test_missing_and_misshapen_weights_are_named() -> None:
    model = tiny_masked.bert()
    shape = BertShape.of(model.config.to_dict())
    assert shape is not None
    tensors = dict(model.state_dict())
    del tensors["cls.predictions.transform.dense.weight"]
    with pytest.raises(ModelError) as caught:
        Bert(shape, tensors)
    assert str(caught.value) == (
        "the weights have no 'cls.predictions.transform.dense.weight'. Expected: a complete checkpoint with "
        "its language-model head. Fix: save or download the model again."
    )
    wrong = dict(model.state_dict())
    wrong["bert.embeddings.word_embeddings.weight"] = torch.zeros(3, 32)
    with pytest.raises(ModelError, match=r"^'embeddings\.word_embeddings\.weight' is 3 x 32, not \d+ x 32\."):
        Bert(shape, wrong)
