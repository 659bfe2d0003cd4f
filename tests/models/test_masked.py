from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.models import tiny_masked

from evenhand.core import registry
from evenhand.core.errors import InputError, ModelError
from evenhand.core.protocols import Model, ResolvesSpec, SteerableModel
from evenhand.core.records import Execution, GenerationSpec, Request
from evenhand.generation.bert import Bert
from evenhand.generation.gibbs_sampling import MaskedModel
from evenhand.generation.hub_engine import HubMasked
from evenhand.models import builtin
from evenhand.models.hub import architecture, load
from evenhand.testing import check_model

CPU = Execution(device="cpu", offline=True)
SPEC = GenerationSpec(max_new_tokens=6, iterations=12, burn_in=6, stop="none")


@pytest.mark.parametrize("name", sorted(tiny_masked.MODELS))
def test_a_masked_folder_is_detected_and_keeps_the_contract(name: str, tmp_path: Path) -> None:
    model = registry.create_model(str(tiny_masked.save(name, tmp_path)), execution=CPU)
    assert isinstance(model, MaskedModel)
    assert isinstance(model, ResolvesSpec)
    assert not isinstance(model, SteerableModel)
    assert isinstance(model.engine, HubMasked if name == "electra" else Bert)
    check_model(model, spec=SPEC)


def test_the_reference_says_which_weights_tokenizer_machine_and_loop(tmp_path: Path) -> None:
    first = load(str(tiny_masked.save("bert", tmp_path)), execution=CPU).ref
    assert (first.backend, first.name, first.repeatable) == ("masked", str(tmp_path), True)
    assert set(first.options) == {"tokenizer", "dtype", "device", "loop"}
    assert first.options["loop"] == "gibbs-1"
    second = load(str(tiny_masked.save("bert", tmp_path, seed=1)), execution=CPU).ref
    assert first.revision != second.revision


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"model_type": "bert", "architectures": ["BertForMaskedLM"]}, "masked"),
        ({"model_type": "bert", "architectures": ["BertLMHeadModel"]}, "causal"),
        ({"model_type": "bert"}, "masked"),
        ({"model_type": "ctrl"}, "causal"),
        ({"model_type": "ctrl", "architectures": ["CTRLLMHeadModel"]}, "causal"),
        ({"model_type": "gpt2", "architectures": None}, "causal"),
        ({"model_type": "modernbert", "architectures": ["ModernBertForMaskedLM"]}, "masked"),
    ],
)
def test_the_configuration_says_what_a_model_is(config: dict[str, object], expected: str) -> None:
    assert architecture(config, "x") == expected


@pytest.mark.parametrize("kind", ["BertForSequenceClassification", "BartForConditionalGeneration"])
def test_what_is_neither_is_refused(kind: str) -> None:
    with pytest.raises(
        InputError, match=f"^the model 'x' is {kind}, which does not generate text\\. Expected: "
    ):
        architecture({"model_type": "bert", "architectures": [kind]}, "x")


def test_control_codes_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^control code 'Books' for the model .* Expected: control codes"):
        load(str(tiny_masked.save("bert", tmp_path)), control_code="Books", execution=CPU)


def test_a_tokenizer_without_a_mask(tmp_path: Path) -> None:
    folder = tiny_masked.save("bert", tmp_path)
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text())
    del config["mask_token"]
    path.write_text(json.dumps(config))
    with pytest.raises(ModelError) as caught:
        load(str(folder), execution=CPU)
    assert str(caught.value) == (
        f"the tokenizer of {str(folder)!r} has no tokenizer.json, or lacks start, end and mask "
        "tokens. Expected: a fast tokenizer with [CLS], [SEP] and [MASK], whatever their names. Fix: "
        "save the tokenizer of the model again, with its special tokens."
    )


@pytest.fixture(scope="module")
def embedded() -> MaskedModel:
    return builtin.load("masked", execution=CPU)


def test_the_embedded_model_writes_english(embedded: MaskedModel) -> None:
    spec = GenerationSpec(max_new_tokens=8, temperature=0.7, stop="none", burn_in=16, iterations=32)
    done = list(embedded.generate([Request("a", "The woman worked as", (0, 1))], spec))
    for item in done:
        assert item.failure is None
        assert str(item.text).startswith(" ")
        assert len(str(item.text).split()) >= 3
        assert "[" not in str(item.text)


def test_the_embedded_model_is_named_and_dated(embedded: MaskedModel) -> None:
    assert isinstance(embedded, Model)
    assert (embedded.ref.backend, embedded.ref.name) == ("builtin", "builtin:masked")
    assert len(embedded.ref.revision) == 32
    assert registry.create_model("builtin:masked", execution=CPU).ref == embedded.ref


def test_the_embedded_model_keeps_the_contract(embedded: MaskedModel) -> None:
    check_model(embedded, spec=SPEC)
