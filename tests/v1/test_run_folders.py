"""What version 1 wrote can be read, reported, compared, merged, gated and resumed, and is written again."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import polars as pl
import pytest
from tests import program
from tests.v1.commands import COMMANDS, WORK, Command
from tests.v1.held import check, pinned
from tests.v1.outputs import CLOSE, CLOSE_OF_MODELS, compare_file, compare_tables, files
from tests.v1.surface import keys_of

import evenhand

RUNS = sorted(file.parent.relative_to(WORK).as_posix() for file in WORK.rglob("run.json"))
READABLE = [name for name in RUNS if any((WORK / name).glob("*.parquet"))]
PAGES = sorted(pinned("report_keys"))
"""Runs whose report has JSON."""
MADE = [command for command in COMMANDS if command.writes]
MEASURED = ("audit", "audit-config", "audit-builtin", "score", "merged", "debias")
"""Audits and scored texts: what gates, comparisons and other tools take."""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for the module: what is compiled there is compiled once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _shared_cache(_own_cache: None, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_CACHE", str(cache))


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of all that version 1 wrote, and of what it read."""
    folder = tmp_path_factory.mktemp("v1") / "work"
    shutil.copytree(WORK, folder)
    for run, inputs in (("corpus", "inputs"), ("collected", "sources")):
        for source in manifest(folder / run)["identity"][inputs]:
            # A file of a corpus is known by its size and date, and a checkout has another date.
            os.utime(folder / source["path"], ns=(0, int(source["version"])))
    return folder


def manifest(folder: Path) -> dict:
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def called(command: Command) -> str:
    return command.line[:50]


def closeness(command: Command) -> float:
    return CLOSE_OF_MODELS if command.torch else CLOSE


@pytest.mark.parametrize("command", [one for one in MADE if one.writes != "study"], ids=called)
def test_a_command_writes_what_it_wrote(command: Command, work: Path) -> None:
    """The same inputs, an empty folder: tables, columns, values and identity are those of version 1."""
    arguments = command.arguments
    place = len(arguments) - 1 - arguments[::-1].index(command.writes)
    (work / "anew").mkdir(exist_ok=True)
    arguments[place] = f"anew/{command.writes}"
    done = program.run(*arguments, cwd=work)
    assert done.returncode == command.code, done.stderr
    old, new = WORK / command.writes, work / "anew" / command.writes
    for file in files(old):
        compare_file(file, new / file.relative_to(old) if old.is_dir() else new, close=closeness(command))
    if (old / "run.json").exists():
        assert manifest(new)["identity"] == manifest(old)["identity"]
        # Scripts read the manifest: its keys stay, what is prose in it may be worded anew.
        assert set(keys_of(manifest(old))) <= set(keys_of(manifest(new)))
        assert finished(new) == finished(old)


def finished(folder: Path) -> list[str]:
    """The names of finished shards, which are the keys of what was written in them."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.glob("shards/*/*.parquet"))


@pytest.mark.parametrize("command", COMMANDS, ids=called)
def test_the_same_command_goes_on_or_says_why_not(command: Command, work: Path) -> None:
    """In the folder that version 1 left: its answer is pinned, and its tables stay as they are."""
    done = program.run(*command.arguments, cwd=work)
    assert done.returncode == command.again, done.stderr
    assert command.says in done.stderr + done.stdout
    old = WORK / command.writes
    if command.writes and command.writes != "evenhand.toml":
        for file in files(old):
            same = work / command.writes / file.relative_to(old) if old.is_dir() else work / command.writes
            compare_file(file, same, close=CLOSE)
    if (old / "run.json").exists():
        assert manifest(work / command.writes)["identity"] == manifest(old)["identity"]


@pytest.mark.parametrize("name", READABLE)
def test_every_table_is_read(name: str) -> None:
    run = evenhand.Run.open(WORK / name)
    for file in (WORK / name).glob("*.parquet"):
        compare_tables(pl.read_parquet(file), run.table(file.stem), close=CLOSE)
        assert run.scan(file.stem).collect_schema().names() == run.table(file.stem).columns


@pytest.mark.parametrize("name", PAGES)
def test_a_report_is_written_again_with_every_key(name: str, work: Path) -> None:
    forms = ("--format", "html", "--format", "json", "--format", "md")
    done = program.run("report", name, *forms, cwd=work)
    assert done.returncode == 0, done.stderr
    report = json.loads((work / name / "report.json").read_text(encoding="utf-8"))
    check(f"report_keys > {name}", keys_of(report), pinned("report_keys")[name])
    assert (work / name / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("form", ["lm-eval", "model-card"])
def test_a_report_for_another_tool(form: str, work: Path) -> None:
    done = program.run("report", "audit", "--format", form, cwd=work)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", MEASURED)
def test_a_gate_holds_a_run_against_limits(name: str, work: Path) -> None:
    first = evenhand.Run.open(WORK / name).table("comparisons").row(0, named=True)
    limit = f"{first['metric']}.{first['output']} {first['axis']} 1000"
    passed = program.run("gate", name, "--max", limit, cwd=work)
    assert passed.returncode == 0, passed.stderr


def test_a_gate_holds_a_run_against_the_last_release(work: Path) -> None:
    limit = ("--worse", "gender_polarity.unigram origin 1000", "--baseline-run", "audit-config")
    done = program.run("gate", "audit", *limit, cwd=work)
    assert done.returncode == 0, done.stderr


def test_runs_of_both_versions_are_compared_and_merged(work: Path) -> None:
    suite = ("--suite", "templates:wide.toml", "--samples", "1", "--metrics", "sentiment")
    part = program.run("audit", "stub", *suite, "--shard", "2/2", "--out", "part-new", cwd=work)
    assert part.returncode == 0, part.stderr
    merged = program.run("merge", "part-1", "part-new", "--out", "merged-new", cwd=work)
    assert merged.returncode == 0, merged.stderr
    old = evenhand.Run.open(WORK / "merged").table("comparisons")
    compare_tables(old, evenhand.Run.open(work / "merged-new").table("comparisons"), close=CLOSE)
    compared = program.run("compare", "merged", "merged-new", "--out", "compared-new", cwd=work)
    assert compared.returncode == 0, compared.stderr


def test_a_run_grows(work: Path) -> None:
    """More samples and another metric; the texts that are there stay."""
    shutil.copytree(WORK / "audit-config", work / "grown")
    grown = ("audit", "stub", "--config", "run.toml", "--seed", "3", "--samples", "3", "--out", "grown")
    done = program.run(*grown, "--metrics", "sentiment,gender_polarity,norms", cwd=work)
    assert done.returncode == 0, done.stderr
    old = evenhand.Run.open(WORK / "audit-config").table("generations")
    new = evenhand.Run.open(work / "grown").table("generations")
    assert new.height == old.height // 2 * 3
    assert old.join(new, on=["id", "text"], how="anti").height == 0


def test_an_unfinished_run_is_finished(work: Path) -> None:
    """Killed before its tables were joined: only shards are there."""
    shutil.copytree(WORK / "audit-config", work / "killed", ignore=shutil.ignore_patterns("*.parquet"))
    shutil.copytree(WORK / "audit-config" / "shards", work / "killed" / "shards", dirs_exist_ok=True)
    line = ("audit", "stub", "--config", "run.toml", "--seed", "3", "--out", "killed")
    done = program.run(*line, cwd=work)
    assert done.returncode == 0, done.stderr
    for table in ("generations", "scores", "comparisons", "groups"):
        old = evenhand.Run.open(WORK / "audit-config").table(table)
        compare_tables(old, evenhand.Run.open(work / "killed").table(table), close=CLOSE)


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("audit stub --suite templates:suite.toml --samples 2 --pairs --seed 9 --out audit", "seed"),
        ("audit stub --suite templates:wide.toml --samples 2 --out audit", "suites"),
        ("score human.csv --group label=label --metrics sentiment --out score", "inputs"),
        ("corpus old.txt --workers 1 --out corpus", "inputs"),
        ("probe replay:predictions.csv --pairs pairs.csv --level 0.9 --out probe", "level"),
    ],
)
def test_another_command_is_refused_with_the_difference(line: str, field: str, work: Path) -> None:
    done = program.run(*line.split(), cwd=work)
    assert done.returncode == 2
    assert "belongs to another configuration" in done.stderr
    assert field in done.stderr
