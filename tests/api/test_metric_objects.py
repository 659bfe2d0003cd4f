"""Metrics that are given as objects are used as they are, whatever the registry knows."""

from __future__ import annotations

from types import SimpleNamespace

from evenhand.api.parts import with_earlier
from evenhand.api.settings import resolve
from evenhand.metrics.sentiment import Sentiment


def test_a_metric_without_an_entry_point_is_not_looked_up() -> None:
    settings = resolve({}, metrics={"names": ("mine",)})
    asked = {"mine": Sentiment()}
    folder = SimpleNamespace(manifest={})
    assert with_earlier(asked, folder, settings) == asked  # type: ignore[arg-type]


def test_what_a_run_held_before_is_added() -> None:
    settings = resolve({}, metrics={"names": ("mine",)})
    folder = SimpleNamespace(manifest={"metrics": {"sentiment": {}}})
    found = with_earlier({"mine": Sentiment()}, folder, settings)  # type: ignore[arg-type]
    assert sorted(found) == ["mine", "sentiment"]
