"""The steering head: dense, tanh, dense over a model's own hidden states, in one safetensors file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, cast, get_args

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import apply_umask
from evenhand.core.records import ModelRef

FORMAT: Final = "evenhand-calibrator-1"
States = Literal["written", "hidden"]
FILE: Final = "calibrator.safetensors"
_NAMES: Final = ("inner.weight", "inner.bias", "outer.weight", "outer.bias")
_TRAIN: Final = "train one: evenhand train calibrator --model LM DATA"


@dataclass(frozen=True, slots=True, eq=False)
class Calibrator:
    """A two-sided classifier of hidden states for one model.

    Its input is the accumulated state of a text, with each token discounted by age. If ``states`` is
    ``written``, a token counts as its vector in the output matrix, the space to which hidden states are
    compared; if ``hidden``, as the hidden state that produced it.
    """

    inner: Tensor
    """Inner width x width."""
    inner_bias: Tensor
    outer: Tensor
    """Inner width: the second label's row minus the first one's."""
    outer_bias: Tensor
    labels: tuple[str, str]
    model: str
    """The name of the model it was trained for."""
    revision: str
    states: States = "written"
    discount: float = 0.99
    """The discount of a token for each later one in the accumulated state."""
    digest: str = ""

    @property
    def width(self) -> int:
        """The width of the hidden states."""
        return int(self.inner.shape[1])

    def logit(self, states: Tensor) -> Tensor:
        """The log-odds of the second label for accumulated states (rows x width)."""
        inside = torch.tanh(states @ self.inner.T + self.inner_bias)
        return inside @ self.outer + self.outer_bias

    def to(self, device: torch.device) -> Calibrator:
        """A copy of the head on a device, in float32."""
        names = ("inner", "inner_bias", "outer", "outer_bias")
        return replace(self, **{name: getattr(self, name).to(device, torch.float32) for name in names})


def save_calibrator(head: Calibrator, path: Path) -> None:
    """Write the head with the model it belongs to."""
    parts = (head.inner, head.inner_bias, head.outer, head.outer_bias)
    tensors = {name: part.contiguous().cpu() for name, part in zip(_NAMES, parts, strict=True)}
    about = {
        "labels": list(head.labels),
        "model": head.model,
        "revision": head.revision,
        "states": head.states,
        "discount": head.discount,
    }
    save_file(tensors, path, metadata={"format": FORMAT, "calibrator": json.dumps(about)})
    apply_umask(path)


def read_calibrator(path: Path) -> Calibrator:
    """Read the head from a file or from a training output folder."""
    path = path / FILE if path.is_dir() else path
    if not path.is_file():
        raise InputError(f"there is no calibrator at {path}", expected=f"a folder with {FILE}", fix=_TRAIN)
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise ValueError(f"its format is {metadata.get('format')!r:.40}")
            about = json.loads(metadata["calibrator"])
            tensors = [file.get_tensor(name) for name in _NAMES]
        return _check_calibrator(tensors, about, file_digest(path))
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not a calibrator: {error}", expected=f"a file of the format {FORMAT}", fix=_TRAIN
        ) from error


def _check_calibrator(tensors: Sequence[Tensor], about: Mapping[str, object], digest: str) -> Calibrator:
    """Build the head from the contents of a file; a ValueError if they are inconsistent."""
    inner, inner_bias, outer, outer_bias = tensors
    rows = outer.shape[:1]
    fits = inner.ndim == 2 and outer.ndim == 1 and inner.shape[:1] == rows == inner_bias.shape
    if not fits or not inner.numel():
        raise ValueError(f"matrices of {tuple(inner.shape)} and {tuple(outer.shape)}")
    if outer_bias.numel() != 1 or not all(
        part.is_floating_point() and part.float().isfinite().all() for part in tensors
    ):
        raise ValueError("a weight is not a finite number")
    labels, states, discount = about["labels"], about["states"], about["discount"]
    if not isinstance(labels, list) or not all(isinstance(name, str) for name in labels):
        raise ValueError(f"the labels {labels!r:.80}")
    if not len(labels) == len(set(labels)) == 2:
        raise ValueError(f"the labels {labels!r:.80}")
    model, revision = str(about["model"]), str(about["revision"])
    if not (model + revision).isprintable():
        raise ValueError("the name of its model cannot be printed")
    if states not in get_args(States) or not isinstance(discount, int | float) or not 0 < discount <= 1:
        raise ValueError(f"states {states!r:.40}, discount {discount!r:.40}")
    pair, kind, discount = (labels[0], labels[1]), cast("States", states), float(discount)
    return Calibrator(inner, inner_bias, outer, outer_bias, pair, model, revision, kind, discount, digest)


def check_model(head: Calibrator, ref: ModelRef, *, width: int) -> None:
    """Raise an error if the head was trained on another model's hidden states."""
    if head.width != width:
        raise InputError(
            f"the calibrator expects hidden states of width {head.width}, those of {ref.name!r} have {width}",
            expected=f"a calibrator for {ref.name!r}",
            fix=f"evenhand train calibrator --model {ref.name} DATA",
        )
    if head.revision != ref.revision:
        raise InputError(
            f"the calibrator was trained on {head.model!r} at {head.revision[:12] or 'no revision'}, "
            f"this is {ref.name!r} at {ref.revision[:12] or 'no revision'}",
            expected="a calibrator for the same weights: hidden states of models are not comparable",
            fix=f"evenhand train calibrator --model {ref.name} DATA",
        )
