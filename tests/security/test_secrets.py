"""A key in the environment is in nothing a command leaves behind or prints."""

from __future__ import annotations

import subprocess
from pathlib import Path
from urllib.parse import quote

import polars as pl
import pytest
from tests.models.host import Asked, Host, Reply, error_reply, serving, text_reply
from tests.program import run
from tests.suites.doors import write_doors

KEY = "sk-canary/7d1f+Zq=="
FORMS = tuple(form.encode() for form in (KEY, quote(KEY, safe=""), KEY.replace("/", "\\/"), "canary"))


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a command writes stands under one roof; traces are shown."""
    monkeypatch.setenv("EVENHAND_API_KEY", KEY)
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("EVENHAND_DEBUG", "1")


def _audit(host: Host, folder: Path) -> subprocess.CompletedProcess[str]:
    """`evenhand audit` of the host."""
    options = ("--metrics", "sentiment", "--samples", "1", "--limit", "20", "--out", folder / "run")
    return run("audit", f"endpoint:{host.url}#m", *options, cwd=folder)


def _leaks(folder: Path, done: subprocess.CompletedProcess[str]) -> list[str]:
    """Where the key can be read."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    places = {str(path.relative_to(folder)): path.read_bytes() + str(path).encode() for path in files}
    places |= {"stdout": done.stdout.encode(), "stderr": done.stderr.encode()}
    return [name for name, content in places.items() if any(form in content for form in FORMS)]


def test_an_audit_that_ends_well_though_the_host_repeats_the_key_in_its_answers(tmp_path: Path) -> None:
    with serving() as host:
        host.answer = lambda asked: text_reply(f" was kind and sent {KEY} or {quote(KEY, safe='')}.")
        done = _audit(host, tmp_path)
        assert host.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "report.html").is_file()
    written = pl.read_parquet(tmp_path / "run" / "generations.parquet")["text"].to_list()
    assert set(written) == {" was kind and sent [key] or [key]."}
    assert _leaks(tmp_path, done) == []


COMMANDS = {
    "debias": "debias MODEL --mode naive --prompt Hello --samples 1 --vanilla",
    "debias-suite": "debias MODEL --mode naive --suite templates:doors.toml --metrics sentiment --samples 1",
    "tradeoff": "tradeoff MODEL --mode naive --strengths 0.5 --samples 1 --limit 2",
    "replicate": "replicate regard --tables figure_gaps --model MODEL --out run",
    "export-task": "export-task templates:doors.toml task --metrics sentiment",
}
"""Commands that hold the key in their environment, and write; MODEL is a host that asks for it."""
CASES = [(name, is_kind) for name in COMMANDS for is_kind in (True, False) if name != "export-task"]


@pytest.mark.parametrize(
    ("name", "is_kind"),
    [("export-task", True), *(pytest.param(*case, marks=pytest.mark.slow) for case in CASES)],
)
def test_other_commands(name: str, is_kind: bool, tmp_path: Path) -> None:
    """A kind host answers; the other one repeats the key in its refusal."""
    write_doors(tmp_path)
    with serving() as host:
        host.answer = (lambda asked: text_reply(" was kind.")) if is_kind else _repeating
        done = run(*COMMANDS[name].replace("MODEL", f"endpoint:{host.url}#m").split(), cwd=tmp_path)
        assert all(asked.headers["Authorization"] == f"Bearer {KEY}" for asked in host.asked)
        assert host.asked or name == "export-task"
    assert done.returncode in (0, 3) or not is_kind, done.stderr
    assert _leaks(tmp_path, done) == []


def _repeating(asked: Asked) -> Reply:
    """A host that says the key it was given wherever it can."""
    given = asked.headers["Authorization"]
    return error_reply(401, f"the key {given} and {quote(KEY, safe='')} is not known", code=given)


def test_a_host_that_repeats_the_key_in_its_refusal(tmp_path: Path) -> None:
    with serving() as host:
        host.answer = _repeating
        done = _audit(host, tmp_path)
    assert done.returncode != 0
    assert "EVENHAND_API_KEY" in done.stderr + done.stdout
    assert _leaks(tmp_path, done) == []


@pytest.mark.parametrize(
    "address",
    [
        "endpoint:http://user:{key}@localhost:1/v1#m",
        "endpoint:http://localhost:1/v1?key={key}#m",
        "endpoint:https://{key}@localhost#m",
        "http://user:{key}@localhost:1/v1",
        "endpoint://user:{key}@localhost:1#m",
    ],
)
def test_a_key_in_an_address_is_refused_and_not_repeated(tmp_path: Path, address: str) -> None:
    from evenhand.core import registry
    from evenhand.core.errors import EvenhandError

    with pytest.raises(EvenhandError) as caught:
        registry.create_model(address.format(key="canary-77"))
    assert "canary-77" not in str(caught.value)


def test_the_password_of_a_database_is_not_shown(tmp_path: Path) -> None:
    pytest.importorskip("pg8000")
    from tests.annotate.study_parts import make_study

    from evenhand.annotate.database import Database
    from evenhand.core.errors import EvenhandError

    study = make_study(tmp_path / "study", items=2)
    with (
        pytest.raises(EvenhandError) as caught,
        Database(study, "postgresql://me:canary-77@127.0.0.1:1/db", patience=0.0),
    ):
        pass
    assert "canary-77" not in str(caught.value)
