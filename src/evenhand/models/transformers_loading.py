"""A model folder read by transformers: no weight missing, its own tokenizer, its errors as ours."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stderr
from io import StringIO
from typing import cast

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from evenhand.core.errors import ModelError
from evenhand.generation.tokenizer import check_ids
from evenhand.tensors.checkpoints import raise_model_errors, require_finite
from evenhand.tensors.model_files import ModelFiles

ACCEPTED = (
    "a causal language model such as GPT2LMHeadModel, LlamaForCausalLM, CTRLLMHeadModel, "
    "or a masked one such as BertForMaskedLM"
)


Auto = type[AutoModelForCausalLM] | type[AutoModelForMaskedLM]


def read_model(
    auto: Auto, source: ModelFiles, *, dtype: torch.dtype, device: torch.device
) -> PreTrainedModel:
    """The model in transformers' own classes, no weight missing."""
    with hub_errors(source):
        loaded: object = auto.from_pretrained(
            source.folder,
            gguf_file=source.gguf,
            dtype=dtype,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=None if source.gguf else True,
            output_loading_info=True,
        )
    model, info = cast("tuple[PreTrainedModel, Mapping[str, Collection[Sequence[str] | str]]]", loaded)
    lacking = sorted([*map(str, info["missing_keys"]), *(key[0] for key in info["mismatched_keys"])])
    if lacking:
        raise ModelError(
            f"the weights of {source.name!r} lack {lacking[0]!r}"
            + (f" and {len(lacking) - 1} others" if len(lacking) > 1 else ""),
            expected="a complete checkpoint with its language-model head",
            fix="save or download the model again",
        )
    torch.nn.Module.to(model, device)
    require_finite(model.state_dict(), repr(source.name))
    return model


def read_tokenizer(source: ModelFiles, vocabulary: int) -> PreTrainedTokenizerBase:
    """The model's own tokenizer, which knows no token the model has no row for."""
    with hub_errors(source):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            source.folder, gguf_file=source.gguf, local_files_only=True, trust_remote_code=False
        )
        # Tried here: some invalid settings fail only when a text is read.
        tokenizer(["a text"], verbose=False)
        check_ids(tokenizer.get_vocab())
    if 0 < vocabulary < tokenizer.vocab_size:
        raise ModelError(
            f"the tokenizer of {source.name!r} has {tokenizer.vocab_size} tokens, the model {vocabulary}",
            expected="the tokenizer the model was trained with",
            fix="save both together",
        )
    return tokenizer


def hub_errors(source: ModelFiles) -> AbstractContextManager[None]:
    """Whatever reading raises as an error that names the model."""
    if source.gguf:
        return raise_model_errors(
            f"the file {source.gguf}",
            expected="a whole GGUF file of a causal language model that transformers knows",
            fix="download it again, or upgrade gguf and transformers",
        )
    return raise_model_errors(
        f"the folder of the model {source.name!r}",
        expected=ACCEPTED,
        fix="check the files, or upgrade transformers",
    )


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """Without progress bars: transformers draws them on the standard error, and has no switch for some."""
    with redirect_stderr(StringIO()):
        yield
