"""Carry tokens as small files: uint16, little-endian, packed with xz, several to a folder."""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

SUFFIX: Final = ".u16.xz"
# Positions are modelled modulo 2, as uint16 asks for.
_FILTERS: Final = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 3, "lp": 1, "pb": 1}]


def pack(tokens: NDArray[np.uint16]) -> bytes:
    """Return the tokens as one xz stream (about 1.05 bytes a token of English)."""
    return lzma.compress(tokens.astype("<u2").tobytes(), check=lzma.CHECK_CRC64, filters=_FILTERS)


def unpack(data: bytes) -> NDArray[np.uint16]:
    """Return the tokens of one xz stream; the stream's own checksum is verified."""
    return np.frombuffer(lzma.decompress(data), dtype="<u2").astype(np.uint16)


def write(
    folder: Path, tokens: NDArray[np.uint16], *, name: str, pieces: int = 1, workers: int = 2
) -> list[Path]:
    """Return the paths of `pieces` files `name-000.u16.xz` .. written with the tokens in order."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}-{index:03d}{SUFFIX}" for index in range(pieces)]
    with ThreadPoolExecutor(workers) as pool:
        for path, data in zip(paths, pool.map(pack, np.array_split(tokens, pieces)), strict=True):
            path.write_bytes(data)
    return paths


def read(paths: Sequence[Path], *, workers: int = 8) -> NDArray[np.uint16]:
    """Return the tokens of all files, in the order given, as one array."""
    with ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(lambda path: unpack(path.read_bytes()), paths))
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint16)
