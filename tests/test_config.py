"""The settings file and the declared options say the same."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

from evenhand.config import resolve_config
from evenhand.core.files import asset_path


def test_the_written_settings_file_names_every_setting() -> None:
    text = asset_path("settings", "evenhand.toml").read_text(encoding="utf-8")
    sections: Mapping[str, str] = dict(re.findall(r"(?ms)^\[(\w+)\](.*?)(?=^\[|\Z)", text))
    missing = {
        f"{section}.{name}"
        for section, values in resolve_config({}).record().items()
        for name in values
        if not re.search(rf"\b{name}\b", sections[section])
    }
    assert missing == set()


def test_its_commented_lines_are_valid_settings_with_the_defaults_that_are_declared() -> None:
    text = asset_path("settings", "evenhand.toml").read_text(encoding="utf-8")
    given = tomllib.loads(re.sub(r"(?m)^# (?=[\w.]+ = )", "", text))
    declared = resolve_config({}).record()
    for section, name in (("compare", "level"), ("compare", "test"), ("execution", "max_failures")):
        assert given[section][name] == declared[section][name]
    assert given["suite"]["mask"] == declared["suite"]["mask"]


def test_a_file_and_a_call_resolve_to_the_same_record() -> None:
    settings = resolve_config(
        {"level": 0.9, "strata": ["template"], "baseline": {"gender": "x"}, "workers": 3}
    )
    record = settings.record()
    assert record["compare"]["baselines"] == {"gender": "x"}
    assert record["compare"]["strata"] == ["template"]
    assert record["execution"]["workers"] == 3
    assert settings.options["level"] == 0.9
    always = {"mask": "paper", "baselines": {}, "level": 0.95, "correction": "bh"}
    assert resolve_config({}).compare_identity() == always
    assert settings.compare_identity().keys() == {*always, "strata"}
