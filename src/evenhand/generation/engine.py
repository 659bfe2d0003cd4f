"""The models and caches that the sampling loops run on, and what they exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from torch import Tensor

if TYPE_CHECKING:
    from evenhand.generation.bert import Bert
    from evenhand.generation.gpt2 import Gpt2, Gpt2KVCache
    from evenhand.generation.hub_engine import HubEngine, HubKVCache, HubMasked, HubStaticKVCache


class PrefillState(NamedTuple):
    """A prefilled prompt: one row of a jointly prefilled batch."""

    length: int
    read: object
    """The engine's own state of the whole prefilled batch. It is not split: on a GPU a view of each row and
    layer costs more than prefilling the row."""
    row: int = 0


class DecoderOutput(NamedTuple):
    """The output of a model after the last token of each row."""

    hidden: Tensor
    """Rows x width: the last hidden states, the input of the LM head."""
    logits: Tensor
    """Rows x vocabulary, in float32; ``StaticKVCache.advance`` may use the model's precision."""


Engine: TypeAlias = "Gpt2 | HubEngine"
"""A causal language model: token ids in, logits out."""
MaskedEngine: TypeAlias = "Bert | HubMasked"
"""A masked language model: token ids in, logits at one position per row out."""
KVCache: TypeAlias = "Gpt2KVCache | HubKVCache | HubStaticKVCache"
"""The key-value cache of a batch of independent rows."""
StaticKVCache: TypeAlias = "Gpt2KVCache | HubStaticKVCache"
"""A cache in static tensors, so that its step ``advance`` can be captured (ADR 31): it transfers nothing
from or to the device, and ``count_token`` updates the lengths. The first captured step is compared with the
eager ``step`` before any text is generated."""
