"""Models from the Hub, from local folders and from GGUF files; their configuration determines the kind."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, redirect_stderr
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from typing import Final, Literal, cast

import torch
from transformers import (
    CONFIG_MAPPING,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
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
from evenhand.core.regular_files import open_regular
from evenhand.generation import gibbs_sampling, scheduler
from evenhand.generation.bert import Bert, BertShape
from evenhand.generation.engine import Engine, MaskedEngine
from evenhand.generation.gibbs_sampling import MaskedModel
from evenhand.generation.gpt2 import Gpt2, Gpt2Shape
from evenhand.generation.hub_engine import HubEngine, HubMasked, check_cache
from evenhand.generation.spec_checks import check_control_code
from evenhand.generation.tokenizer import HubCodec, MaskedTokenCodec, check_ids
from evenhand.models.local import CausalModel, local_options
from evenhand.tensors import checkpoints
from evenhand.tensors.devices import select_device, select_dtype
from evenhand.tensors.model_files import ModelFiles, locate_model

Kind = Literal["causal", "masked"]
_Auto = type[AutoModelForCausalLM] | type[AutoModelForMaskedLM]

_ACCEPTED = (
    "a causal language model such as GPT2LMHeadModel, LlamaForCausalLM, CTRLLMHeadModel, "
    "or a masked one such as BertForMaskedLM"
)

_GENERATION: Final = "generation_config.json"
_CAUSAL = frozenset(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
_MASKED = frozenset(
    name for name in MODEL_FOR_MASKED_LM_MAPPING_NAMES.values() if name.endswith("ForMaskedLM")
)


def load(
    name: str,
    *,
    revision: str | None = None,
    control_code: str | None = None,
    dtype: str = "auto",
    execution: Execution | None = None,
) -> CausalModel | MaskedModel:
    """The model of a local folder, a ``.gguf`` file or a Hub id (``NAME@REVISION`` pins it).

    Only safetensors and GGUF weights are read, and no code of the model's authors is run. GPT-2, BERT,
    RoBERTa and DistilBERT run on our own engines, every other architecture on transformers.

    Args:
        name: The folder, file or Hub id.
        revision: A branch, tag or commit on the Hub.
        control_code: The code put before every prompt (CTRL only).
        dtype: ``auto`` (float32 on a CPU, as stored on a GPU), ``float32``, ``bfloat16`` or ``float16``.
        execution: Device, batch size, and whether the Hub may be contacted.
    """
    execution = execution or Execution()
    source = _locate(name, revision, offline=execution.offline)
    device = select_device(execution.device)
    config = {} if source.gguf else checkpoints.read_config(source.folder)
    checkpoints.check_config(config, repr(source.name))
    kind = select_dtype(dtype, device, stored=str(config.get("dtype") or config.get("torch_dtype")))
    # Without progress bars: transformers draws them on standard error, and some cannot be switched off.
    with redirect_stderr(StringIO()), _hub_errors(source):
        if source.gguf or architecture(config, source.name) == "causal":
            return _load_causal(source, config, kind, device, execution.batch, control_code)
        if control_code is not None:
            check_control_code(control_code, (), source.name)
        return _load_masked(source, config, kind, device, execution.batch)


def architecture(config: Mapping[str, object], name: str) -> Kind:
    """The kind of model in a ``config.json``, causal or masked; raises an error for any other.

    If it names no class, a type that has a masked head counts as masked.
    """
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        needs_code = " and brings custom code, which is never run" if "auto_map" in config else ""
        raise ModelError(
            f"the model {name!r} is of type {kind!r}, which transformers does not know{needs_code}",
            expected=_ACCEPTED,
            fix="upgrade transformers, or serve the model elsewhere and name it as endpoint:URL#MODEL",
        )
    listed = config.get("architectures")
    classes = [str(item) for item in listed] if isinstance(listed, list) else []
    if not classes:
        mapped = (MODEL_FOR_MASKED_LM_MAPPING_NAMES.get(kind), MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(kind))
        classes = [str(item) for item in mapped if item is not None][:1]
    if not _CAUSAL.isdisjoint(classes):
        return "causal"
    if not _MASKED.isdisjoint(classes):
        return "masked"
    raise InputError(
        f"the model {name!r} is {' or '.join(classes) or kind}, which does not generate text",
        expected=_ACCEPTED,
        fix="name a causal or a masked language model",
    )


def _locate(name: str, revision: str | None, *, offline: bool) -> ModelFiles:
    """The model's files; a misspelt back-end name raises an error that suggests the back-end."""
    try:
        return locate_model(name, revision=revision, offline=offline)
    except EvenhandError as error:
        backends = [entry.name for entry in registry.list_entries("models")]
        matches = get_close_matches(name.partition(":")[0], backends, n=1, cutoff=0.75)
        if not matches:
            raise
        todo = f"did you mean the back-end {matches[0]!r}? Else {error.fix}"
        raise type(error)(error.problem, expected=error.expected, fix=todo) from error


def _load_causal(
    source: ModelFiles,
    config: Mapping[str, object],
    kind: torch.dtype,
    device: torch.device,
    batch: int | None,
    control_code: str | None,
) -> CausalModel:
    """The causal model of a folder (with its ``config.json``) or of a GGUF file."""
    model: PreTrainedModel | None = None
    if source.gguf:
        file = source.folder / source.gguf
        _check_gguf(file)
        model = _read_model(AutoModelForCausalLM, source, dtype=kind, device=device)
        config, vocabulary = model.config.to_dict(), model.config.get_text_config().vocab_size
        defaults: Mapping[str, object] = model.generation_config.to_dict()
        revision = file_digest(file)
    else:
        files = checkpoints.weight_files(source.folder)
        checkpoints.require_tokenizer(source.folder)
        vocabulary = cast(int, config.get("vocab_size", 0))
        has_defaults = (source.folder / _GENERATION).is_file()
        defaults = checkpoints.read_config(source.folder, _GENERATION) if has_defaults else {}
        revision = source.commit or checkpoints.weights_digest(files)
    shape = Gpt2Shape.of(config)
    engine: Engine
    if shape is not None:
        tensors = checkpoints.read_tensors(files) if model is None else model.state_dict()
        engine = Gpt2(shape, tensors, device=device, dtype=kind)
    else:
        if model is None:
            model = _read_model(AutoModelForCausalLM, source, dtype=kind, device=device)
        engine = HubEngine(model)
        check_cache(engine, source.name)
    tokenizer = _read_tokenizer(source, vocabulary)
    stops = defaults.get("eos_token_id"), config.get("eos_token_id"), tokenizer.eos_token_id
    codec = HubCodec.of(tokenizer, ends=_end_tokens(*stops))
    # Only CTRL's tokenizer has control codes.
    code_tokens: Mapping[str, int] = {} if source.gguf else getattr(tokenizer, "control_codes", {})
    codes = frozenset(code_tokens)
    options = local_options(codec.digest, dtype=kind, device=device, loop=scheduler.VERSION)
    if control_code is not None:
        options["control_code"] = check_control_code(control_code, codes, source.name)
    ref = ModelRef("causal", source.name, revision, options)
    return CausalModel(ref, scheduler.SamplingLoop(engine, codec, batch), control_code, codes)


def _check_gguf(path: Path) -> None:
    """Reject a file of another format with a clear message, before a library fails on it."""
    with open_regular(path) as file:
        begin = file.read(4)
    if begin != b"GGUF":
        raise ModelError(
            f"the file {path.name} is not a GGUF file: it begins with {begin!r}",
            expected="a file that begins with b'GGUF'",
            fix="download it again, or check its format",
        )


def _end_tokens(*candidates: object) -> frozenset[int]:
    """The first candidate that is set: one token or several."""
    for candidate in candidates:
        tokens = candidate if isinstance(candidate, list) else [candidate]
        if tokens and all(isinstance(token, int) for token in tokens):
            return frozenset(tokens)
    return frozenset()


def _load_masked(
    source: ModelFiles,
    config: Mapping[str, object],
    kind: torch.dtype,
    device: torch.device,
    batch: int | None,
) -> MaskedModel:
    """The masked model of a folder with its ``config.json``."""
    files = checkpoints.weight_files(source.folder)
    checkpoints.require_tokenizer(source.folder)
    shape = BertShape.of(config)
    engine: MaskedEngine
    if shape is not None:
        engine = Bert(shape, checkpoints.read_tensors(files), device=device, dtype=kind)
        vocabulary = shape.vocabulary
    else:
        model = _read_model(AutoModelForMaskedLM, source, dtype=kind, device=device)
        engine = HubMasked(model)
        vocabulary = cast(int, model.config.get_text_config().vocab_size)
    codec = _masked_codec(_read_tokenizer(source, vocabulary), source.name, vocabulary)
    options = local_options(codec.digest, dtype=kind, device=device, loop=gibbs_sampling.VERSION)
    ref = ModelRef("masked", source.name, source.commit or checkpoints.weights_digest(files), options)
    return MaskedModel(engine, codec, batch, ref)


def _masked_codec(tokenizer: PreTrainedTokenizerBase, name: str, vocabulary: int) -> MaskedTokenCodec:
    before = tokenizer.bos_token_id if tokenizer.cls_token_id is None else tokenizer.cls_token_id
    after = tokenizer.eos_token_id if tokenizer.sep_token_id is None else tokenizer.sep_token_id
    mask = tokenizer.mask_token_id
    if not tokenizer.is_fast or before is None or after is None or mask is None:
        raise ModelError(
            f"the tokenizer of {name!r} has no tokenizer.json, or lacks start, end and mask tokens",
            expected="a fast tokenizer with [CLS], [SEP] and [MASK], whatever their names",
            fix="save the tokenizer of the model again, with its special tokens",
        )
    return MaskedTokenCodec.of(
        tokenizer.backend_tokenizer, before=before, after=after, mask=mask, vocabulary=vocabulary
    )


def _read_model(
    auto: _Auto, source: ModelFiles, *, dtype: torch.dtype, device: torch.device
) -> PreTrainedModel:
    """The model in transformers' own classes, checked for missing weights."""
    with _hub_errors(source):
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
    checkpoints.require_finite(model.state_dict(), repr(source.name))
    return model


def _read_tokenizer(source: ModelFiles, vocabulary: int) -> PreTrainedTokenizerBase:
    """The model's own tokenizer, checked to have no token beyond the model's vocabulary."""
    with _hub_errors(source):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            source.folder, gguf_file=source.gguf, local_files_only=True, trust_remote_code=False
        )
        # Tried here, because some invalid settings fail only when a text is tokenized.
        tokenizer(["a text"], verbose=False)
        check_ids(tokenizer.get_vocab())
    if 0 < vocabulary < tokenizer.vocab_size:
        raise ModelError(
            f"the tokenizer of {source.name!r} has {tokenizer.vocab_size} tokens, the model {vocabulary}",
            expected="the tokenizer the model was trained with",
            fix="save both together",
        )
    return tokenizer


def _hub_errors(source: ModelFiles) -> AbstractContextManager[None]:
    """Convert any error raised while reading into one that names the model."""
    if not source.gguf:
        what, fix = f"the folder of the model {source.name!r}", "check the files, or upgrade transformers"
        return checkpoints.raise_model_errors(what, expected=_ACCEPTED, fix=fix)
    return checkpoints.raise_model_errors(
        f"the file {source.gguf}",
        expected="a complete GGUF file of a causal language model that transformers knows",
        fix="download it again, or upgrade gguf and transformers",
    )
