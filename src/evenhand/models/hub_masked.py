"""Masked models of a Hub folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import torch
from transformers import AutoModelForMaskedLM

from evenhand.core.errors import ModelError
from evenhand.core.records import ModelRef
from evenhand.generation.bert import Bert, BertShape
from evenhand.generation.engine import MaskedEngine
from evenhand.generation.gibbs_sampling import VERSION, GibbsSampler
from evenhand.generation.hub_engine import HubMasked
from evenhand.generation.masked_tokenizer import MaskedTokenCodec
from evenhand.models.local import MaskedModel, local_options
from evenhand.models.transformers_loading import read_model, read_tokenizer
from evenhand.tensors.checkpoints import read_tensors, require_tokenizer, weight_files, weights_digest
from evenhand.tensors.devices import select_dtype
from evenhand.tensors.model_files import ModelFiles

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def load_masked(
    source: ModelFiles,
    config: Mapping[str, object],
    *,
    dtype: str,
    device: torch.device,
    batch: int | None = None,
) -> MaskedModel:
    """The masked model of a folder with its ``config.json``."""
    files = weight_files(source.folder)
    require_tokenizer(source.folder)
    kind = select_dtype(dtype, device, stored=str(config.get("dtype") or config.get("torch_dtype")))
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
        GibbsSampler(engine, codec, batch, source.name),
    )


def _codec(tokenizer: PreTrainedTokenizerBase, name: str, vocabulary: int) -> MaskedTokenCodec:
    before = tokenizer.bos_token_id if tokenizer.cls_token_id is None else tokenizer.cls_token_id
    after = tokenizer.eos_token_id if tokenizer.sep_token_id is None else tokenizer.sep_token_id
    mask = tokenizer.mask_token_id
    if not tokenizer.is_fast or before is None or after is None or mask is None:
        raise ModelError(
            f"the tokenizer of {name!r} has no tokenizer.json, or no tokens that open, close and mask a text",
            expected="a fast tokenizer with [CLS], [SEP] and [MASK], whatever their names",
            fix="save the tokenizer of the model again, with its special tokens",
        )
    return MaskedTokenCodec.of(
        tokenizer.backend_tokenizer, before=before, after=after, mask=mask, vocabulary=vocabulary
    )
