"""How long a run is said to take, before it starts."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from evenhand.audits import run_setup
from evenhand.audits.audit import prepare
from evenhand.audits.run_setup import format_duration
from evenhand.metrics.scorer import scoring_rate_key
from evenhand.store.cache import ContentCache
from evenhand.testing.stub import StubModel


def _time(out: Path) -> str:
    prepared = prepare(StubModel(), limit=43, samples=1, metrics="sentiment", out=out)
    return next(line for line in prepared.plan().lines if line.startswith("time"))


def test_the_speed_of_scoring_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = count(step=4)  # every look at the clock is four seconds after the last
    monkeypatch.setattr(run_setup, "time", SimpleNamespace(perf_counter=lambda: float(next(seconds))))
    first = prepare(StubModel(), limit=43, samples=1, metrics="sentiment", out=tmp_path / "a")
    assert "scoring" not in _time(tmp_path / "b")
    run = first.run()
    assert first.scoring_rate() == 43 / 4
    assert _time(tmp_path / "b").endswith("; scoring and comparing about 4 s")
    # A second start scores nothing anew, and says nothing of the speed.
    cache = ContentCache()
    key = scoring_rate_key(first.metrics.values())
    cache.put_many("rates", {key: 1.0})
    first.run()
    assert cache.get_many("rates", [key]) == {key: 1.0}
    cache.close()
    assert run.manifest["stages"]["score"]["state"] == "done"


def test_a_time_is_told_in_the_unit_one_plans_with() -> None:
    assert [format_duration(seconds) for seconds in (0.2, 119, 121, 7199, 7200, 400_000)] == [
        "0 s",
        "119 s",
        "2 min",
        "120 min",
        "2.0 h",
        "111.1 h",
    ]
