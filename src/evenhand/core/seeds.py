"""Randomness that depends on what is drawn, never on the order of the draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.core.digests import digest

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def derive_seed(seed: int, *parts: str | int) -> int:
    """A 128-bit seed for one purpose, determined by the run's seed and the names in ``parts``."""
    return int(digest([seed, *parts], size=16), 16)


def row_uniforms(seed: int, prompt_id: str, sample: int, count: int) -> npt.NDArray[np.float64]:
    """Uniform numbers in [0, 1) for the first ``count`` positions of one sample.

    They come from a counter generator keyed by (seed, prompt id, sample), so position *i* has the same
    number whatever the batch, the shard or ``count``.
    """
    return RowUniforms(seed)(prompt_id, sample, count)


class RowUniforms:
    """``row_uniforms`` for many rows with one generator, re-keyed per row, in less than half the time."""

    def __init__(self, seed: int) -> None:
        import numpy as np

        self._seed, self._philox = seed, np.random.Philox(key=0)
        self._draw, self._fresh = np.random.Generator(self._philox).random, self._philox.state

    def __call__(self, prompt_id: str, sample: int, count: int) -> npt.NDArray[np.float64]:
        """The numbers of one row."""
        high, low = divmod(derive_seed(self._seed, "row", prompt_id, sample), 1 << 64)
        self._fresh["state"]["key"][:] = low, high
        self._philox.state = self._fresh
        return self._draw(count)


def make_generator(seed: int, *parts: str | int) -> np.random.Generator:
    """A NumPy generator for one purpose, determined by the run's seed and the names in ``parts``."""
    import numpy as np

    return np.random.default_rng(derive_seed(seed, *parts))
