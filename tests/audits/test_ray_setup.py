"""The engine of a run, from its settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.audits.audit import prepare
from evenhand.audits.ray_pool import describe_engine, open_pool
from evenhand.config import resolve_config
from evenhand.core.errors import InputError


def test_an_address_without_the_engine_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert open_pool(resolve_config({"address": "auto"})) is None
    assert caplog.messages == ["the address auto is for --engine ray: the work is done on this machine"]
    caplog.clear()
    assert open_pool(resolve_config({})) is None
    assert not caplog.messages


def test_workers_without_the_engine_are_told(caplog: pytest.LogCaptureFixture) -> None:
    assert open_pool(resolve_config({"workers": 2})) is None
    assert caplog.messages == ["--workers is for --engine ray: the work is done in this process"]


def test_a_plan_has_one_worker_or_several() -> None:
    one, two = (resolve_config({"engine": "ray", "workers": number}) for number in (1, 2))
    assert describe_engine(one) == ["engine  ray at this machine, 1 worker"]
    assert describe_engine(two) == ["engine  ray at this machine, 2 workers"]


def test_a_cap_on_tokens_is_not_given_to_every_worker(tmp_path: Path) -> None:
    """Each would spend it again."""
    file = tmp_path / "evenhand.toml"
    file.write_text(
        '[model]\nname = "endpoint:http://localhost:1/v1#m"\noptions = { max_tokens_total = 100 }\n',
        encoding="utf-8",
    )
    with pytest.raises(InputError, match=r"^max_tokens_total, and the engine is ray\. Expected: a cap that"):
        prepare(config=file, engine="ray")
