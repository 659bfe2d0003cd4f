"""What the page says of one GPU: every figure from the results, and what was not measured is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.benchmarks.test_suite import module


def _sampled(
    vanilla: float, *, device: float | None, plain: bool, told: tuple[str, ...] = ()
) -> dict[str, object]:
    """A part whose modes take 1.25 and 2 times as long as vanilla sampling, and plain calls 4 times."""
    seconds = {"vanilla": vanilla, "embedding": 1.25 * vanilla, "classifier": 2 * vanilla}
    if plain:
        seconds["plain calls"] = 4 * vanilla
    return {
        "seconds": seconds,
        "steps": 96,
        "rates": {name: {"wall": 480 / one} for name, one in seconds.items()},
        "ratios": {name: {"wall": one / vanilla} for name, one in seconds.items() if name != "vanilla"},
        "shares_of_bandwidth": {name: 0.2 * vanilla / one for name, one in seconds.items()},
        "shares_of_matrix_rate": {name: 0.3 * vanilla / one for name, one in seconds.items()},
        "shares_of_limit": {name: 0.4 * vanilla / one for name, one in seconds.items()},
        "device_time_share": device,
        "kernels_a_token": None if device is None else 301.7,
        "told": list(told),
    }


def _said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, parts: dict[str, object]) -> str:
    (tmp_path / f"{name}.json").write_text(json.dumps({"parts": parts}))
    return "\n".join(module("gpu_page", monkeypatch).gpu_parts(tmp_path))


def test_each_length_has_its_table_and_the_share_of_the_limit_is_explained(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parts = {
        "32x48": _sampled(0.24, device=0.5, plain=True),
        "32x256": _sampled(0.96, device=0.8, plain=False, told=("out of memory",)),
    }
    said = _said(tmp_path, monkeypatch, "sampling-gpu-medium", parts)
    # 480 / 0.24, 480 / 0.3, 480 / 0.48, 480 / 0.96.
    assert "| 32 | 2,000 | 1,600 | 1,000 | 500 | 20.0 % | 30.0 % | 40.0 % | 50.0 % |" in said
    assert (
        "| rows | vanilla | embedding | classifier | bandwidth | matrix rate | limit | device time |" in said
    )
    # 0.4 of the limit in half the time: 0.8 of it while the device works.
    assert "The device works 50.0 % of the time, and then at 80.0 % of the limit." in said
    assert "a chain of some 302 short kernels" in said
    # Two texts a row, 96 steps: a quarter of 0.24 s over them is 0.625 ms, 0.24 s are 2.5 ms. Of the limit
    # 0.4 / 1.25 and 0.4 / 2.
    assert "| 32 | 48 | 0.62 ms | 2.50 ms | 1.25x | 2.00x | 32.0 % | 20.0 % |" in said
    assert "*32 rows of 256 tokens*: the library warned: out of memory." in said


def test_device_time_that_was_not_measured_is_not_made_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parts = {"32x48": _sampled(0.24, device=None, plain=True)}
    said = _said(tmp_path, monkeypatch, "sampling-gpu-medium", parts)
    assert "| 40.0 % | not measured |" in said
    assert "The device works" not in said


def test_classifiers_are_told_at_the_batch_that_comes_nearest_to_the_matrix_rate(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rates = {"1": (100.0, 0.01, 0.1), "512": (20_000.0, 0.24, 0.6)}
    parts = {
        name: {
            "rates": {"evenhand": {"wall": rate}},
            "share_of_matrix_rate": share,
            "device_time_share": device,
        }
        for name, (rate, share, device) in rates.items()
    }
    said = _said(tmp_path, monkeypatch, "classifiers-gpu", parts)
    assert "| 512 | 20,000 | 24.0 % | 60.0 % |" in said
    # 0.24 / 0.6.
    assert "at 512 rows. The device works 60.0 % of the time, and then at 40.0 % of the matrix rate." in said
