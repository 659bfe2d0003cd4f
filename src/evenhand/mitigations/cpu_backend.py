"""Calibration on a CPU in float32, with the compiled loops of `simd_math` and `cpu_optimizer`."""

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


def find_support(hidden: Tensor, logits: Tensor, lm_head: LMHead, *, size: int, rest: RestConfig) -> Support:
    """The CPU version of `token_calibration.find_support`, which does not read the whole matrix."""
    rows, vocabulary = logits.shape
    size = min(size, vocabulary)
    near = simd_math.TopKConfig(size, min(vocabulary, max(size, rest.reach)), rest.follow, rest.nothing)
    sizes = ((rows, size), rows, hidden.shape, rows)
    result = simd_math.TopKResult(
        np.empty((rows, size), np.int64), *(np.empty(shape, np.float32) for shape in sizes)
    )
    inputs = (_array(hidden), _array(logits), _array(lm_head.table), near, result)
    _each_core(simd_math.find_topk, rows, *inputs)
    tokens, values, mass, last, offset = map(torch.from_numpy, result)
    offsets = torch.zeros(rows, size) if lm_head.bias is None else lm_head.bias[tokens].float()
    return Support(lm_head.table, tokens, last, torch.cat([offsets, offset[:, None]], 1), values, mass)


def expected_vector(hidden: Tensor, support: Support) -> Tensor:
    """The CPU version of `token_calibration.expected_vector`."""
    out = np.empty(hidden.shape, np.float32)
    _each_core(cpu_optimizer.write_expected_vectors, len(hidden), _to_inputs(hidden, support), out)
    return torch.from_numpy(out)


def optimize(
    hidden: Tensor,
    support: Support,
    gain: EmbeddingGain | ClassifierGain,
    strength: Tensor,
    settings: CalibrationConfig,
) -> CalibrationResult:
    """The CPU version of `token_calibration.calibrate`."""
    rows, inputs = len(hidden), _to_inputs(hidden, support)
    config = cpu_optimizer.OptimizerConfig(_array(strength), settings.steps, settings.rate)
    sizes = (hidden.shape, support.offsets.shape, rows, rows)
    outputs = cpu_optimizer.OptimizerOutputs(*(np.empty(shape, np.float32) for shape in sizes))
    if isinstance(gain, EmbeddingGain):
        words = _to_word_arrays(gain, hidden)
        _each_core(cpu_optimizer.optimize_by_words, rows, inputs, config, words, outputs)
    else:
        _each_core(cpu_optimizer.optimize_by_head, rows, inputs, config, _to_head_arrays(gain), outputs)
    now, logits, divergence, gains = map(torch.from_numpy, outputs)
    return CalibrationResult(now, logits[:, :-1], divergence, gains)


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
    """The transposed inner matrix, computed once for all tokens."""
    return _array(head.inner.T)


def _array(tensor: Tensor) -> Floats:
    array: Floats = tensor.detach().contiguous().numpy()
    return array


def _each_core(work: Callable[..., None], rows: int, *arguments: object) -> None:
    run_on_cores(work, rows, *arguments, cores=torch.get_num_threads())
