"""Calibration on a CPU in float32, with the compiled loops of `cpu_kernels`."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

import torch
from torch import Tensor

from evenhand.core.protocols import LMHead
from evenhand.mitigations import cpu_kernels
from evenhand.mitigations.calibration import REACH, CalibrationConfig
from evenhand.mitigations.calibrator import Calibrator
from evenhand.mitigations.cpu_kernels import Floats, SupportArrays
from evenhand.mitigations.objective import CalibrationResult, ClassifierGain, EmbeddingGain, Gain, Support


def find_support(hidden: Tensor, logits: Tensor, lm_head: LMHead, *, size: int) -> Support:
    """The CPU version of `calibration_steering.find_support`, which does not read the whole matrix."""
    (rows, vocabulary), table = logits.shape, lm_head.table
    size = min(size, vocabulary)
    support = Support(
        table,
        torch.empty(rows, size, dtype=torch.long),
        last=torch.empty(hidden.shape),
        offsets=torch.zeros(rows, size + 1),
        logits=torch.empty(rows, size),
        mass=torch.empty(rows),
    )
    reach = min(vocabulary, max(size, REACH))
    _each_core(cpu_kernels.find_topk, rows, _array(hidden), _array(logits), reach, _arrays(support))
    if lm_head.bias is not None:
        support.offsets[:, :-1] = lm_head.bias[support.tokens]
    return support


def expected_vector(hidden: Tensor, support: Support) -> Tensor:
    """The CPU version of `calibration_steering.expected_vector`."""
    out = torch.empty(hidden.shape)
    write = cpu_kernels.write_expected_vectors
    _each_core(write, len(hidden), _array(hidden), _arrays(support), _array(out))
    return out


def optimize(
    hidden: Tensor,
    support: Support,
    gain: Gain,
    strength: Tensor,
    settings: CalibrationConfig,
) -> CalibrationResult:
    """The CPU version of `calibration_steering.calibrate`."""
    rows = len(hidden)
    now, logits = torch.empty(hidden.shape), torch.empty(support.offsets.shape)
    result = CalibrationResult(now, logits, torch.empty(rows), torch.empty(rows))
    inputs = (_array(hidden), _arrays(support), settings.steps, settings.rate)
    outputs = cpu_kernels.ResultArrays(*map(_array, result))
    if isinstance(gain, EmbeddingGain):
        words = _to_word_arrays(gain, strength)
        _each_core(cpu_kernels.optimize_by_words, rows, *inputs, words, outputs)
    else:
        head = _to_head_arrays(gain, strength)
        _each_core(cpu_kernels.optimize_by_head, rows, *inputs, head, outputs)
    return result._replace(logits=logits[:, :-1])


def _to_word_arrays(gain: EmbeddingGain, strength: Tensor) -> cpu_kernels.WordGainArrays:
    vectors = gain.vectors
    return cpu_kernels.WordGainArrays(
        strength=_array(strength),
        sides=_array(torch.stack([vectors.first, vectors.second])),
        offsets=_array(strength.new_tensor(vectors.offsets)),
        units=_array(gain.units),
        targets=_array(gain.earlier - vectors.centre),
        balance=float(gain.balance),
    )


def _to_head_arrays(gain: ClassifierGain, strength: Tensor) -> cpu_kernels.HeadGainArrays:
    return cpu_kernels.HeadGainArrays(
        strength=_array(strength),
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


def _arrays(support: Support) -> SupportArrays:
    """The support as arrays in the same memory."""
    table, tokens, *others = support
    return SupportArrays(_array(table), tokens.contiguous().numpy(), *map(_array, others))


def _array(tensor: Tensor) -> Floats:
    array: Floats = tensor.detach().contiguous().numpy()
    return array


def _each_core(work: Callable[..., None], rows: int, *arguments: object) -> None:
    """Split rows over the cores; the function gets the begin and end of its part as first arguments."""
    cores = torch.get_num_threads()
    parts = max(1, min(cores, rows))
    ends = [rows * part // parts for part in range(parts + 1)]
    (first, *others) = pairwise(ends)
    # Not numba's own threads: they do not survive a fork, and corpora are counted in forked processes.
    begun = [_pool(os.getpid(), cores).submit(work, *other, *arguments) for other in others]
    work(*first, *arguments)
    for part in begun:
        part.result()


@lru_cache(maxsize=1)
def _pool(_process: int, cores: int) -> ThreadPoolExecutor:
    """A thread pool per process; a fork does not inherit its parent's threads."""
    return ThreadPoolExecutor(cores, thread_name_prefix="calibration")
