from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from huggingface_hub.errors import LocalEntryNotFoundError
from tests.models import tiny
from transformers import CTRLLMHeadModel

from evenhand.core import registry
from evenhand.core.digests import file_digest
from evenhand.core.errors import EvenhandError, InputError, ModelError
from evenhand.core.protocols import SteerableModel
from evenhand.core.records import Execution, GenerationSpec, Request
from evenhand.generation.gpt2 import Gpt2
from evenhand.generation.hub_engine import HubEngine
from evenhand.models.hub import load
from evenhand.testing import check_model

CPU = Execution(device="cpu", offline=True)
GREEDY = GenerationSpec(max_new_tokens=8, temperature=0, stop="none")


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tiny.gpt2(), tmp_path_factory.mktemp("models") / "gpt2")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tiny.llama(), tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture
def copy(gpt2: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(gpt2, tmp_path / "model"))


def change_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_gpt2_folder_runs_in_our_engine_and_others_in_transformers(gpt2: Path, llama: Path) -> None:
    assert isinstance(load(str(gpt2), execution=CPU).loop.engine, Gpt2)
    assert isinstance(load(str(llama), execution=CPU).loop.engine, HubEngine)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_loaded_model_writes_what_generate_writes(name: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(name)
    original = tiny.gpt2() if name == "gpt2" else tiny.llama()
    model = registry.create_model(str(folder), execution=CPU)
    done = next(iter(model.generate([Request("x", "The man", (0,))], GREEDY)))
    prompt = tiny.tokenizer()("The man")["input_ids"]
    expected = tiny.tokenizer().decode(tiny.greedy(original, prompt, 8))
    assert done.text == expected.rstrip("\ufffd")


def test_the_reference_says_which_weights_tokenizer_and_machine(gpt2: Path) -> None:
    ref = load(str(gpt2), execution=CPU).ref
    assert (ref.backend, ref.name, ref.repeatable) == ("causal", str(gpt2), True)
    assert set(ref.options) == {"tokenizer", "dtype", "device", "loop"}
    assert (ref.options["dtype"], ref.options["device"]) == ("float32", "cpu")


def test_other_weights_are_another_revision(copy: Path) -> None:
    before = load(str(copy), execution=CPU).ref
    tiny.gpt2(seed=1).save_pretrained(copy)
    after = load(str(copy), execution=CPU).ref
    assert before.revision != after.revision
    assert before.options == after.options


def test_the_batch_is_not_part_of_the_identity(gpt2: Path) -> None:
    small, large = (load(str(gpt2), execution=replace(CPU, batch=batch)) for batch in (2, 64))
    assert small.ref == large.ref
    assert (small.loop.batch, large.loop.batch) == (2, 64)


def test_shards_are_read(gpt2: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    tiny.gpt2().save_pretrained(folder, max_shard_size="20KB")
    tiny.tokenizer().save_pretrained(folder)
    assert len(list(folder.glob("*.safetensors"))) > 1
    text = next(load(str(folder), execution=CPU).generate([Request("x", "The man", (0,))], GREEDY)).text
    assert text == next(load(str(gpt2), execution=CPU).generate([Request("x", "The man", (0,))], GREEDY)).text
    next(folder.glob("*.safetensors")).unlink()
    with pytest.raises(ModelError, match=r"has no weights: model-0000\d-of-0000\d\.safetensors is missing\."):
        load(str(folder), execution=CPU)


def test_a_folder_without_weights(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    with pytest.raises(ModelError) as caught:
        load(str(copy), execution=CPU)
    assert str(caught.value) == (
        f"{copy} has no weights. Expected: model.safetensors, or its shards with their index. "
        "Fix: download or save the model again."
    )


def test_pickled_weights_are_refused_with_the_conversion_named(copy: Path) -> None:
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(ModelError) as caught:
        load(str(copy), execution=CPU)
    assert str(caught.value) == (
        f"{copy} has its weights only as pytorch_model.bin, a pickle, which can run code when it is read. "
        "Expected: safetensors. Fix: convert it if you trust it: "
        "`AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(NEW, safe_serialization=True)`."
    )


@pytest.mark.parametrize("pickled", [False, True])
def test_weights_are_missed_before_the_tokenizer(copy: Path, pickled: bool) -> None:
    weights = (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    if not pickled:
        weights.unlink()
    (copy / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match="has its weights only as" if pickled else "has no weights"):
        load(str(copy), execution=CPU)


@pytest.mark.parametrize(
    "shards", [["model.safetensors"], {"wte": ["model.safetensors"]}, {"wte": None}, {"wte": "../a"}, {}, 7]
)
def test_an_index_that_is_none(copy: Path, shards: object) -> None:
    (copy / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    with pytest.raises(ModelError) as caught:
        load(str(copy), execution=CPU)
    assert str(caught.value) == (
        f"{copy / 'model.safetensors.index.json'} has no weight_map of tensors and files. Expected: the name "
        "of a file in the same folder for every tensor. Fix: download or save the model again."
    )


@pytest.mark.parametrize("kind", [["gpt2"], {"gpt2": 1}, 7, None])
def test_a_model_type_that_is_none(copy: Path, kind: object) -> None:
    change_config(copy, model_type=kind)
    with pytest.raises(ModelError, match=r"is of type .*, which transformers does not know\."):
        load(str(copy), execution=CPU)


@pytest.mark.parametrize("size", [["300"], "300", True])
def test_a_vocabulary_size_that_is_none(llama: Path, tmp_path: Path, size: object) -> None:
    folder = Path(shutil.copytree(llama, tmp_path / "model"))
    change_config(folder, vocab_size=size)
    with pytest.raises(ModelError):
        load(str(folder), execution=CPU)


def test_a_damaged_weights_file(copy: Path) -> None:
    (copy / "model.safetensors").write_bytes(b"not a safetensors file")
    with pytest.raises(ModelError, match=r"model\.safetensors is damaged: "):
        load(str(copy), execution=CPU)


def test_a_folder_without_tokenizer(copy: Path) -> None:
    (copy / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"has no tokenizer\. Expected: tokenizer\.json, "):
        load(str(copy), execution=CPU)


def test_a_tokenizer_of_another_model(copy: Path) -> None:
    model = tiny.gpt2()
    model.resize_token_embeddings(200)
    model.save_pretrained(copy)
    with pytest.raises(ModelError, match=r"the tokenizer of .* has 300 tokens, the model 200\."):
        load(str(copy), execution=CPU)


def test_a_folder_without_config(copy: Path) -> None:
    (copy / "config.json").unlink()
    with pytest.raises(ModelError, match=r"config\.json cannot be read: it does not exist\. Expected: "):
        load(str(copy), execution=CPU)


@pytest.mark.parametrize("content", ["{", "[]", "\xff", "[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_a_damaged_config(copy: Path, content: str) -> None:
    (copy / "config.json").write_text(content, encoding="latin-1")
    with pytest.raises(ModelError, match=r"config\.json (cannot be read|is not a JSON object)"):
        load(str(copy), execution=CPU)


def test_code_of_the_authors_is_never_run(copy: Path) -> None:
    change_config(copy, model_type="mystery", auto_map={"AutoModelForCausalLM": "evil.Model"})
    (copy / "evil.py").write_text("raise SystemExit('this ran')")
    with pytest.raises(ModelError) as caught:
        load(str(copy), execution=CPU)
    assert str(caught.value).startswith(
        f"the model {str(copy)!r} is of type 'mystery', which transformers does not know and brings "
        "custom code, which is never run. Expected: "
    )


def test_a_native_architecture_with_a_map_is_loaded_without_it(copy: Path) -> None:
    change_config(copy, auto_map={"AutoModelForCausalLM": "evil.Model"})
    (copy / "evil.py").write_text("raise SystemExit('this ran')")
    assert next(load(str(copy), execution=CPU).generate([Request("x", "The man", (0,))], GREEDY)).text


def test_a_model_that_writes_nothing_is_refused(copy: Path) -> None:
    change_config(copy, architectures=["GPT2ForSequenceClassification"])
    with pytest.raises(InputError) as caught:
        load(str(copy), execution=CPU)
    assert str(caught.value) == (
        f"the model {str(copy)!r} is GPT2ForSequenceClassification, which does not generate text. "
        "Expected: a causal "
        "language model such as GPT2LMHeadModel, LlamaForCausalLM, CTRLLMHeadModel, or a masked one such as "
        "BertForMaskedLM. Fix: name a causal or a masked language model."
    )


def test_missing_tensors_of_a_transformers_model_are_named(llama: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(llama, tmp_path / "model"))
    change_config(folder, num_hidden_layers=3)
    with pytest.raises(ModelError, match=r"lack 'model\.layers\.2\.\S+' and \d+ others\."):
        load(str(folder), execution=CPU)


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all", "a/b/c", "model.gguf"])
def test_paths_that_are_not_there(name: str) -> None:
    with pytest.raises(InputError, match=f"^{name} does not exist\\. Expected: a local folder, "):
        load(name, execution=CPU)


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "texts.csv"
    path.touch()
    with pytest.raises(InputError, match=r"texts\.csv is a file\. Expected: a local folder, "):
        load(str(path), execution=CPU)


def test_a_file_that_is_no_gguf(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF and nothing else")
    with pytest.raises(ModelError, match=r"^the file broken\.gguf cannot be loaded: .*download it again"):
        load(str(path), execution=CPU)
    path.write_bytes(b"<!doctype html>")
    with pytest.raises(
        ModelError, match=r"^the file broken\.gguf is not a GGUF file: it begins with b'<!do'\."
    ):
        load(str(path), execution=CPU)


def test_a_hub_id_offline_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError) as caught:
        load("evenhand-tests/not-here@v1", execution=CPU)
    assert str(caught.value) == (
        "the model 'evenhand-tests/not-here' at 'v1' is not on this machine, and the run is offline. "
        "Expected: a local folder, a .gguf file, or a Hub id such as ORG/NAME or ORG/NAME@REVISION. "
        "Fix: check the name, remove --offline, or download it first and name its folder."
    )


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("stubb", "stub"),
        ("buildin", "builtin"),
        ("replays:u:PW@h", "replay"),
        ("endpont:http://u:PW@h", "endpoint"),
    ],
)
def test_a_name_that_is_nearly_a_back_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, near: str
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(EvenhandError) as caught:
        registry.create_model(name, execution=CPU)
    assert f"Fix: did you mean the back-end {near!r}? Else " in str(caught.value)
    assert "PW" not in str(caught.value)


def test_a_hub_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    def snapshot(repository: str, **options: object) -> str:
        raise LocalEntryNotFoundError("An error happened; try again with local_files_only=False\nmore")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    with pytest.raises(ModelError) as caught:
        load("org/name", execution=replace(CPU, offline=False))
    assert str(caught.value) == (
        "the model 'org/name' is not on this machine, and the Hub cannot be reached. "
        "Expected: a local folder, a .gguf file, or a Hub id such as ORG/NAME or ORG/NAME@REVISION. "
        "Fix: check the name and the network, or download it first and name its folder."
    )


def test_a_hub_snapshot_has_its_commit_as_revision(
    gpt2: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    asked: dict[str, object] = {}

    def snapshot(repository: str, **options: object) -> str:
        asked.update(options, repository=repository)
        return str(shutil.copytree(gpt2, tmp_path / commit))

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    ref = load("org/name@v2", execution=CPU).ref
    assert (ref.name, ref.revision) == ("org/name", commit)
    assert (asked["repository"], asked["revision"], asked["local_files_only"]) == ("org/name", "v2", True)


@pytest.mark.parametrize(
    ("device", "message"),
    [("tpu", "device 'tpu' is not known"), ("cuda:x", "device 'cuda:x' is not known")],
)
def test_unknown_devices(gpt2: Path, device: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}\\. Expected: auto, cpu, cuda or cuda:N\\."):
        load(str(gpt2), execution=replace(CPU, device=device))


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_a_device_that_is_not_here(gpt2: Path) -> None:
    with pytest.raises(InputError, match=r"^device 'cuda' is not available\. Expected: cpu\."):
        load(str(gpt2), execution=replace(CPU, device="cuda"))


def test_half_precision_is_refused_on_a_cpu(gpt2: Path) -> None:
    with pytest.raises(InputError, match=r"^dtype 'bfloat16' on a CPU\. Expected: float32\."):
        load(str(gpt2), dtype="bfloat16", execution=CPU)


def test_control_codes_are_for_ctrl(gpt2: Path) -> None:
    with pytest.raises(InputError, match=r"^control code 'Wikipedia' for the model .*\. Expected: control"):
        load(str(gpt2), control_code="Wikipedia", execution=CPU)
    spec = replace(GREEDY, control_code="Wikipedia")
    with pytest.raises(InputError, match=r"^control code 'Wikipedia' for the model "):
        load(str(gpt2), execution=CPU).generate([Request("x", "The", (0,))], spec)


@pytest.fixture
def ctrl(tmp_path: Path) -> Path:
    return tiny.save_ctrl(tmp_path)


def test_ctrl_is_written_with_a_control_code(ctrl: Path) -> None:
    plain = load(str(ctrl), execution=CPU)
    books = load(str(ctrl), control_code="Books", execution=CPU)
    assert "control_code" not in plain.ref.options
    assert books.ref.options["control_code"] == "Books"
    request = [Request("x", "The man", (0,))]
    by_hand = next(plain.generate([Request("x", "Books The man", (0,))], GREEDY))
    assert next(books.generate(request, GREEDY)).text == by_hand.text
    assert next(plain.generate(request, replace(GREEDY, control_code="Books"))).text == by_hand.text
    with pytest.raises(InputError, match=r"^control code 'Recipes' for .*\. Expected: .*Wikipedia"):
        load(str(ctrl), control_code="Recipes", execution=CPU)


def test_a_control_code_the_tokenizer_lacks_is_refused_before_anything_is_written(ctrl: Path) -> None:
    model = load(str(ctrl), execution=CPU)
    assert model.resolved(replace(GREEDY, control_code="Opinion")).control_code == "Opinion"
    with pytest.raises(InputError, match=r"^control code 'Thought' for .*\. Expected: .*, Thoughts, "):
        model.resolved(replace(GREEDY, control_code="Thought"))


def test_a_control_code_is_no_part_of_the_text(ctrl: Path) -> None:
    spec = replace(GREEDY, repetition_penalty=1.2)
    model = load(str(ctrl), control_code="Books", execution=CPU)
    original = CTRLLMHeadModel.from_pretrained(ctrl)
    prompt = model.loop.codec.encode(["Books The man"])[0]
    expected = tiny.greedy(original, prompt, 8, repetition_penalty=1.2)
    done = next(model.generate([Request("x", "The man", (0,))], spec))
    codec = model.loop.codec
    assert done.text == codec.decode([*prompt, *expected])[len(codec.decode(prompt)) :]
    assert "Books" not in str(done.text)
    assert done.prompt_tokens == len(prompt)


def test_gguf(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    gguf = pytest.importorskip("gguf")
    path = tiny.save_gguf(gguf, tiny.llama(), tmp_path / "tiny.gguf")
    capfd.readouterr()
    model = load(str(path), execution=CPU)
    assert capfd.readouterr() == ("", "")
    assert model.ref.revision == file_digest(path)
    prompt = model.loop.codec.encode(["The man"])[0]
    done = next(model.generate([Request("x", "The man", (0,))], GREEDY))
    expected = tiny.greedy(tiny.llama(), prompt, 8)
    assert done.text == model.loop.codec.decode([*prompt, *expected])[len("The man") :].rstrip("\ufffd")


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_loaded_model_keeps_the_contract_and_can_be_steered(
    name: str, request: pytest.FixtureRequest
) -> None:
    model = load(str(request.getfixturevalue(name)), execution=CPU)
    assert isinstance(model, SteerableModel)
    check_model(model)
