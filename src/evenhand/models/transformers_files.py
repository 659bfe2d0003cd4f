"""A model folder read by transformers: every weight found, the tokenizer its own, its errors as ours."""

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
from evenhand.neural.checkpoints import as_model_error, require_finite
from evenhand.neural.sources import Source
from evenhand.neural.tokens import check_ids

ACCEPTED = (
    "a causal language model such as GPT2LMHeadModel, LlamaForCausalLM, CTRLLMHeadModel, "
    "or a masked one such as BertForMaskedLM"
)


Auto = type[AutoModelForCausalLM] | type[AutoModelForMaskedLM]


def read_model(auto: Auto, source: Source, *, dtype: torch.dtype, device: torch.device) -> PreTrainedModel:
    """The model in transformers' own classes, every weight found."""
    with reading(source):
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
            accepted="a complete checkpoint with its language-model head",
            todo="save or download the model again",
        )
    torch.nn.Module.to(model, device)
    require_finite(model.state_dict(), repr(source.name))
    return model


def read_tokenizer(source: Source, vocabulary: int) -> PreTrainedTokenizerBase:
    """The model's own tokenizer, which knows no token the model has no row for."""
    with reading(source):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            source.folder, gguf_file=source.gguf, local_files_only=True, trust_remote_code=False
        )
        # Tried here: some settings that are none are met only when a text is read.
        tokenizer(["a text"], verbose=False)
        check_ids(tokenizer.get_vocab())
    if 0 < vocabulary < tokenizer.vocab_size:
        raise ModelError(
            f"the tokenizer of {source.name!r} has {tokenizer.vocab_size} tokens, the model {vocabulary}",
            accepted="the tokenizer the model was trained with",
            todo="save both together",
        )
    return tokenizer


def reading(source: Source) -> AbstractContextManager[None]:
    """Whatever reading raises as an error that names the model."""
    if source.gguf:
        return as_model_error(
            f"the file {source.gguf}",
            accepted="a whole GGUF file of a causal language model that transformers knows",
            todo="download it again, or upgrade gguf and transformers",
        )
    return as_model_error(
        f"the folder of the model {source.name!r}",
        accepted=ACCEPTED,
        todo="check the files, or upgrade transformers",
    )


@contextmanager
def quiet() -> Iterator[None]:
    """Without progress bars: transformers draws them on the standard error, and has no switch for some."""
    with redirect_stderr(StringIO()):
        yield
