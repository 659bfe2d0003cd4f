"""The engine of a run, from its settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.api.audit import prepare
from evenhand.api.cluster import engine_line, open_pool
from evenhand.api.settings import resolve
from evenhand.core.errors import InputError


def test_an_address_without_the_engine_is_told(caplog: pytest.LogCaptureFixture) -> None:
    assert open_pool(resolve({"address": "auto"})) is None
    assert caplog.messages == ["the address auto is for --engine ray: the work is done on this machine"]
    caplog.clear()
    assert open_pool(resolve({})) is None
    assert not caplog.messages


def test_workers_without_the_engine_are_told(caplog: pytest.LogCaptureFixture) -> None:
    assert open_pool(resolve({"workers": 2})) is None
    assert caplog.messages == ["--workers is for --engine ray: the work is done in this process"]


def test_a_plan_has_one_worker_or_several() -> None:
    one, two = (resolve({"engine": "ray", "workers": number}) for number in (1, 2))
    assert engine_line(one) == ["engine  ray at this machine, 1 worker"]
    assert engine_line(two) == ["engine  ray at this machine, 2 workers"]


def test_a_cap_on_tokens_is_not_given_to_every_worker(tmp_path: Path) -> None:
    """Each would spend it again."""
    file = tmp_path / "evenhand.toml"
    file.write_text(
        '[model]\nname = "endpoint:http://localhost:1/v1#m"\noptions = { max_tokens_total = 100 }\n',
        encoding="utf-8",
    )
    with pytest.raises(InputError, match=r"^max_tokens_total, and the engine is ray\. Accepted: a cap that"):
        prepare(config=file, engine="ray")
