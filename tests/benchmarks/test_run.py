"""What is run of the suite, what is said of bars without a figure, and how page and chart tell a miss."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.benchmarks.test_suite import module


def test_a_name_that_no_benchmark_has_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = module("run", monkeypatch)
    monkeypatch.setattr(sys, "argv", ["run.py", "--only", "wasserstien"])
    with pytest.raises(SystemExit, match="2"):
        run.main()
    assert "invalid choice: 'wasserstien'" in capsys.readouterr().err


def test_a_benchmark_of_the_other_machine_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = module("run", monkeypatch)
    monkeypatch.setattr(sys, "argv", ["run.py", "--only", "regard-gpu", "--out", str(tmp_path)])
    assert run.main() == 2
    assert "regard-gpu: nothing to run on a cpu; --gpu chooses" in capsys.readouterr().err


def test_a_bar_without_a_figure_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = module("run", monkeypatch)
    found = {"data": "some", "ratios": {"vaderSentiment": {"cpu": 9.0}}}
    (tmp_path / "sentiment.json").write_text(json.dumps(found))
    monkeypatch.setattr(run, "_ran", lambda job, out: True)
    monkeypatch.setattr(sys, "argv", ["run.py", "--only", "sentiment", "--out", str(tmp_path)])
    assert run.main() == 0
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "ok            9 x          >= 1.2    sentiment, bit-identical / vaderSentiment 3.3.2",
        "-    unmeasured x          >= 3.5    sentiment / nltk's VADER",
        "",
        "every bar that was measured holds, no ratio is lost",
    ]


def test_a_bar_missed_by_little_is_seen_to_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write = module("write_performance", monkeypatch)
    found = {
        "parts": {"8": {"rounds": 6, "cost": {"embedding": {"wall": 1.2531}, "classifier": {"wall": 1.2}}}}
    }
    (tmp_path / "mitigation.json").write_text(json.dumps(found))
    page = write.page(tmp_path)
    assert "batch 8 | vanilla sampling | at most 1.25x | 1.253x | **missed** |" in page
    assert "batch 8 | vanilla sampling | at most 1.4x | 1.2x | holds |" in page
    assert "| `mitigation.json` | 6 |" in page
    # Not by colour alone.
    chart = write.charts(tmp_path)["ratios.svg"]
    assert "1.25x (≤ 1.25x), missed<" in chart
    assert "1.2x (≤ 1.4x)<" in chart


def test_ratios_of_few_rounds_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write = module("write_performance", monkeypatch)
    for name, rounds in (("sentiment", 5), ("bootstrap", 3)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"rounds": rounds, "ratios": {}}))
    (tmp_path / "regard-gpu.json").write_text(json.dumps({"ratio": 36}))
    said = "fewer than five rounds or an unknown number: `bootstrap.json`, `regard-gpu.json`.\n"
    assert write.page(tmp_path).endswith(said)
