"""Calibration as part of a recorded step: the same texts as by plain calls."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.mitigations.test_calibration_steering import SPEC, steering
from tests.models.loops import requests, texts

from evenhand.core.records import GenerationSpec
from evenhand.generation.decoders import GraphCache
from evenhand.generation.scheduler import SamplingLoop
from evenhand.mitigations.calibration import Mode
from evenhand.models.local import CausalModel

CHANGES: list[dict[str, float]] = [{}, {"top_k": 0}, {"repetition_penalty": 1.2}]


def written(loop: SamplingLoop, spec: GenerationSpec) -> dict[tuple[str, int], str | None]:
    return texts(list(loop.run(requests(2), spec)))


@pytest.mark.parametrize("mode", ["embedding", "classifier"])
@pytest.mark.parametrize("change", CHANGES, ids=["top-k", "all", "penalty"])
def test_calibrated_texts_are_those_of_plain_calls(
    small: CausalModel, mode: Mode, change: dict[str, float]
) -> None:
    spec = replace(SPEC, **change)  # type: ignore[arg-type]
    plain = replace(small.loop, batch=3, steering=steering(small, mode, sigma=0.5))
    recording = replace(plain, graph_cache=GraphCache(can_capture=True))
    found = written(recording, spec)
    assert found == written(plain, spec) != written(small.loop, spec)
    # What was remembered of those texts does not reach the next ones.
    assert written(recording, spec) == found


def test_no_strength_changes_nothing(small: CausalModel) -> None:
    idle = replace(small.loop, steering=steering(small, strength=0), graph_cache=GraphCache(can_capture=True))
    assert written(idle, SPEC) == written(small.loop, SPEC)


def test_texts_that_begin_as_others_end_are_not_recorded(small: CausalModel) -> None:
    assert steering(small, carry=True).begin(keep=40).flow() is None
    carrying = replace(small.loop, steering=steering(small, carry=True))
    recording = replace(carrying, graph_cache=GraphCache(can_capture=True))
    assert written(recording, SPEC) == written(carrying, SPEC)
