"""What the training loops import: they must run on any GPU machine that has torch."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

LOOPS = (
    *("prepare", "causal", "masked", "export", "evaluate"),
    *("classifier_pack", "classifiers", "distil", "multitask", "masked_yardstick", "classifier_ship"),
    *("embeddings", "skipgram", "norms", "finetune", "loop", "optim", "ideology_words"),
)
"""All that `make assets` trains with: numpy, torch, safetensors and tokenizers must do.

The linear yardsticks (`linear`, `linear_text`, `classifier_figures`) are no loops: scipy solves them.
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
        importlib.import_module("evenhand.training." + name)
        found[name] = ""
    except ImportError as error:
        found[name] = str(error)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def complaints() -> dict[str, str]:
    command = [sys.executable, "-c", PROGRAM, json.dumps(LOOPS), json.dumps(REFUSED)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_imports_no_more_than_a_gpu_machine_has(name: str, complaints: dict[str, str]) -> None:
    assert complaints[name] == ""
