"""The order of work on a device around a recording, on streams that only say what they are asked."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch

from evenhand.generation.decoders import _warm_up


def test_a_step_that_fails_is_waited_for_before_its_tables_are_used_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log: list[str] = []

    class Stream:
        def __init__(self, name: str) -> None:
            self.name = name

        def wait_stream(self, other: Stream) -> None:
            log.append(f"{self.name} waits for {other.name}")

    def step() -> None:
        log.append("step")
        raise ValueError("no such operation")

    main = Stream("main")
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: main)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: Stream("side"))
    monkeypatch.setattr(torch.cuda, "stream", nullcontext)
    with pytest.raises(ValueError, match="no such operation"):
        _warm_up(step)
    assert log == ["side waits for main", "step", "main waits for side"]
