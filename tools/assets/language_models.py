"""The two embedded language models: transformers' GPT-2 and BERT, with a loss and what Muon trains."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, PreTrainedModel

from evenhand.core.regular_files import read_text
from evenhand.models.hub_layout import END, PAD, WEIGHTS
from evenhand.tensors import int8_weights
from tools.assets.train_tokenizer import VOCABULARY

_PLAIN_CAUSAL: Final = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "use_cache": False}
_PLAIN_MASKED: Final = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
"""Settings of training alone, which `config.json` leaves at their defaults."""


_CAUSAL_SIZES: Final = ("vocab_size", "n_positions", "n_layer", "n_embd", "n_head")
_MASKED_SIZES: Final = (
    *("vocab_size", "max_position_embeddings", "num_hidden_layers", "hidden_size", "num_attention_heads"),
)
"""Sizes of a `config.json`, in the order of the shapes' fields."""


@dataclass(frozen=True, slots=True)
class CausalShape:
    """Size of a causal model. The defaults are the embedded one: 20.6 M parameters."""

    vocabulary: int = VOCABULARY
    context: int = 256
    layers: int = 8
    width: int = 384
    heads: int = 6

    def hub_config(self) -> dict[str, object]:
        """Return the `config.json` that `GPT2LMHeadModel` reads."""
        return {
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            "vocab_size": self.vocabulary,
            "n_positions": self.context,
            "n_embd": self.width,
            "n_layer": self.layers,
            "n_head": self.heads,
            "activation_function": "gelu_new",
            "layer_norm_epsilon": 1e-5,
            "tie_word_embeddings": True,
            "bos_token_id": END,
            "eos_token_id": END,
            "pad_token_id": PAD,
        }


@dataclass(frozen=True, slots=True)
class MaskedShape:
    """Size of a masked model. The defaults are the embedded one: 9.05 M parameters."""

    vocabulary: int = VOCABULARY
    context: int = 128
    layers: int = 6
    width: int = 256
    heads: int = 4

    def hub_config(self) -> dict[str, object]:
        """Return the `config.json` that `BertForMaskedLM` reads."""
        return {
            "model_type": "bert",
            "architectures": ["BertForMaskedLM"],
            "vocab_size": self.vocabulary,
            "max_position_embeddings": self.context,
            "hidden_size": self.width,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": 4 * self.width,
            "hidden_act": "gelu",
            "layer_norm_eps": 1e-12,
            "type_vocab_size": 2,
            "tie_word_embeddings": True,
            "pad_token_id": PAD,
        }


class CausalModel(GPT2LMHeadModel):
    """A causal language model whose output table is its input table."""

    def __init__(self, shape: CausalShape) -> None:
        super().__init__(GPT2Config(**shape.hub_config(), **_PLAIN_CAUSAL))
        self.shape, self.token_loss = shape, token_loss
        for block in self.transformer.h:
            block.attn.c_attn.weight.muon_parts = 3
            # Each block begins as the identity.
            nn.init.zeros_(block.attn.c_proj.weight)
            nn.init.zeros_(block.mlp.c_proj.weight)

    def blocks(self) -> nn.ModuleList:
        """Return the layers, whose matrices Muon trains."""
        return self.transformer.h

    def logits(self, ids: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the next-token scores at each position, (rows, length, vocabulary)."""
        with torch.autocast(ids.device.type, dtype=dtype, enabled=dtype != torch.float32):
            scores: Tensor = self(input_ids=ids).logits
        return scores

    def loss(self, ids: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the mean loss, in nats, of predicting each token of `ids` but the first."""
        return self.token_loss(self.logits(ids[:, :-1], dtype=dtype), ids[:, 1:])


class MaskedModel(BertForMaskedLM):
    """A masked language model whose output table is its input table. There is no padding: rows are full."""

    def __init__(self, shape: MaskedShape) -> None:
        super().__init__(BertConfig(**shape.hub_config(), **_PLAIN_MASKED))
        self.shape, self.token_loss = shape, token_loss
        # Every text is one segment, so segments stay zero.
        nn.init.zeros_(self.bert.embeddings.token_type_embeddings.weight.requires_grad_(False))

    def blocks(self) -> nn.ModuleList:
        """Return the layers, whose matrices Muon trains."""
        return self.bert.encoder.layer

    def logits_at(self, ids: Tensor, positions: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return token scores at `positions` (rows, places), of shape (rows, places, vocabulary)."""
        with torch.autocast(ids.device.type, dtype=dtype, enabled=dtype != torch.float32):
            hidden = self.bert(input_ids=ids).last_hidden_state
            places = positions[..., None].expand(-1, -1, hidden.shape[-1])
            scores: Tensor = self.cls(hidden.gather(1, places))
        return scores

    def loss(
        self, ids: Tensor, positions: Tensor, targets: Tensor, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        """Return the mean loss, in nats, of predicting `targets` at `positions`."""
        return self.token_loss(self.logits_at(ids, positions, dtype=dtype), targets)


def token_loss(scores: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy, in nats, of the targets under their scores."""
    return F.cross_entropy(scores.flatten(0, 1).float(), targets.flatten())


def compile_parts(model: CausalModel | MaskedModel) -> None:
    """Compile the layers and the loss: quicker than compiling the whole graph."""
    for block in model.blocks():
        block.compile(dynamic=False)
    model.token_loss = torch.compile(token_loss, dynamic=False)


def hub_tensors(model: PreTrainedModel) -> dict[str, Tensor]:
    """Return the weights as the Hub stores them: those that another name shares are left out."""
    tied = frozenset(model.all_tied_weights_keys)
    return {name: value for name, value in model.state_dict().items() if name not in tied}


def load_model(folder: Path) -> CausalModel | MaskedModel:
    """Return the model of a folder in the Hub's layout, its weights float16 or int8."""
    config = json.loads(read_text(folder / "config.json"))
    is_causal = config["model_type"] == "gpt2"
    sizes = (config[name] for name in (_CAUSAL_SIZES if is_causal else _MASKED_SIZES))
    model = CausalModel(CausalShape(*sizes)) if is_causal else MaskedModel(MaskedShape(*sizes))
    load_tensors(model, int8_weights.load_dequantised(folder / WEIGHTS))
    return model.eval()


def load_tensors(model: PreTrainedModel, tensors: Mapping[str, Tensor]) -> None:
    """Give a model the weights that `hub_tensors` returned of another."""
    absent, unknown = model.load_state_dict(tensors, strict=False)
    if unknown or not set(absent) <= set(model.all_tied_weights_keys):
        raise ValueError(f"the weights do not fit: {unknown or absent}")
