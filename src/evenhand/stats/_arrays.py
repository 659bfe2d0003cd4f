"""Input checks of `stats`: arguments are validated here, once, and are plain NumPy afterwards."""

from __future__ import annotations

from collections.abc import Sized
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from evenhand.core.errors import InputError

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.intp]
Ids: TypeAlias = npt.ArrayLike | None
"""One id per row (integers or strings); None makes every row its own cluster."""
RandomSource: TypeAlias = int | np.random.SeedSequence | np.random.Generator
"""A seed, or a generator that the caller owns."""


def check_values(y: npt.ArrayLike, name: str = "y") -> Floats:
    """The values as a flat float array; missing and infinite values are refused, not dropped."""
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} contains a value that is not a number: {error}",
            expected="a flat list or array of finite numbers",
            fix="drop rows without a value and pass their number as n_null",
        ) from error
    if values.ndim != 1:
        raise InputError(f"{name} has {values.ndim} dimensions", expected="a flat list or array of numbers")
    missing = int(values.size - np.count_nonzero(np.isfinite(values)))
    if missing:
        raise InputError(
            f"{name} holds {missing} values that are NaN or infinite",
            expected="finite numbers",
            fix="drop rows without a value and pass their number as n_null",
        )
    return values


def check_pairs(
    a: npt.ArrayLike, b: npt.ArrayLike, names: tuple[str, str] = ("a", "b")
) -> tuple[Floats, Floats]:
    """The values of pairs, as two flat float arrays of one length."""
    first, second = map(check_values, (a, b), names)
    if first.size != second.size:
        raise InputError(
            f"{names[0]} has {first.size} values and {names[1]} has {second.size}",
            expected=f"pairs: as many values in {names[0]} as in {names[1]}",
        )
    return first, second


def check_lengths(expected: str, **columns: Sized) -> None:
    """Raise an error unless all columns have the same length; keywords name them in the message."""
    sizes = [f"{len(column)} {name.replace('_', ' ')}" for name, column in columns.items()]
    if len(set(map(len, columns.values()))) > 1:
        raise InputError(f"{sizes[0]} came with {' and '.join(sizes[1:])}", expected=expected)


def check_binary(y: npt.ArrayLike, name: str = "y") -> Floats:
    """The values as floats, each 0 or 1."""
    values = check_values(y, name)
    other = values[(values != 0) & (values != 1)]
    if other.size:
        raise InputError(
            f"{name} contains {other[0]:g}, which is neither 0 nor 1",
            expected="0 and 1, or False and True",
            fix="use the function for means",
        )
    return values


def check_group(group: npt.ArrayLike, size: int) -> Bools:
    """Which rows are in the group."""
    labels = np.asarray(group)
    if labels.dtype.kind != "b" or labels.shape != (size,):
        raise InputError(
            f"group has type {labels.dtype} and shape {labels.shape}",
            expected=f"{size} values of True (in the group) or False",
        )
    return labels.astype(np.bool_, copy=False)


def check_level(level: float) -> float:
    """The confidence level, strictly between 0 and 1."""
    if not 0 < level < 1:
        raise InputError(f"level is {level}", expected="a share above 0 and below 1, such as 0.95")
    return level


def encode_clusters(ids: Ids, size: int) -> Ints:
    """A small non-negative integer per row, equal where the ids are equal.

    Codes follow the sorted ids, so they do not depend on the order of rows. Integers that are already small
    and non-negative are used as they are: this is the fast path of the pipeline, which encodes once.
    """
    if ids is None:
        return np.arange(size, dtype=np.intp)
    codes = np.asarray(ids)
    if codes.shape != (size,):
        raise InputError(
            f"{size} values came with cluster ids of shape {codes.shape}", expected="one id for each value"
        )
    if codes.dtype.kind in "iu" and (not size or (codes.min() >= 0 and codes.max() < 4 * size + 1024)):
        return codes.astype(np.intp, copy=False)
    plain = np.array(codes.tolist()) if codes.dtype.kind == "O" else codes
    if plain.dtype.kind not in "iuUb" and plain.size:
        raise InputError(
            f"cluster ids of type {plain.dtype}",
            expected="integers, or strings; no nulls",
            fix="give rows without a cluster an id of their own",
        )
    return np.asarray(np.unique(plain, return_inverse=True)[1], dtype=np.intp)


def encode_jointly(ids_a: Ids, size_a: int, ids_b: Ids, size_b: int) -> Ints:
    """Codes for the rows of a, then those of b; an id that occurs in both is one cluster."""
    if (ids_a is None) != (ids_b is None):
        raise InputError(
            "only one of the two groups came with cluster ids", expected="ids for both groups, or for neither"
        )
    if ids_a is None or ids_b is None:
        return encode_clusters(None, size_a + size_b)
    parts = [np.asarray(ids_a), np.asarray(ids_b)]
    kinds = {part.dtype.kind.replace("u", "i") for part in parts if part.size}
    if len(kinds) > 1:
        raise InputError(
            f"the cluster ids are of two types, {parts[0].dtype} and {parts[1].dtype}",
            expected="integers in both groups, or strings in both",
            fix="code the clusters of all rows together, before cutting them into groups",
        )
    if parts[0].shape != (size_a,) or parts[1].shape != (size_b,):
        raise InputError(
            f"{size_a} and {size_b} values came with ids of shapes {parts[0].shape} and {parts[1].shape}",
            expected="one id for each value",
        )
    return encode_clusters(np.concatenate([part for part in parts if part.size] or parts), size_a + size_b)


def clusters_per_cell(cells: Ints, clusters: Ints, length: int = 0) -> Ints:
    """The number of clusters in each cell."""
    stride = int(clusters.max(initial=0)) + 1
    return np.bincount(np.unique(cells * stride + clusters) // stride, minlength=length)


def weighted_counts(codes: Ints, weights: Floats, length: int = 0) -> Floats:
    """The sum of the weights of each code."""
    sums: Floats = np.bincount(codes, weights=weights, minlength=length).astype(np.float64, copy=False)
    return sums


def cross_tabulate(rows: Ints, columns: Ints, shape: tuple[int, int]) -> Floats:
    """The number of occurrences of each pair of codes: a table of this shape."""
    counts = np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1])
    return counts.reshape(shape).astype(np.float64)


def divide(part: Floats, whole: Floats, known: Bools | None = None) -> Floats:
    """``part / whole``, NaN where it is not ``known``; by default it is known if ``whole`` is above 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(whole > 0 if known is None else known, part / whole, np.nan)
