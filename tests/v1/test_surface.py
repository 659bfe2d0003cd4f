"""What users can name is still there. A change that only adds passes; what goes or changes is named."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import program
from tests.v1 import surface
from tests.v1.commands import FIXTURES, ROOT
from tests.v1.held import ALLOWED, check, pinned

import evenhand


@pytest.mark.parametrize("part", ["signatures", "commands", "entry_points"])
def test_nothing_is_lost(part: str) -> None:
    check(part, getattr(surface, part)())


def test_action_hooks_and_their_defaults_stay() -> None:
    pytest.importorskip("yaml")
    check("integrations", surface.integrations())


def test_public_names_import_and_have_their_members() -> None:
    """Old names go on importing; a note of deprecation is allowed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        check("names", surface.members(pinned("names")))


def test_tables_keep_columns_and_types() -> None:
    old = pinned("tables")
    check("tables", surface.tables(old))


def test_every_option_is_in_the_help_of_its_command(tmp_path: Path) -> None:
    """The reference says so too; this asks the program itself."""
    changes = []
    for command, parameters in pinned("commands").items():
        if command == "":
            continue
        text = program.run(*command.split(), "--help", cwd=tmp_path).stdout
        names = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
        options = {name for name in parameters if name.startswith("--")}
        cut = {name for name in options if any(one in name for one in names)}
        changes += [f"commands > {command} > {name}" for name in sorted(options - names - cut)]
    assert [change for change in changes if change not in ALLOWED] == []


def test_the_settings_file_still_has_every_key(tmp_path: Path) -> None:
    assert program.run("init", cwd=tmp_path).returncode == 0
    check("settings", surface.settings(tmp_path / "evenhand.toml"))


def test_every_key_of_a_settings_file_is_read(tmp_path: Path) -> None:
    """All of them at once, and one that never was."""
    lines = [
        line
        for section, values in pinned("settings").items()
        for line in (f"[{section}]", *(f"{key} = {_toml(value)}" for key, value in _given(section, values)))
    ]
    (tmp_path / "all.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = program.run("audit", "stub", "--config", "all.toml", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "all.toml").write_text("[generation]\nwarmth = 1\n", encoding="utf-8")
    refused = program.run("audit", "stub", "--config", "all.toml", "--dry-run", cwd=tmp_path)
    assert refused.returncode == 2
    assert "generation.warmth" in refused.stderr


def _given(section: str, values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The values of the file, but for those that a stub model or this suite has no use for."""
    other = {
        ("generation", "preset"): "bold-bert",
        ("mitigation", "name"): "replacement:naive",
        ("mitigation", "options"): {"share": 0.5},
        ("compare", "baselines"): {},
        ("execution", "workers"): 2,
        ("execution", "address"): "auto",
    }
    yield from ((key, other.get((section, key), value)) for key, value in values.items())
    yield from ((key, value) for (at, key), value in other.items() if at == section and key not in values)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)


def test_every_preset_of_a_paper_is_known(tmp_path: Path) -> None:
    for preset in ("bold-gpt2", "bold-ctrl", "bold-bert", "regard", "political"):
        done = program.run("audit", "stub", "--preset", preset, "--limit", "2", "--dry-run", cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_installed_names_are_listed_and_have_a_card(tmp_path: Path) -> None:
    points = pinned("entry_points")
    shown = program.run("list", cwd=tmp_path).stdout
    for kind in ("suites", "models", "metrics", "mitigations"):
        for name in points[f"evenhand.{kind}"]:
            assert name in shown
            assert program.run("show", name, cwd=tmp_path).returncode == 0, name


def test_pytest_has_the_option_and_the_fixtures(request: pytest.FixtureRequest) -> None:
    assert request.config.getoption("--evenhand-run") is None
    assert request.config.getini("evenhand_run") == ""
    folder = Path(__file__).parent / "fixtures" / "work" / "audit"
    check_gap = request.getfixturevalue("assert_gap")
    check_gap(evenhand.Run.open(folder), "sentiment.negative", axis="origin", below=0.9)


def test_no_bar_is_dropped_or_lowered() -> None:
    """Bars by the place of their figure in a result, so that they may be worded anew."""
    new = surface.bars()
    changes = []
    for name, old in pinned("bars").items():
        item = f"bars > {name}"
        if item in ALLOWED:
            continue
        bar = new.get(name)
        if bar is None:
            changes.append(f"{item} is gone: {old['work']}")
            continue
        sign = -1 if old["at_most"] else 1
        if sign * bar["bar"] < sign * old["bar"]:
            changes.append(f"{item} was {old['bar']} and is {bar['bar']}")
        # Ratios are the machine's own; rates and seconds are not compared.
        is_ratio = old["unit"] == "x" and old["machine"] == "cpu" and old["figure"] is not None
        if is_ratio and (bar["figure"] is None or _fell(old, bar["figure"])):
            changes.append(f"{item} was measured at {old['figure']} and is {bar['figure']}")
    assert changes == []


def _fell(old: Any, figure: float) -> bool:
    return figure > old["figure"] * 1.2 if old["at_most"] else figure < old["figure"] * 0.8


def test_no_fault_fuzz_or_security_test_is_deleted() -> None:
    """They may move to another file; their names stay."""
    here = surface.test_names(ROOT / "tests")
    missing = [
        f"guards > {folder} > {name}"
        for folder, names in pinned("guards").items()
        for name in names
        if name not in here and f"guards > {folder} > {name}" not in ALLOWED
    ]
    assert missing == []


def test_what_is_allowed_to_change_was_there() -> None:
    """A line of ``allowed.json`` that names nothing of version 1 allows nothing."""
    known = {path for file in FIXTURES.glob("*.json") for path in _paths(file.stem)}
    assert sorted(set(ALLOWED) - known) == []


def _paths(name: str) -> Iterator[str]:
    def walk(value: Any, path: str) -> Iterator[str]:
        yield path
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from walk(inner, f"{path} > {key or 'evenhand'}")
        elif isinstance(value, list):
            yield from (f"{path} > {one}" for one in value)

    return walk(pinned(name), name)
