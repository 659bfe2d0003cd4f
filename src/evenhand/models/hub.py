"""Models from the Hub, from local folders and from GGUF files; their configuration says what they are."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Literal

from transformers import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from evenhand.core import registry
from evenhand.core.errors import EvenhandError, InputError, ModelError
from evenhand.core.records import Execution
from evenhand.generation.spec_checks import check_control_code
from evenhand.models.hub_causal import load_causal
from evenhand.models.hub_masked import load_masked
from evenhand.models.local import CausalModel, MaskedModel
from evenhand.models.transformers_loading import ACCEPTED, hub_errors, without_progress_bars
from evenhand.tensors.checkpoints import check_layers, read_config, refuse_kernels
from evenhand.tensors.devices import select_device
from evenhand.tensors.model_files import ModelFiles, locate_model

Kind = Literal["causal", "masked"]

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
    RoBERTa and DistilBERT go through our own engines, every other architecture through transformers.

    Args:
        name: The folder, file or Hub id.
        revision: A branch, tag or commit on the Hub.
        control_code: What every prompt is preceded by (CTRL only).
        dtype: ``auto`` (float32 on a CPU, as stored on a GPU), ``float32``, ``bfloat16`` or ``float16``.
        execution: Device, rows at a time, and whether the Hub may be asked.
    """
    execution = execution or Execution()
    source = _locate(name, revision, offline=execution.offline)
    device = select_device(execution.device)
    config = {} if source.gguf else read_config(source.folder)
    check_layers(config, repr(source.name))
    refuse_kernels(config, repr(source.name))
    with without_progress_bars(), hub_errors(source):
        if source.gguf or architecture(config, source.name) == "causal":
            return load_causal(
                source, config, dtype=dtype, device=device, batch=execution.batch, control_code=control_code
            )
        if control_code is not None:
            check_control_code(control_code, (), source.name)
        return load_masked(source, config, dtype=dtype, device=device, batch=execution.batch)


def architecture(config: Mapping[str, object], name: str) -> Kind:
    """Whether a ``config.json`` describes a causal or a masked model; an error for any other.

    Where it names no class, a type that has a masked head is masked.
    """
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        needs_code = " and brings code of its own, which is never run" if "auto_map" in config else ""
        raise ModelError(
            f"the model {name!r} is of type {kind!r}, which transformers does not know{needs_code}",
            expected=ACCEPTED,
            fix="upgrade transformers, or serve the model elsewhere and name it as endpoint:URL#MODEL",
        )
    listed = config.get("architectures")
    classes = [str(item) for item in listed] if isinstance(listed, list) else []
    if not classes:
        known = (MODEL_FOR_MASKED_LM_MAPPING_NAMES.get(kind), MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(kind))
        classes = [str(item) for item in known if item is not None][:1]
    if not _CAUSAL.isdisjoint(classes):
        return "causal"
    if not _MASKED.isdisjoint(classes):
        return "masked"
    raise InputError(
        f"the model {name!r} is {' or '.join(classes) or kind}, which writes no text",
        expected=ACCEPTED,
        fix="name a causal or a masked language model",
    )


def _locate(name: str, revision: str | None, *, offline: bool) -> ModelFiles:
    """The model's files; a name that is nearly a back-end's is told so, without repeating what follows it."""
    try:
        return locate_model(name, revision=revision, offline=offline)
    except EvenhandError as error:
        known = [entry.name for entry in registry.list_entries("models")]
        near = get_close_matches(name.partition(":")[0], known, n=1, cutoff=0.75)
        if not near:
            raise
        todo = f"did you mean the back-end {near[0]!r}? Else {error.fix}"
        raise type(error)(error.problem, expected=error.expected, fix=todo) from error
