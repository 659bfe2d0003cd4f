"""What the training loops import: they must run on any GPU machine that has torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

LANGUAGE_MODELS = tuple(
    f"tools.assets.{name}" for name in ("train_language_model", "export_weights", "evaluate_language_model")
)
"""These train and read GPT-2 and BERT as transformers defines them."""
ASSETS = (
    *(
        "prepare_corpus",
        "pack_classifier_data",
        "train_classifiers",
        "distillation",
        "multitask",
        "masked_baseline",
    ),
    *("ship_classifier", "training_loop"),
)
LOOPS = (
    *(f"tools.assets.{name}" for name in ASSETS),
    *(f"evenhand.training.{name}" for name in ("corpus_text", "finetuning", "ideology_words")),
)
"""All else that `make assets` trains with: numpy, torch, safetensors and tokenizers must do.

The linear yardsticks (`linear_classifier`, `linear_text`, `classifier_figures`) are not loops: scipy
solves them.
"""
REFUSED = (
    *("scipy", "numba", "polars", "pydantic", "pyarrow", "transformers", "filelock", "sklearn"),
    *("rich", "typer", "jinja2", "vaderSentiment"),
)
PROGRAM = """
import importlib, json, sys
loops, refused = map(json.loads, sys.argv[1:])

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in refused:
            raise ImportError(f"{name} was imported")

sys.meta_path.insert(0, Refuse())
found = {}
for name in loops:
    try:
        importlib.import_module(name)
        found[name] = ""
    except ImportError as error:
        found[name] = str(error)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def complaints() -> dict[str, str]:
    # Where transformers is installed it may import any of the others itself.
    absent = {LOOPS: REFUSED, LANGUAGE_MODELS: ("numba", "polars", "pydantic", "vaderSentiment")}
    found: dict[str, str] = {}
    for names, refused in absent.items():
        command = [sys.executable, "-c", PROGRAM, json.dumps(names), json.dumps(refused)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
        found |= json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", [*LOOPS, *LANGUAGE_MODELS])
def test_a_loop_imports_no_more_than_a_gpu_machine_has(name: str, complaints: dict[str, str]) -> None:
    assert complaints[name] == ""
