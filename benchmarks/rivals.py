"""The embedded classifier as `transformers` would run it: the same weights, one text at a time."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from transformers import (
    BertConfig,
    BertModel,
    BertPreTrainedModel,
    BertTokenizerFast,
    TextClassificationPipeline,
    pipeline,
)
from transformers.modeling_outputs import SequenceClassifierOutput

from evenhand.classifiers.encoder import Head
from evenhand.classifiers.text_classifier import read_heads
from evenhand.core.files import asset_path
from evenhand.tensors import int8_weights
from evenhand.tensors.checkpoints import read_config
from evenhand.tensors.devices import select_device


class HeadBert(BertPreTrainedModel):
    """One head of the embedded classifier over a plain BERT."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.query = torch.nn.Parameter(torch.zeros(config.hidden_size))
        self.head = torch.nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    def forward(self, input_ids, attention_mask=None, token_type_ids=None, **_):
        states = self.bert(input_ids, attention_mask=attention_mask).last_hidden_state
        scores = (states @ self.query).masked_fill(attention_mask == 0, float("-inf"))
        pooled = (scores.softmax(1)[..., None] * states).sum(1)
        return SequenceClassifierOutput(logits=self.head(pooled))


class Rival(NamedTuple):
    """A head behind a pipeline."""

    pipe: TextClassificationPipeline
    head: Head

    def read(self, texts: Sequence[str]) -> np.ndarray:
        """One row a text, one column a label, as ``HeadReader.read``; one text after the other."""
        rows = [{item["label"]: item["score"] for item in answer} for answer in self.pipe(list(texts))]
        return np.array([[row[label] for label in self.head.labels] for row in rows])


def rival(name: str, device: str = "cpu") -> Rival:
    """The embedded classifier's head of this name as a pipeline over a plain BERT of the same weights."""
    # The pipeline says at length that it does not know this class; it works.
    logging.getLogger("transformers").setLevel(logging.CRITICAL)
    folder = asset_path("classifiers")
    config, weights = read_config(folder), int8_weights.load_dequantised(folder / "model.safetensors")
    heads, shape = read_heads(config), config["shape"]
    number = [head.name for head in heads].index(name)
    head = heads[number]
    start = sum(len(one.labels) for one in heads[:number])
    columns = slice(start, start + len(head.labels))
    scale, shift = (torch.tensor(config[key])[columns] for key in ("scale", "shift"))
    model = HeadBert(_bert_config(shape, head))
    model.load_state_dict(
        as_bert(weights, shape)
        | {
            "query": weights["queries"][number],
            "head.weight": weights["weight"][columns] * scale[:, None],
            "head.bias": weights["bias"][columns] * scale + shift,
        },
        strict=False,
    )
    pipe = pipeline(
        "text-classification",
        model=model.eval(),
        tokenizer=BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=shape["positions"]),
        top_k=None,
        truncation=True,
        device=select_device(device),
        function_to_apply="softmax" if head.kind == "one-of" else "sigmoid",
    )
    return Rival(pipe, head)


def _bert_config(shape: Mapping[str, int], head: Head) -> BertConfig:
    return BertConfig(
        vocab_size=shape["vocabulary"],
        hidden_size=shape["width"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        intermediate_size=shape["inner"],
        max_position_embeddings=shape["positions"],
        id2label=dict(enumerate(head.labels)),
        layer_norm_eps=1e-12,
    )


def as_bert(weights: Mapping[str, torch.Tensor], shape: Mapping[str, int]) -> dict[str, torch.Tensor]:
    """The encoder's weights under BERT's names, the factorised word vectors multiplied out."""
    words = weights["encoder.words.weight"]
    if "encoder.project.weight" in weights:
        words = words @ weights["encoder.project.weight"].T
    found = {
        "bert.embeddings.word_embeddings.weight": words,
        "bert.embeddings.position_embeddings.weight": weights["encoder.positions.weight"],
        "bert.embeddings.token_type_embeddings.weight": torch.zeros(2, shape["width"]),
    }
    found |= _both("bert.embeddings.LayerNorm", "encoder.norm", weights)
    names = {
        "attention.output.dense": "out",
        "attention.output.LayerNorm": "attention_norm",
        "intermediate.dense": "widen",
        "output.dense": "narrow",
        "output.LayerNorm": "norm",
    }
    for layer in range(shape["layers"]):
        theirs, ours = f"bert.encoder.layer.{layer}", f"encoder.layers.{layer}"
        for name, source in names.items():
            found |= _both(f"{theirs}.{name}", f"{ours}.{source}", weights)
        for part in ("weight", "bias"):
            for name, piece in zip(
                ("query", "key", "value"), weights[f"{ours}.qkv.{part}"].chunk(3), strict=True
            ):
                found[f"{theirs}.attention.self.{name}.{part}"] = piece
    return found


def _both(theirs: str, ours: str, weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {f"{theirs}.{part}": weights[f"{ours}.{part}"] for part in ("weight", "bias")}
