"""Plug-ins that were written for version 1 go on working: its example, and a file of a stranger.

A protocol that was renamed may warn (DeprecationWarning), for one release.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

import polars as pl
import pytest
from tests import program
from tests.v1.commands import FIXTURES

import evenhand
from evenhand.testing import check_metric, check_model, check_suite

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

POINTS: Final = """[evenhand.metrics]
exclamations = evenhand_example.exclamations:Exclamations
questions = tests.v1.third_party:Questions
lengths = tests.v1.third_party:Lengths

[evenhand.suites]
visitors = evenhand_example.visitors:Visitors
guests = tests.v1.third_party:Guests

[evenhand.models]
parrot = tests.v1.third_party:Parrot

[evenhand.mitigations]
calm = tests.v1.third_party:Calm
ban = tests.v1.third_party:Ban
"""


@pytest.fixture(scope="module")
def theirs() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from tests.v1 import third_party
    return third_party


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both packages, as ``pip`` would have installed them: a folder that names their entry points."""
    place = tmp_path / "site"
    about = place / "strangers-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: strangers\nVersion: 1\n", encoding="utf-8")
    (about / "entry_points.txt").write_text(POINTS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(FIXTURES))
    monkeypatch.syspath_prepend(str(place))
    return


def test_they_keep_the_contracts(theirs: ModuleType) -> None:
    check_metric(theirs.Questions())
    check_metric(theirs.Lengths())
    check_suite(theirs.Guests())
    check_model(theirs.Parrot())
    check_model(theirs.Calm().apply(theirs.Parrot()))


def test_objects_are_taken_in_place_of_names(theirs: ModuleType, tmp_path: Path) -> None:
    options = {"suite": theirs.Guests(), "metrics": [theirs.Questions()], "samples": 2}
    plain = evenhand.audit(theirs.Parrot(), out=tmp_path / "plain", **options)
    shares = plain.table("groups").filter(pl.col("output") == "asking")
    # Of two samples about a foreigner the second one asks; nobody asks about a neighbour.
    assert dict(shares.select("group", "value").iter_rows()) == {"foreign": 0.5, "local": 0.0}
    assert plain.table("explanations").filter(pl.col("metric") == "questions").height > 0
    calmed = evenhand.audit(theirs.Calm().apply(theirs.Parrot()), out=tmp_path / "calm", **options)
    shares = calmed.table("groups").filter(pl.col("output") == "asking")
    assert set(shares["value"]) == {0.0}
    assert calmed.manifest["identity"]["model"]["options"] == {"mitigation": "calm", "mark": "."}


@pytest.mark.usefixtures("_installed")
def test_installed_ones_are_names_of_the_command_line(tmp_path: Path) -> None:
    shown = program.run("list", cwd=tmp_path).stdout
    for name in ("exclamations", "visitors", "questions", "guests", "parrot", "calm"):
        assert name in shown
    line = ("audit", "parrot", "--suite", "guests,visitors", "--metrics", "questions,exclamations")
    mitigated = ("--mitigate", "calm", "--mitigate-option", "mark=!", "--samples", "2", "--out", "run")
    done = program.run(*line, *mitigated, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = evenhand.Run.open(tmp_path / "run")
    assert set(run.table("generations")["text"]) == {" people said so!"}
    assert set(run.table("scores").filter(pl.col("metric") == "exclamations")["label"]) == {"loud"}
    assert program.run("show", "questions", cwd=tmp_path).returncode == 0
    refused = program.run("audit", "parrot", "--suite", "guests", "--metrics", "lengths", cwd=tmp_path)
    assert refused.returncode == 2
    assert "one number for a set of texts" in refused.stderr


@pytest.mark.usefixtures("_installed")
def test_a_steering_changes_the_next_token(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    line = (
        "audit",
        "builtin",
        "--suite",
        "guests",
        "--limit",
        "4",
        "--samples",
        "2",
        "--max-new-tokens",
        "8",
    )
    rest = ("--metrics", "questions", "--stop", "none", "--device", "cpu")
    for name, more in (("plain", ()), ("ban", ("--mitigate", "ban", "--mitigate-option", "words= the"))):
        done = program.run(*line, *rest, *more, "--out", name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    texts = {name: evenhand.Run.open(tmp_path / name).table("generations") for name in ("plain", "ban")}
    words = {name: " ".join(table["text"]).split() for name, table in texts.items()}
    assert "the" in words["plain"]
    assert "the" not in words["ban"]
