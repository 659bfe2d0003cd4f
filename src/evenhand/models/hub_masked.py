"""Masked models of a Hub folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import torch
from transformers import AutoModelForMaskedLM

from evenhand.core.errors import ModelError
from evenhand.core.records import ModelRef
from evenhand.models.gibbs import VERSION, GibbsLoop
from evenhand.models.local_identity import local_options
from evenhand.models.masked import MaskedModel
from evenhand.models.transformers_files import read_model, read_tokenizer
from evenhand.neural.bert import Bert
from evenhand.neural.bert_weights import BertShape
from evenhand.neural.checkpoints import read_tensors, require_tokenizer, weight_files, weights_digest
from evenhand.neural.devices import dtype_of
from evenhand.neural.hub_masked import HubMasked
from evenhand.neural.masked_engine import MaskedEngine
from evenhand.neural.masked_tokens import MaskedCodec
from evenhand.neural.sources import Source

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def load_masked(
    source: Source,
    config: Mapping[str, object],
    *,
    dtype: str,
    device: torch.device,
    batch: int | None = None,
) -> MaskedModel:
    """The masked model of a folder with its ``config.json``."""
    files = weight_files(source.folder)
    require_tokenizer(source.folder)
    kind = dtype_of(dtype, device, stored=str(config.get("dtype") or config.get("torch_dtype")))
    shape = BertShape.of(config)
    engine: MaskedEngine
    if shape is not None:
        engine = Bert(shape, read_tensors(files), device=device, dtype=kind)
        vocabulary = shape.vocabulary
    else:
        model = read_model(AutoModelForMaskedLM, source, dtype=kind, device=device)
        engine = HubMasked(model)
        vocabulary = cast(int, model.config.get_text_config().vocab_size)
    codec = _codec(read_tokenizer(source, vocabulary), source.name, vocabulary)
    return MaskedModel(
        ModelRef(
            backend="masked",
            name=source.name,
            revision=source.commit or weights_digest(files),
            options=local_options(codec.digest, dtype=kind, device=device, loop=VERSION),
        ),
        GibbsLoop(engine, codec, batch, source.name),
    )


def _codec(tokenizer: PreTrainedTokenizerBase, name: str, vocabulary: int) -> MaskedCodec:
    before = tokenizer.bos_token_id if tokenizer.cls_token_id is None else tokenizer.cls_token_id
    after = tokenizer.eos_token_id if tokenizer.sep_token_id is None else tokenizer.sep_token_id
    mask = tokenizer.mask_token_id
    if not tokenizer.is_fast or before is None or after is None or mask is None:
        raise ModelError(
            f"the tokenizer of {name!r} has no tokenizer.json, or no tokens that open, close and mask a text",
            accepted="a fast tokenizer with [CLS], [SEP] and [MASK], whatever their names",
            todo="save the tokenizer of the model again, with its special tokens",
        )
    return MaskedCodec.of(
        tokenizer.backend_tokenizer, before=before, after=after, mask=mask, vocabulary=vocabulary
    )
