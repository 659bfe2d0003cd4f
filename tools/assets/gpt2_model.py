"""The GPT-2 architecture in plain torch; its state dict is the Hub's layout, names and axes alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenhand.models.hub_layout import END, PAD
from tools.assets.layers import Conv1D, LayerNorm, Table, attend, token_loss
from tools.assets.train_tokenizer import VOCABULARY

_EPS = 1e-5


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
            "layer_norm_epsilon": _EPS,
            "tie_word_embeddings": True,
            "bos_token_id": END,
            "eos_token_id": END,
            "pad_token_id": PAD,
        }


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, shape: CausalShape) -> None:
        super().__init__()
        self.c_attn = Conv1D(shape.width, 3 * shape.width, parts=3)
        self.c_proj = Conv1D(shape.width, shape.width, zero=True)
        self.heads = shape.heads

    def forward(self, x: Tensor) -> Tensor:
        """Return the attended input."""
        mixed: Tensor = self.c_proj(attend(self.c_attn(x), self.heads, causal=True))
        return mixed


class Feedforward(nn.Module):
    """Two products with GPT-2's tanh form of GELU between them."""

    def __init__(self, shape: CausalShape) -> None:
        super().__init__()
        self.c_fc = Conv1D(shape.width, 4 * shape.width)
        self.c_proj = Conv1D(4 * shape.width, shape.width, zero=True)

    def forward(self, x: Tensor) -> Tensor:
        """Return the transformed input."""
        changed: Tensor = self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))
        return changed


class Block(nn.Module):
    """One layer: attention and feed-forward, each behind a norm, each added to its input."""

    def __init__(self, shape: CausalShape) -> None:
        super().__init__()
        self.ln_1 = LayerNorm(shape.width, eps=_EPS)
        self.attn = Attention(shape)
        self.ln_2 = LayerNorm(shape.width, eps=_EPS)
        self.mlp = Feedforward(shape)

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output."""
        x = x + self.attn(self.ln_1(x))
        changed: Tensor = x + self.mlp(self.ln_2(x))
        return changed


class Trunk(nn.Module):
    """Embeddings, blocks and the last norm."""

    def __init__(self, shape: CausalShape) -> None:
        super().__init__()
        self.wte = Table(shape.vocabulary, shape.width)
        self.wpe = Table(shape.context, shape.width)
        self.h = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.ln_f = LayerNorm(shape.width, eps=_EPS)


class CausalModel(nn.Module):
    """A causal language model whose output table is its input table."""

    def __init__(self, shape: CausalShape) -> None:
        super().__init__()
        self.shape = shape
        self.transformer = Trunk(shape)
        self._block: Callable[[nn.Module, Tensor], Tensor] = _run
        self._loss: Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor] = _loss

    def blocks(self) -> nn.ModuleList:
        """Return the layers, whose matrices Muon trains."""
        return self.transformer.h

    def compile_parts(self) -> None:
        """Compile one block, shared by all layers, and the loss: quicker than compiling the whole graph."""
        self._block = torch.compile(_run, dynamic=False)
        self._loss = torch.compile(_loss, dynamic=False)

    def compute_hidden(self, ids: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the last block's output, before the last norm."""
        x = F.embedding(ids, self.transformer.wte.weight) + self.transformer.wpe.weight[: ids.shape[1]]
        x = x.to(dtype)
        for block in self.transformer.h:
            x = self._block(block, x)
        return x

    def logits(self, ids: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the next-token scores at each position, (rows, length, vocabulary)."""
        hidden = self.transformer.ln_f(self.compute_hidden(ids, dtype=dtype))
        return F.linear(hidden, self.transformer.wte.weight.to(dtype))

    def loss(self, ids: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the mean loss, in nats, of predicting each token of `ids` but the first."""
        hidden = self.compute_hidden(ids[:, :-1], dtype=dtype)
        return self._loss(self.transformer.ln_f, hidden, self.transformer.wte.weight, ids[:, 1:])


def _run(block: nn.Module, x: Tensor) -> Tensor:
    changed: Tensor = block(x)
    return changed


def _loss(norm: nn.Module, hidden: Tensor, table: Tensor, targets: Tensor) -> Tensor:
    return token_loss(norm(hidden), table, None, targets)
