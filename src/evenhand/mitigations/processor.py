"""Calibration on a processor in float32: tensors handed to the compiled loops of `likeliest` and `fused`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from evenhand.core.protocols import Anatomy
from evenhand.mitigations import fused, likeliest
from evenhand.mitigations.calibrator import Calibrator
from evenhand.mitigations.gains import ClassifierGain, EmbeddingGain
from evenhand.mitigations.lanes import Floats, each_core
from evenhand.mitigations.policy import Calibrated, Rest, Support
from evenhand.mitigations.settings import Settings


def looked(hidden: Tensor, logits: Tensor, anatomy: Anatomy, *, size: int, rest: Rest) -> Support:
    """What `kernel.support_of` finds without reading the whole table."""
    rows, vocabulary = logits.shape
    size = min(size, vocabulary)
    near = likeliest.Near(size, min(vocabulary, max(size, rest.reach)), rest.follow, rest.nothing)
    found = likeliest.Found(
        np.empty((rows, size), np.int64),
        _empty(rows, size),
        _empty(rows),
        _empty(*hidden.shape),
        _empty(rows),
    )
    given = (_array(hidden), _array(logits), _array(anatomy.table), near, found)
    _each_core(likeliest.look, rows, *given)
    tokens, values, mass, last, offset = map(torch.from_numpy, found)
    offsets = torch.zeros(rows, size) if anatomy.bias is None else anatomy.bias[tokens].float()
    return Support(anatomy.table, tokens, last, torch.cat([offsets, offset[:, None]], 1), values, mass)


def expected(hidden: Tensor, support: Support) -> Tensor:
    """What `kernel.expected_vector` says."""
    out = _empty(*hidden.shape)
    _each_core(fused.expect, len(hidden), _ground(hidden, support), out)
    return torch.from_numpy(out)


def climbed(
    hidden: Tensor,
    support: Support,
    gain: EmbeddingGain | ClassifierGain,
    strength: Tensor,
    settings: Settings,
) -> Calibrated:
    """Where `kernel.calibrate` ends."""
    rows = len(hidden)
    pace = fused.Pace(_array(strength), settings.steps, settings.rate)
    reached = fused.Reached(_empty(*hidden.shape), _empty(*support.offsets.shape), _empty(rows), _empty(rows))
    ground = _ground(hidden, support)
    if isinstance(gain, EmbeddingGain):
        _each_core(fused.climb_by_words, rows, ground, pace, _words(gain, hidden), reached)
    else:
        _each_core(fused.climb_by_head, rows, ground, pace, _head(gain), reached)
    now, logits, divergence, gained = map(torch.from_numpy, reached)
    return Calibrated(now, logits[:, :-1], divergence, gained)


def _ground(hidden: Tensor, support: Support) -> fused.Ground:
    return fused.Ground(
        _array(hidden),
        _array(support.table),
        support.tokens.contiguous().numpy(),
        _array(support.last),
        _array(support.offsets),
        _array(support.mass),
    )


def _words(gain: EmbeddingGain, hidden: Tensor) -> fused.Words:
    vectors = gain.vectors
    return fused.Words(
        sides=_array(torch.stack([vectors.first, vectors.second])),
        offsets=_array(hidden.new_tensor(vectors.offsets)),
        units=_array(gain.units),
        wanted=_array(gain.earlier - vectors.centre),
        balance=float(gain.balance),
    )


def _head(gain: ClassifierGain) -> fused.Head:
    return fused.Head(
        inner=_array(gain.head.inner),
        turned=_turned(gain.head),
        outer=_array(gain.head.outer),
        outer_bias=float(gain.head.outer_bias),
        inside=_array(gain.inside),
        share=_array(gain.share),
        weights=_array(gain.weights),
        is_natural=gain.expected is not None,
    )


@lru_cache(maxsize=2)
def _turned(head: Calibrator) -> Floats:
    """The inner matrix with rows and columns exchanged; once for all tokens."""
    return _array(head.inner.T)


def _empty(*size: int) -> Floats:
    return np.empty(size, np.float32)


def _array(tensor: Tensor) -> Floats:
    found: Floats = tensor.detach().contiguous().numpy()
    return found


def _each_core(work: Callable[..., None], rows: int, *arguments: object) -> None:
    each_core(work, rows, *arguments, cores=torch.get_num_threads())
