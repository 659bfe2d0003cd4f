"""What sampling must at least move and compute, counted from a model's sizes: the limit a device sets it.

A step has two parts that wait for each other. *Products* read every weight once, whatever the rows, and take
two operations a row for each cell they multiply. *Attention* moves each row's own keys and values: those
before the token are read, its own are written. Each part takes at least as long as its bytes or its
operations do, whichever is longer, and a step as long as both. The positions' table is looked up, not read;
the word table counts once, for the output. Norms, sums, the draw, calibration and the prompts are not
counted: what they take is missing from the share of the limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from evenhand.classifiers.encoder import EncoderShape
    from evenhand.generation.gpt2 import Gpt2Shape


class Limit(NamedTuple):
    """What a device does at most."""

    bytes_per_second: float
    operations_per_second: float


class Work(NamedTuple):
    """Bytes that must be moved and operations that must be done."""

    bytes: float
    operations: float

    def least(self, limit: Limit) -> float:
        """Seconds it takes at least, moving and computing at the same time."""
        return max(self.bytes / limit.bytes_per_second, self.operations / limit.operations_per_second)


class Run(NamedTuple):
    """All steps of a run together."""

    bytes: float
    operations: float
    seconds: float
    """The least it can take: the sum of what each part of each step takes at least."""


def multiplied(shape: Gpt2Shape) -> int:
    """Cells of the matrices: four times the square of the width for attention, eight for the inner layer."""
    return 12 * shape.layers * shape.width**2 + shape.vocabulary * shape.width


def read(shape: Gpt2Shape) -> int:
    """Cells read in a step: the matrices, their nine widths of biases a layer and two norms, and the last."""
    return multiplied(shape) + shape.layers * 13 * shape.width + 2 * shape.width


def products(shape: Gpt2Shape, *, rows: int, size: int) -> Work:
    """The products of a step with weights of ``size`` bytes a cell."""
    return Work(read(shape) * size, 2 * rows * multiplied(shape))


def attention(shape: Gpt2Shape, *, rows: int, seen: int, size: int) -> Work:
    """The attention of a step to ``seen`` tokens, its own among them.

    A token has a key and a value of the model's width in each layer. Two operations a cell weigh a key
    against the query, two more add the value.
    """
    cells = rows * seen * 2 * shape.width * shape.layers
    return Work(cells * size, 2 * cells)


def steps(shape: Gpt2Shape, *, rows: int, prompt: int, tokens: int, size: int) -> Iterator[Work]:
    """Products and attention in turn: the first step writes after the whole prompt, and sees it."""
    for seen in range(prompt, prompt + tokens):
        yield products(shape, rows=rows, size=size)
        yield attention(shape, rows=rows, seen=seen, size=size)


def run(
    shape: Gpt2Shape, limit: Limit, *, rows: int, prompt: int, tokens: int, size: int, times: int = 1
) -> Run:
    """The least work of generating ``tokens`` tokens in each row, repeated ``times`` times."""
    parts = list(steps(shape, rows=rows, prompt=prompt, tokens=tokens, size=size))
    return Run(
        times * sum(part.bytes for part in parts),
        times * sum(part.operations for part in parts),
        times * sum(part.least(limit) for part in parts),
    )


def encoded(shape: EncoderShape, length: int) -> float:
    """Operations of an encoder that reads a text of ``length`` tokens: its products, and its attention."""
    # Queries, keys, values and output; then into the inner layer and out again.
    layer = 4 * shape.width**2 + 2 * shape.width * shape.inner
    matrices = shape.layers * layer + shape.embedding * shape.width
    return 2 * matrices * length + 4 * shape.layers * shape.width * length**2
