"""The harness of the benchmarks, the table of bars, and the page that is written from them."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLACES = {"write_performance": "scripts"}


def module(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    path = ROOT / PLACES.get(name, "benchmarks") / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"bench_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, f"bench_{name}", found)
    spec.loader.exec_module(found)
    return found


def test_the_performance_page_and_its_charts_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    write = module("write_performance", monkeypatch)
    docs = ROOT / "docs"
    assert (docs / "performance.md").read_text() == write.page(), "run scripts/write_performance.py"
    drawn = {path.name: path.read_text() for path in (docs / "performance").glob("*.svg")}
    assert drawn == write.charts(), "run scripts/write_performance.py"


def test_a_page_without_results_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = module("write_performance", monkeypatch).page(tmp_path)
    assert "| at least 50x | not measured yet |  |" in page
    assert "**missed**" not in page


def test_a_ratio_is_the_median_over_rounds_of_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = module("harness", monkeypatch)
    # 10 texts in 1, 2 and 4 s beside 5 texts in 5, 3 and 20 s: 10/1, 5/1.67 and 2.5/0.25 are 10, 3 and 10.
    ways = {"ours": harness.Way(None, 10), "theirs": harness.Way(None, 5)}
    spent = {name: [harness.Spent(s, 2 * s) for s in took] for name, took in _took().items()}
    turns = harness.Turns(ways, spent)
    assert turns.ratio("ours", "theirs", "cpu") == pytest.approx(10)
    assert turns.rate("ours", "wall") == pytest.approx(2.5)
    found = harness.result(turns, ours="ours", unit="texts/s", gate="same")
    assert found["ratios"] == {"theirs": {"cpu": 10.0, "wall": 10.0}}
    assert found["rounds"] == 3


def _took() -> dict[str, list[float]]:
    return {"ours": [1.0, 2.0, 4.0], "theirs": [5.0, 3.0, 20.0]}


def test_ways_take_turns_and_the_first_rounds_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = module("harness", monkeypatch)
    order: list[str] = []
    ways = {name: harness.Way(lambda name=name: order.append(name)) for name in "ab"}
    turns = harness.take_turns(ways, rounds=2, warm=1)
    assert order == ["a", "b"] * 3
    assert [len(turns.spent[name]) for name in "ab"] == [2, 2]


def test_a_gate_that_does_not_hold_reports_no_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = module("harness", monkeypatch)
    with pytest.raises(SystemExit, match=r"^scores differ: no speed is reported$"):
        harness.gate(False, "scores differ")


def test_texts_that_stand_in_for_bold_occur_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # A text that comes again is read once: rates over repeated texts would be too high.
    texts, called = module("harness", monkeypatch).bold_texts(tmp_path / "none")
    assert called == "bundled examples"
    assert len(set(texts)) == len(texts) == 240 * 40


def test_more_than_a_device_can_do_is_no_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = module("harness", monkeypatch)
    assert harness.share(3.0, 4.0) == 0.75
    with pytest.raises(
        SystemExit, match=r"^17 a second where the device does 4 at most: no speed is reported$"
    ):
        harness.share(17.0, 4.0)


def test_missed_bars_and_lost_ratios_are_complained_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = module("run", monkeypatch)
    old, new = tmp_path / "old", tmp_path / "new"
    monkeypatch.setattr(run, "RESULTS", old)
    for folder, vader, nltk, data in ((old, 13.0, 40.0, "BOLD"), (new, 10.0, 3.0, "BOLD")):
        folder.mkdir()
        ratios = {"vaderSentiment": {"cpu": vader}, "nltk": {"cpu": nltk}}
        (folder / "sentiment.json").write_text(json.dumps({"data": data, "ratios": ratios}))
    # 10 is more than the bar of 1.2, but less than 13 x 0.8 = 10.4; 3 is under both 3.5 and 40 x 0.8.
    assert list(run._complaints("sentiment", new)) == [
        "sentiment, bit-identical / vaderSentiment 3.3.2: 10 x, committed is 13",
        "sentiment / nltk's VADER: 3 x, the bar is 3.5",
        "sentiment / nltk's VADER: 3 x, committed is 40",
    ]
    # Other data give other ratios: then the bars alone count.
    (old / "sentiment.json").write_text(json.dumps({"data": "bundled", "ratios": ratios}))
    assert list(run._complaints("sentiment", new)) == ["sentiment / nltk's VADER: 3 x, the bar is 3.5"]


@pytest.mark.parametrize(("vader", "code"), [(10.5, 0), (10.3, 1), (1.1, 1)])
def test_the_suite_fails_where_a_ratio_fell_by_more_than_a_fifth_or_a_bar_is_missed(
    vader: float, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Committed is 13: a fifth less is 10.4. The bar is 1.2.
    run = module("run", monkeypatch)
    (tmp_path / "old").mkdir()
    monkeypatch.setattr(run, "RESULTS", tmp_path / "old")
    for folder, ratio in (("old", 13.0), ("new", vader)):
        found = {"data": "BOLD", "ratios": {"vaderSentiment": {"cpu": ratio}}}
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "sentiment.json").write_text(json.dumps(found))
    monkeypatch.setattr(run, "_ran", lambda job, out: True)
    monkeypatch.setattr(sys, "argv", ["run.py", "--only", "sentiment", "--out", str(tmp_path / "new")])
    assert run.main() == code


def test_the_suite_fails_where_a_benchmark_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = module("run", monkeypatch)
    monkeypatch.setattr(run, "_ran", lambda job, out: False)
    monkeypatch.setattr(sys, "argv", ["run.py", "--only", "sentiment", "--out", str(tmp_path)])
    assert run.main() == 1


def test_every_bar_has_a_job_and_every_job_a_script(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, bars = module("run", monkeypatch), module("bars", monkeypatch)
    assert {bar.file for bar in bars.BARS} <= {job.name for job in run.JOBS}
    for job in run.JOBS:
        assert (ROOT / "benchmarks" / job.script).is_file(), job.name
    for bar in bars.BARS:
        found = bars.read(bars.RESULTS, bar.file)
        if found is not None and bar.machine == "gpu":
            assert bar.figure(found) is not None, bar.work
