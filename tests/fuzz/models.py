"""Readers of model folders, tokenizers, weights and of what endpoints answer."""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import torch
from safetensors.torch import save_file
from tests.classifiers.tiny_classifier import tiny_folder
from tests.fuzz.contents import as_json, as_safetensors
from tests.fuzz.harness import Reader, Tree, of_trees
from tests.models import tiny

from evenhand.classifiers import word_networks
from evenhand.classifiers.hub_classifier import open_reader
from evenhand.classifiers.text_classifier import HeadReader, TextClassifier
from evenhand.classifiers.word_networks import LstmNetwork, LstmShape, WordClassifier
from evenhand.core import registry
from evenhand.core.records import Execution, GenerationSpec, Request
from evenhand.generation.tokenizer import MaskedTokenCodec, PlainCodec
from evenhand.mitigations.calibrator import FORMAT as CALIBRATOR
from evenhand.mitigations.calibrator import read_calibrator
from evenhand.models.endpoint import error_message, parse_retry_after, parse_target, read_answer
from evenhand.tensors import int8_weights
from evenhand.tensors.checkpoints import read_config, read_tensors, require_tokenizer, weight_files
from evenhand.training.linear_text import LinearText

CPU = Execution("cpu", None, 1, True)
COMPLETION: Tree = {
    "model": "m",
    "system_fingerprint": "f",
    "choices": [{"index": 0, "text": " a nurse.", "finish_reason": "stop", "logprobs": None}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4},
}
CHAT: Tree = {
    "choices": [
        {"message": {"role": "assistant", "content": "a nurse", "refusal": None}, "finish_reason": "length"}
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4},
}
FAULT: Tree = {"error": {"code": "bad", "message": "no such model", "type": "x"}}


def _made(folder_of: Callable[[Path], object]) -> Callable[[Path], None]:
    """Copies a folder that is made once."""

    @cache
    def template() -> Path:
        folder = Path(tempfile.mkdtemp(prefix="evenhand-fuzz-"))
        folder_of(folder)
        return folder

    def prepare(folder: Path) -> None:
        shutil.copytree(template(), folder, dirs_exist_ok=True)

    prepare.template = template  # type: ignore[attr-defined]
    return prepare


def _file(prepare: Callable[[Path], None], name: str) -> Callable[[], list[bytes]]:
    return lambda: [(prepare.template() / name).read_bytes()]  # type: ignore[attr-defined]


def _json(prepare: Callable[[Path], None], name: str) -> Callable[[], list[Tree]]:
    return lambda: [json.loads(data) for data in _file(prepare, name)()]


def _header(prepare: Callable[[Path], None], name: str) -> Callable[[], list[Tree]]:
    def trees() -> list[Tree]:
        data = _file(prepare, name)()[0]
        size = struct.unpack("<Q", data[:8])[0]
        return [[json.loads(data[8 : 8 + size]), len(data) - 8 - size]]

    return trees


def _gpt2_folder(folder: Path) -> None:
    tiny.save(tiny.gpt2(), folder)


def _llama_folder(folder: Path) -> None:
    tiny.save(tiny.llama(), folder)


def _classifier_folder(folder: Path) -> None:
    tiny_folder(folder)


def _lstm_folder(folder: Path) -> None:
    network = LstmNetwork(LstmShape(rows=5, columns=4, labels=2, units=4, layers=1))
    word_networks.save_word_network(
        network, folder, vocabulary=["a", "b", "c"], labels=["negative", "positive"], longest=9
    )


def _hub_classifier_folder(folder: Path) -> None:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=300,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=16,
        id2label={0: "negative", 1: "positive"},
        label2id={"negative": 0, "positive": 1},
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    tiny.tokenizer().save_pretrained(folder)


def _linear_folder(folder: Path) -> None:
    import numpy as np

    LinearText.fit(["good day", "bad day"] * 3, np.array([0, 1] * 3), ["a", "b"]).save(folder)


def _calibrator_folder(folder: Path) -> None:
    about = {"labels": ["a", "b"], "model": "m", "revision": "r", "states": "written", "discount": 0.9}
    tensors = {
        "inner.weight": torch.ones(3, 4),
        "inner.bias": torch.ones(3),
        "outer.weight": torch.ones(3),
        "outer.bias": torch.ones(()),
    }
    metadata = {"format": CALIBRATOR, "calibrator": json.dumps(about)}
    save_file(tensors, folder / "calibrator.safetensors", metadata=metadata)


def _weights_folder(folder: Path) -> None:
    int8_weights.save_quantised({"a": torch.ones(3, 4), "b": torch.ones(3)}, folder / "own.safetensors")
    save_file({"a": torch.ones(3, 4)}, folder / "model-1.safetensors")
    index = {"metadata": {"total_size": 48}, "weight_map": {"a": "model-1.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def _written(path: Path) -> Sequence[object]:
    """The model of the folder, and a few tokens of it."""
    model = registry.create_model(str(path.parent if path.suffix != ".gguf" else path), execution=CPU)
    return list(model.generate([Request("p", "The man", (0,))], GenerationSpec(max_new_tokens=2)))


def _classified(path: Path) -> object:
    classifier = TextClassifier(path.parent, device=torch.device("cpu"))
    return HeadReader(classifier, "regard").read(["good day", ""])


def _worded(path: Path) -> object:
    return WordClassifier(path.parent, CPU).read(["a b zebra", ""])


def _opened(path: Path) -> object:
    names = {"negative": (), "positive": ()}
    return open_reader("regard", str(path.parent), names, CPU).read(["a b", ""])


def _linear(path: Path) -> object:
    return LinearText.load(path.parent).probabilities(["good day", ""])


def _calibrated(path: Path) -> object:
    return read_calibrator(path).logit(torch.ones(1, 4))


def _tokens(path: Path) -> object:
    codec = PlainCodec.read(path, end=0)
    return codec.decode(codec.encode(["The man", ""])[0])


def _masked_tokens(path: Path) -> object:
    return MaskedTokenCodec.read(path, vocabulary=300).encode(["the man"])


def _weights(path: Path) -> object:
    return read_tensors(weight_files(path.parent))


def _configured(path: Path) -> object:
    require_tokenizer(path.parent)
    return read_config(path.parent)


def _answers(path: Path) -> Iterator[object]:
    content = path.read_bytes()
    for chat in (False, True):
        target = parse_target("http://localhost:1/v1#m", chat=chat)
        yield read_answer(target, content, prompt="The man", secret="sk-canary")
    yield error_message(content, secret="sk-canary")
    yield parse_retry_after(content[:200].decode("latin-1"))


def _targets(path: Path) -> object:
    return parse_target(path.read_bytes().decode("utf-8", "replace"), chat=None)


def _gguf() -> list[bytes]:
    import gguf

    with tempfile.TemporaryDirectory() as folder:
        return [tiny.save_gguf(gguf, tiny.llama(), Path(folder) / "tiny.gguf").read_bytes()]


def _masked_tokenizer() -> list[bytes]:
    from tokenizers import Tokenizer
    from tokenizers import models as kinds

    vocabulary = {
        word: place for place, word in enumerate(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "man"))
    }
    tokenizer = Tokenizer(kinds.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    return [tokenizer.to_str().encode()]


GPT2, LLAMA, OURS, WORDS = map(_made, (_gpt2_folder, _llama_folder, _classifier_folder, _lstm_folder))
HUB, LINEAR, HEAD, WEIGHTS = map(
    _made, (_hub_classifier_folder, _linear_folder, _calibrator_folder, _weights_folder)
)


def _folder(
    name: str, read: Callable[[Path], object], prepare: Callable[[Path], None], cost: int, *files: str
) -> Iterator[Reader]:
    for file in files:
        contents = (tuple, as_json)
        if file.endswith(".json"):
            contents = (_json(prepare, file), as_json)
        elif file.endswith(".safetensors"):
            contents = (_header(prepare, file), as_safetensors)
        yield Reader(
            f"{name}: {file}", file, read, _file(prepare, file), *contents, prepare=prepare, cost=cost
        )


READERS: tuple[Reader, ...] = (
    *_folder(
        "causal model",
        _written,
        GPT2,
        20,
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "model.safetensors",
    ),
    *_folder("transformers model", _written, LLAMA, 20, "config.json", "model.safetensors"),
    *_folder("classifier", _classified, OURS, 8, "config.json", "vocab.txt", "model.safetensors"),
    *_folder("word classifier", _worded, WORDS, 4, "config.json", "vocab.txt", "model.safetensors"),
    *_folder("Hub classifier", _opened, HUB, 40, "config.json", "tokenizer.json", "model.safetensors"),
    *_folder("linear classifier", _linear, LINEAR, 2, "config.json", "model.safetensors"),
    *_folder("calibrator", _calibrated, HEAD, 1, "calibrator.safetensors"),
    *_folder("weights", _weights, WEIGHTS, 1, "model.safetensors.index.json", "model-1.safetensors"),
    *_folder("int8 weights", lambda path: int8_weights.load_dequantised(path), WEIGHTS, 1, "own.safetensors"),
    *_folder("config of a model", _configured, GPT2, 1, "config.json"),
    *_folder("tokenizer", _tokens, GPT2, 4, "tokenizer.json"),
    Reader(
        "masked tokenizer",
        "tokenizer.json",
        _masked_tokens,
        _masked_tokenizer,
        lambda: [json.loads(_masked_tokenizer()[0])],
        as_json,
    ),
    Reader("GGUF", "tiny.gguf", _written, _gguf, cost=50),
    of_trees("answers of an endpoint", "answer.json", _answers, as_json, COMPLETION, CHAT, FAULT),
    Reader(
        "names of endpoints",
        "target.txt",
        _targets,
        lambda: [b"http://localhost:8000/v1#m", b"https://[::1]:80/v1/chat/completions#a/b"],
    ),
)
