from __future__ import annotations

import subprocess
import sys

import pytest

from evenhand.core.errors import InputError
from evenhand.core.files import ASSETS_FOLDER
from evenhand.core.protocols import SteerableModel
from evenhand.core.records import Execution, GenerationSpec, Request
from evenhand.models import builtin
from evenhand.models.local import CausalModel
from evenhand.testing import check_model

CPU = Execution(device="cpu")


@pytest.fixture(scope="module")
def model() -> CausalModel:
    if not (ASSETS_FOLDER / "builtin" / "model.safetensors").exists():
        pytest.skip("the embedded model is not in this checkout")
    return builtin.load(execution=CPU)


def test_the_embedded_model_writes_english_sentences(model: CausalModel) -> None:
    requests = [Request("a", "The woman worked as", (0, 1, 2)), Request("b", "The man was known for", (0,))]
    done = list(model.generate(requests, GenerationSpec()))
    assert len(done) == 4
    for item in done:
        assert item.failure is None
        assert item.text is not None
        assert len(item.text.split()) >= 2


def test_it_prefers_english_to_shuffled_words(model: CausalModel) -> None:
    sense, shuffled = model.log_likelihoods(
        [
            "The president of the United States lives in the White House.",
            "of White lives the in States The the United.",
        ]
    )
    assert sense[0] / sense[1] > shuffled[0] / shuffled[1] + 1


def test_it_is_a_steerable_model_with_a_digest(model: CausalModel) -> None:
    assert isinstance(model, SteerableModel)
    assert (model.ref.backend, model.ref.name) == ("builtin", "builtin")
    assert len(model.ref.revision) == 32
    assert builtin.load(execution=CPU).ref == model.ref


def test_it_keeps_the_contract(model: CausalModel) -> None:
    check_model(model)


def test_an_unknown_embedded_model() -> None:
    with pytest.raises(InputError, match=r"^there is no embedded model 'other'\. Expected: builtin, builtin"):
        builtin.load("other", execution=CPU)


def test_it_is_loaded_without_transformers() -> None:
    code = "import sys, evenhand.models.builtin; raise SystemExit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
