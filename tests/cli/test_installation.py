"""What ``evenhand doctor`` says of extras."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from evenhand.cli import installation

ROOT = Path(__file__).resolve().parents[2]
FOR_DEVELOPERS = {"all", "bench", "dev", "notebook"}


def declared() -> dict[str, set[str]]:
    """Extra to the distributions it installs, as the package declares them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        extra: {re.split(r"[<>=\[]", line)[0] for line in lines}
        for extra, lines in project["optional-dependencies"].items()
        if extra not in FOR_DEVELOPERS
    }


def test_every_extra_a_user_may_install_is_looked_for() -> None:
    assert set(installation.OPTIONAL) == set(declared())
    for extra, names in declared().items():
        assert set(installation.OPTIONAL[extra]) <= names


def test_an_extra_that_is_not_there_is_told_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "starlette":
            raise PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(installation, "version", version)
    facts = installation.examine_installation()
    assert facts["extra annotate"] == 'not installed: pip install "evenhand[annotate]"'
    assert facts["extra ray"] == "ray 1.0"
