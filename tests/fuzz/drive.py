"""Many inputs for one reader, from two sources: damaged examples, and odd contents in the right form."""

from __future__ import annotations

import zlib
from collections import Counter
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as st
from tests.fuzz.harness import Outcome, Reader, try_input
from tests.fuzz.mutations import mutated
from tests.fuzz.strategies import edited


def try_examples(reader: Reader, folder: Path) -> Counter[Outcome]:
    """The undamaged examples."""
    reader.prepare(folder)
    return Counter(try_input(reader, folder, data) for data in reader.examples())


def try_damaged(reader: Reader, folder: Path, *, count: int, seed: int = 0) -> Counter[Outcome]:
    """Examples after byte flips, cuts, splices, odd numbers, deep nesting and other encodings."""
    reader.prepare(folder)
    rng = np.random.default_rng([seed, zlib.crc32(reader.name.encode())])
    examples = list(reader.examples())
    plain = [reader.pack] if reader.pack else []
    outcomes: Counter[Outcome] = Counter()
    for number in range(count):
        example = examples[int(rng.integers(len(examples)))]
        if plain and number % 2:
            # Damage inside a sound packing, which the unpacker does not notice.
            data = plain[0](mutated(_unpacked(example), [b"\n"], rng))
        else:
            data = mutated(example, examples, rng)
        outcomes[try_input(reader, folder, data)] += 1
    return outcomes


def try_edited(reader: Reader, folder: Path, *, count: int, seed: int | None = None) -> Counter[Outcome]:
    """Contents with odd values in the right form, the same ones without a seed; none without a tree."""
    trees = list(reader.trees())
    outcomes: Counter[Outcome] = Counter()
    if not trees or not count:
        return outcomes
    reader.prepare(folder)

    @with_seed(seed or 0)
    @settings(
        max_examples=count,
        derandomize=seed is None,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(trees).flatmap(edited))
    def check(tree: object) -> None:
        outcomes[try_input(reader, folder, reader.dump(tree))] += 1

    check()
    return outcomes


def _unpacked(data: bytes) -> bytes:
    import bz2
    import gzip
    import lzma

    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    if data[:3] == b"BZh":
        return bz2.decompress(data)
    if data[:4] == b"\xfd7zX":
        return lzma.decompress(data)
    import zstandard

    return zstandard.ZstdDecompressor().decompress(data)
