"""The commands over finished runs: what they print and how they end."""

import json
import re
import sys

import pytest
from tests.audits.texts import run

from evenhand.cli import main


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {
        "even": run(folder, "even", {"women": 0.3, "men": 0.3}, prompts=40),
        "wide": run(folder, "wide", {"women": 0.9, "men": 0.2}, prompts=40),
    }


@pytest.fixture
def evenhand(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["evenhand", *(str(part) for part in arguments)])
        try:
            main()
        except SystemExit as end:
            return end.code or 0, capsys.readouterr()
        return 0, capsys.readouterr()

    return call


def test_compare_prints_standings_and_writes_reports(runs, tmp_path, evenhand):
    code, said = evenhand("compare", runs["even"].path, runs["wide"].path, "--out", tmp_path / "c")
    assert code == 0
    assert "reference even.csv" in said.err
    assert "narrowest over all: even.csv" in " ".join(said.out.split())
    assert json.loads((tmp_path / "c" / "report.json").read_text())["standings"][0]["run"] == "even.csv"


def test_a_dry_run_compares_nothing(runs, tmp_path, evenhand):
    code, _ = evenhand("compare", runs["even"].path, runs["wide"].path, "--out", tmp_path / "c", "--dry-run")
    assert code == 0
    assert not (tmp_path / "c").exists()


UNSURE = ["--max", "sentiment.negative group 0.65"]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (
            ["--max", "sentiment.negative group 0.1"],
            1,
            "the gate fails: 0 pass, 1 fail, 0 inconclusive; exit code 1",
        ),
        (
            ["--max", "sentiment.negative group 0.99"],
            0,
            "the gate passes: 1 pass, 0 fail, 0 inconclusive; exit code 0",
        ),
        (UNSURE, 0, "the gate is inconclusive: 0 pass, 0 fail, 1 inconclusive; exit code 0"),
        (UNSURE, 0, "nor clearly exceeded: the exit code is 0 (1 with --strict)"),
        (
            [*UNSURE, "--strict"],
            1,
            "0 pass, 0 fail, 1 inconclusive; exit code 1",
        ),
        ([*UNSURE, "--strict", "--no-strict"], 0, "exit code 0"),
        ([], 2, "the gate has no limit"),
        (["--max", "nothing group 1"], 2, "matches no comparison"),
    ],
)
def test_a_gate_ends_with_its_code(runs, evenhand, options, code, words):
    found, said = evenhand("gate", runs["wide"].path, *options)
    assert found == code
    assert words in " ".join((said.out + said.err).split())


def test_annotations_and_junit_are_asked_for(runs, tmp_path, evenhand):
    limit = ["--max", "sentiment.negative group 0.1"]
    _, said = evenhand("gate", runs["wide"].path, *limit, "--github", "--junit", tmp_path / "g.xml")
    assert "::error title=evenhand%3A fails::sentiment.negative group" in said.out
    assert "<failure" in (tmp_path / "g.xml").read_text()
    code, said = evenhand("gate", runs["wide"].path, *limit, "--dry-run", "--junit", tmp_path / "dry.xml")
    assert code == 0
    assert not (tmp_path / "dry.xml").exists()


def test_power_says_what_it_takes(runs, evenhand):
    code, said = evenhand("power", runs["even"].path, "--gap", "0.05")
    assert code == 0
    assert "to detect a gap of 0.05 with 80 % power" in said.out
    _, guess = evenhand("power", "--gap", "0.1", "--samples", "1")
    assert "prompts per group" in guess.out
    assert "a share of 0.2 (--share)" in guess.out


def test_power_refuses_a_gap_that_shares_cannot_have(evenhand):
    code, said = evenhand("power", "--gap", "2")
    assert code == 2
    assert "at most 0.8: shares end at 0 and 1" in " ".join(said.err.split())


def test_merge_refuses_what_is_no_part(runs, evenhand):
    code, said = evenhand("merge", runs["even"].path)
    assert code == 2
    assert "is not a part of a run" in said.err


HOSTILE = ("::add-mask::men %0A##[group]x", "a\n::error::b\r::stop-commands::t", "x" * 60 + " ::warning::y")


@pytest.mark.parametrize("how", ["option", "environment"])
def test_no_name_of_a_group_becomes_a_command_of_the_runner(tmp_path, evenhand, monkeypatch, how):
    """Long names are folded, so that their parts stand at the start of lines of the table."""
    shares = dict.fromkeys(HOSTILE, 0.9) | {"men": 0.1}
    folder = run(tmp_path, "::debug::r", shares, prompts=40).path
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    limits = [word for name in ("negative", "positive") for word in ("--max", f"sentiment.{name} group 0.1")]
    if how == "option":
        code, said = evenhand("gate", folder, *limits, "--github")
        assert code == 1
    else:
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
        code, said = evenhand("gate", folder, *limits, "--github")
        assert code == 1
        _, score = evenhand("score", tmp_path / "::debug::r.csv", "--text", "text", "--group", "group")
        assert not _obeyed(score.out + score.err)
        _, report = evenhand("report", folder, "--format", "md")
        assert not _obeyed(report.out + report.err)
    obeyed = _obeyed(said.out)
    assert len(obeyed) == 6
    assert all(line.startswith("::error title=evenhand%3A fails::sentiment.") for line in obeyed)
    assert "##[" not in said.out + said.err
    assert not _obeyed(said.err)


def test_an_error_of_the_gate_is_escaped_too(runs, evenhand, monkeypatch):
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    code, said = evenhand("gate", runs["wide"].path, "--max", "##[group]x\n::error::y group 0.1", "--github")
    assert code == 2
    assert not _obeyed(said.out + said.err)


def _obeyed(output):
    lines = re.split(r"[\r\n]", output)
    return [line for line in lines if line.strip().startswith("::") or "##[" in line]
