"""Calibration on a processor in float32: tensors handed to the compiled loops of `likeliest` and `fused`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from evenhand.core.protocols import LMHead
from evenhand.mitigations import cpu_optimizer, simd_math
from evenhand.mitigations.calibration import CalibrationConfig
from evenhand.mitigations.calibrator import Calibrator
from evenhand.mitigations.debias_gains import ClassifierGain, EmbeddingGain
from evenhand.mitigations.policy import CalibrationResult, RestConfig, Support
from evenhand.mitigations.simd_math import Floats, run_on_cores


def find_support(hidden: Tensor, logits: Tensor, anatomy: LMHead, *, size: int, rest: RestConfig) -> Support:
    """What `kernel.support_of` finds without reading the whole table."""
    rows, vocabulary = logits.shape
    size = min(size, vocabulary)
    near = simd_math.TopKConfig(size, min(vocabulary, max(size, rest.reach)), rest.follow, rest.nothing)
    found = simd_math.TopKResult(
        np.empty((rows, size), np.int64),
        _empty(rows, size),
        _empty(rows),
        _empty(*hidden.shape),
        _empty(rows),
    )
    given = (_array(hidden), _array(logits), _array(anatomy.table), near, found)
    _each_core(simd_math.find_topk, rows, *given)
    tokens, values, mass, last, offset = map(torch.from_numpy, found)
    offsets = torch.zeros(rows, size) if anatomy.bias is None else anatomy.bias[tokens].float()
    return Support(anatomy.table, tokens, last, torch.cat([offsets, offset[:, None]], 1), values, mass)


def expected_vector(hidden: Tensor, support: Support) -> Tensor:
    """What `kernel.expected_vector` says."""
    out = _empty(*hidden.shape)
    _each_core(cpu_optimizer.write_expected_vectors, len(hidden), _to_inputs(hidden, support), out)
    return torch.from_numpy(out)


def optimize(
    hidden: Tensor,
    support: Support,
    gain: EmbeddingGain | ClassifierGain,
    strength: Tensor,
    settings: CalibrationConfig,
) -> CalibrationResult:
    """Where `kernel.calibrate` ends."""
    rows = len(hidden)
    pace = cpu_optimizer.OptimizerConfig(_array(strength), settings.steps, settings.rate)
    reached = cpu_optimizer.OptimizerOutputs(
        _empty(*hidden.shape), _empty(*support.offsets.shape), _empty(rows), _empty(rows)
    )
    ground = _to_inputs(hidden, support)
    if isinstance(gain, EmbeddingGain):
        _each_core(
            cpu_optimizer.optimize_by_words, rows, ground, pace, _to_word_arrays(gain, hidden), reached
        )
    else:
        _each_core(cpu_optimizer.optimize_by_head, rows, ground, pace, _to_head_arrays(gain), reached)
    now, logits, divergence, gained = map(torch.from_numpy, reached)
    return CalibrationResult(now, logits[:, :-1], divergence, gained)


def _to_inputs(hidden: Tensor, support: Support) -> cpu_optimizer.OptimizerInputs:
    return cpu_optimizer.OptimizerInputs(
        _array(hidden),
        _array(support.table),
        support.tokens.contiguous().numpy(),
        _array(support.last),
        _array(support.offsets),
        _array(support.mass),
    )


def _to_word_arrays(gain: EmbeddingGain, hidden: Tensor) -> cpu_optimizer.WordGainArrays:
    vectors = gain.vectors
    return cpu_optimizer.WordGainArrays(
        sides=_array(torch.stack([vectors.first, vectors.second])),
        offsets=_array(hidden.new_tensor(vectors.offsets)),
        units=_array(gain.units),
        targets=_array(gain.earlier - vectors.centre),
        balance=float(gain.balance),
    )


def _to_head_arrays(gain: ClassifierGain) -> cpu_optimizer.HeadGainArrays:
    return cpu_optimizer.HeadGainArrays(
        inner=_array(gain.head.inner),
        inner_transposed=_transposed_inner(gain.head),
        outer=_array(gain.head.outer),
        outer_bias=float(gain.head.outer_bias),
        inside=_array(gain.inside),
        share=_array(gain.share),
        weights=_array(gain.weights),
        is_natural=gain.expected is not None,
    )


@lru_cache(maxsize=2)
def _transposed_inner(head: Calibrator) -> Floats:
    """The inner matrix with rows and columns exchanged; once for all tokens."""
    return _array(head.inner.T)


def _empty(*size: int) -> Floats:
    return np.empty(size, np.float32)


def _array(tensor: Tensor) -> Floats:
    found: Floats = tensor.detach().contiguous().numpy()
    return found


def _each_core(work: Callable[..., None], rows: int, *arguments: object) -> None:
    run_on_cores(work, rows, *arguments, cores=torch.get_num_threads())
