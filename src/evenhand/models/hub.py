"""Models from the Hub, from local folders and from GGUF files; their configuration says what they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from difflib import get_close_matches
from io import StringIO
from typing import NamedTuple, cast

import torch
from transformers import (
    CONFIG_MAPPING,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from evenhand.core import registry
from evenhand.core.digests import file_digest
from evenhand.core.errors import EvenhandError, InputError, ModelError
from evenhand.core.records import Execution, ModelRef
from evenhand.models.causal import CausalModel, identity_options
from evenhand.models.decoding import DEFAULT_BATCH, Loop
from evenhand.neural.checkpoints import (
    read_config,
    read_tensors,
    require_tokenizer,
    weight_files,
    weights_digest,
)
from evenhand.neural.devices import device_of, dtype_of
from evenhand.neural.engine import Engine
from evenhand.neural.gpt2 import Gpt2
from evenhand.neural.gpt2_weights import Shape
from evenhand.neural.hub_engine import HubEngine, check_cache
from evenhand.neural.sources import Source, locate
from evenhand.neural.tokens import HubCodec

_CAUSAL = frozenset(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
_MASKED_TYPES = frozenset(MODEL_FOR_MASKED_LM_MAPPING_NAMES)
_GENERATION = "generation_config.json"
_ACCEPTED = "a causal language model such as GPT2LMHeadModel, LlamaForCausalLM, CTRLLMHeadModel"


def load(
    name: str,
    *,
    revision: str | None = None,
    control_code: str | None = None,
    dtype: str = "auto",
    execution: Execution | None = None,
) -> CausalModel:
    """The causal model of a local folder, a ``.gguf`` file or a Hub id (``NAME@REVISION`` pins it).

    Only safetensors and GGUF weights are read, and no code of the model's authors is run. GPT-2 goes through
    our own engine, every other architecture through transformers.

    Args:
        name: The folder, file or Hub id.
        revision: A branch, tag or commit on the Hub.
        control_code: What every prompt is preceded by (CTRL only).
        dtype: ``auto`` (float32 on a CPU, as stored on a GPU), ``float32``, ``bfloat16`` or ``float16``.
        execution: Device, rows at a time, and whether the Hub may be asked.
    """
    execution = execution or Execution()
    source = _located(name, revision, offline=execution.offline)
    device = device_of(execution.device)
    with _quiet():
        loaded = _from_gguf(source, dtype, device) if source.gguf else _from_folder(source, dtype, device)
    options = identity_options(loaded.codec, dtype=loaded.dtype, device=device)
    if control_code is not None:
        options["control_code"] = _known_code(control_code, loaded)
    return CausalModel(
        ModelRef("causal", source.name, loaded.revision, options),
        Loop(loaded.engine, loaded.codec, execution.batch or DEFAULT_BATCH),
        control_code,
        takes_control_codes=loaded.is_ctrl,
    )


class _Loaded(NamedTuple):
    engine: Engine
    codec: HubCodec
    revision: str
    dtype: torch.dtype
    is_ctrl: bool


def _located(name: str, revision: str | None, *, offline: bool) -> Source:
    """The model's files; a name that is nearly a back-end's is told so, without repeating what follows it."""
    try:
        return locate(name, revision=revision, offline=offline)
    except EvenhandError as error:
        known = [entry.name for entry in registry.available("models")]
        near = get_close_matches(name.partition(":")[0], known, n=1, cutoff=0.75)
        if not near:
            raise
        todo = f"did you mean the back-end {near[0]!r}? Else {error.todo}"
        raise type(error)(error.came, accepted=error.accepted, todo=todo) from error


def _from_folder(source: Source, dtype: str, device: torch.device) -> _Loaded:
    folder = source.folder
    config = read_config(folder)
    _check_architecture(config, source.name)
    files = weight_files(folder)
    require_tokenizer(folder)
    kind = dtype_of(dtype, device, stored=str(config.get("dtype") or config.get("torch_dtype")))
    shape = Shape.of(config)
    engine: Engine
    if shape is not None:
        engine = Gpt2(shape, read_tensors(files), device=device, dtype=kind)
    else:
        engine = _checked_engine(_model(source, kind, device), source.name)
    tokenizer = _tokenizer(source, cast(int, config.get("vocab_size", 0)))
    asked = read_config(folder, _GENERATION) if (folder / _GENERATION).is_file() else {}
    ends = _end_tokens(asked.get("eos_token_id"), config.get("eos_token_id"), tokenizer.eos_token_id)
    revision = source.commit or weights_digest(files)
    return _Loaded(engine, HubCodec.of(tokenizer, ends=ends), revision, kind, config["model_type"] == "ctrl")


def _from_gguf(source: Source, dtype: str, device: torch.device) -> _Loaded:
    kind = dtype_of(dtype, device)
    model = _model(source, kind, device)
    shape = Shape.of(model.config.to_dict())
    engine: Engine
    if shape is not None:
        engine = Gpt2(shape, model.state_dict(), device=device, dtype=kind)
    else:
        engine = _checked_engine(model, source.name)
    tokenizer = _tokenizer(source, model.config.get_text_config().vocab_size)
    ends = _end_tokens(
        model.generation_config.eos_token_id, model.config.eos_token_id, tokenizer.eos_token_id
    )
    revision = file_digest(source.folder / str(source.gguf))
    return _Loaded(engine, HubCodec.of(tokenizer, ends=ends), revision, kind, is_ctrl=False)


def _check_architecture(config: Mapping[str, object], name: str) -> None:
    """An error for what is no causal model, or needs code of its authors."""
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        needs_code = " and brings code of its own, which is never run" if "auto_map" in config else ""
        raise ModelError(
            f"the model {name!r} is of type {kind!r}, which transformers does not know{needs_code}",
            accepted=_ACCEPTED,
            todo="upgrade transformers, or serve the model elsewhere and name it as endpoint:URL#MODEL",
        )
    listed = config.get("architectures")
    architectures = [str(item) for item in listed] if isinstance(listed, list) else []
    known = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(kind)
    unnamed_causal = not architectures and known is not None and kind not in _MASKED_TYPES
    if unnamed_causal or not _CAUSAL.isdisjoint(architectures):
        return
    raise InputError(
        f"the model {name!r} is {' or '.join(architectures) or kind}, which writes no text forward",
        accepted=_ACCEPTED,
        todo="name a causal model",
    )


def _model(source: Source, dtype: torch.dtype, device: torch.device) -> PreTrainedModel:
    """The model in transformers' own classes, every weight found."""
    with _as_model_error(source):
        loaded: object = AutoModelForCausalLM.from_pretrained(
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
    return model


def _checked_engine(model: PreTrainedModel, name: str) -> HubEngine:
    engine = HubEngine(model)
    check_cache(engine, name)
    return engine


def _tokenizer(source: Source, vocabulary: int) -> PreTrainedTokenizerBase:
    """The model's own tokenizer, which knows no token the model has no row for."""
    with _as_model_error(source):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            source.folder, gguf_file=source.gguf, local_files_only=True, trust_remote_code=False
        )
    if 0 < vocabulary < tokenizer.vocab_size:
        raise ModelError(
            f"the tokenizer of {source.name!r} has {tokenizer.vocab_size} tokens, the model {vocabulary}",
            accepted="the tokenizer the model was trained with",
            todo="save both together",
        )
    return tokenizer


def _end_tokens(*candidates: object) -> frozenset[int]:
    """The first that is given: a token or several."""
    for candidate in candidates:
        tokens = candidate if isinstance(candidate, list) else [candidate]
        if tokens and all(isinstance(token, int) for token in tokens):
            return frozenset(tokens)
    return frozenset()


def _known_code(code: str, loaded: _Loaded) -> str:
    codes: Mapping[str, int] = getattr(loaded.codec.tokenizer, "control_codes", {}) if loaded.is_ctrl else {}
    if code in codes:
        return code
    raise InputError(
        f"control code {code!r}",
        accepted=", ".join(codes) if codes else "control codes are for CTRL models",
        todo="choose one of these" if codes else "leave the control code out",
    )


@contextmanager
def _as_model_error(source: Source) -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        # Which errors a damaged file raises in a library that reads it is nowhere promised.
        what = f"{source.gguf or 'the folder'} of the model {source.name!r}"
        raise ModelError(
            f"{what} cannot be loaded: {type(error).__name__}: {str(error).strip()[:300]}",
            accepted=_ACCEPTED,
            todo="check the files, or upgrade transformers",
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without progress bars: transformers draws them on the standard error, and has no switch for some."""
    with redirect_stderr(StringIO()):
        yield
