"""What sampling must at least move and compute, by hand; and how long a device works."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.benchmarks.test_suite import module

SMALL = SimpleNamespace(vocabulary=10, context=7, layers=2, width=4, heads=2)
MEDIUM = SimpleNamespace(vocabulary=50257, context=1024, layers=24, width=1024, heads=16)


def test_every_weight_but_the_positions_is_read_and_matrices_are_multiplied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = module("gpu_work", monkeypatch)
    # A layer: 4 x 12 in, 4 x 4 out, 4 x 16 up and 16 x 4 down are 192; two of them, and 10 words x 4.
    assert work.multiplied(SMALL) == 2 * 192 + 40
    # Biases of 12, 4, 16 and 4, two norms of 4 + 4: 52 a layer; the last norm has 8.
    assert work.read(SMALL) == 424 + 2 * 52 + 8
    # GPT-2-medium has 354,823,168 weights, of which 1,024 x 1,024 are positions.
    assert work.read(MEDIUM) == 354_823_168 - 1024 * 1024


def test_products_read_weights_once_for_all_rows_and_attention_each_rows_own_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = module("gpu_work", monkeypatch)
    # 536 cells of 2 bytes; 3 rows x 424 cells, a multiplication and an addition each.
    assert work.products(SMALL, rows=3, size=2) == (1072, 2544)
    # A token has a key and a value of 4 cells in 2 layers: 16. 3 rows x 5 tokens are 240 cells.
    assert work.attention(SMALL, rows=3, seen=5, size=2) == (480, 480)
    # The keys and values of a token of GPT-2-medium in half precision: 24 x 2 x 1,024 x 2 bytes.
    assert work.attention(MEDIUM, rows=1, seen=1, size=2).bytes == 98_304


def test_each_part_of_a_step_meets_its_own_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    work = module("gpu_work", monkeypatch)
    limit = work.Limit(bytes_per_second=100, operations_per_second=200)
    # Products: 10.72 s for bytes, 12.72 for operations. Attention sees 3, then 4 tokens: 288 bytes and
    # operations take 2.88 and 1.44 s, 384 take 3.84 and 1.92.
    found = work.run(SMALL, limit, rows=3, prompt=3, tokens=2, size=2)
    assert found.bytes == 2 * 1072 + 288 + 384
    assert found.operations == 2 * 2544 + 288 + 384
    assert found.seconds == pytest.approx(2 * 12.72 + 2.88 + 3.84)
    # Where all waited for one limit alone, the whole would have less to wait for.
    assert found.seconds > max(found.bytes / 100, found.operations / 200)


def test_an_encoders_products_grow_with_a_text_and_its_attention_with_the_square(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shape = SimpleNamespace(width=4, inner=6, layers=2, embedding=3)
    # A layer: 4 x 16 and 2 x 24 are 112; two of them and 3 x 4 are 236. Attention: 4 x 2 x 4 a pair of them.
    encoded = module("gpu_work", monkeypatch).encoded
    assert encoded(shape, 1) == 2 * 236 + 32
    assert encoded(shape, 5) == 2 * 236 * 5 + 32 * 25


def test_a_moment_in_which_two_kernels_run_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    covered = module("device_time", monkeypatch).covered
    # 0 to 4 with one inside it and one that begins before it ends, then a gap of 2: 6 + 1.
    assert covered([(8.0, 9.0), (0.0, 4.0), (1.0, 2.0), (3.0, 6.0)]) == 7
    assert covered([]) == 0


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda ends: tuple(sorted(ends)))))
def test_covered_time_is_that_of_moments_counted_one_by_one(spans: list[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        covered = module("device_time", patched).covered
    assert covered(spans) == len({moment for start, end in spans for moment in range(start, end)})


def test_without_a_gpu_there_is_no_device_time(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = module("device_time", monkeypatch).device_time
    assert measured(lambda: None, SimpleNamespace(type="cpu")) is None
