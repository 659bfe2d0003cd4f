"""What is tried again, after which pause, and when it is given up."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from tests.models.asking import answer_in_turn, ask
from tests.models.host import Host, error_reply, text_reply

from evenhand.models import endpoint
from evenhand.models.endpoint import parse_retry_after


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_what_may_pass_is_tried_again(host: Host, status: int) -> None:
    answer_in_turn(host, error_reply(status), error_reply(status), text_reply(" sang."))
    assert ask(host).text == " sang."
    assert len(host.asked) == 3


def test_a_host_that_keeps_failing_is_given_up(host: Host) -> None:
    host.answer = lambda asked: error_reply(500)
    done = ask(host)
    assert (done.text, done.failure) == (None, "http_500")
    assert len(host.asked) == 4


def test_the_pause_a_host_asks_for_is_kept(host: Host) -> None:
    answer_in_turn(host, error_reply(429, Retry_After="1"), text_reply(" sang."))
    started = time.monotonic()
    assert ask(host).text == " sang."
    assert time.monotonic() - started >= 1


def test_a_pause_that_is_too_long_is_not(host: Host) -> None:
    host.answer = lambda asked: error_reply(429, Retry_After="3600")
    assert ask(host).failure == "http_429"
    assert len(host.asked) == 1


def test_pauses_come_as_seconds_or_as_dates() -> None:
    asked_for = parse_retry_after
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert asked_for("7") == 7
    assert asked_for(later) == pytest.approx(29.5, abs=1.5)
    assert asked_for("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert asked_for("soon") is None
    assert asked_for("") is None
    assert asked_for("\u00b2") is None


def test_a_stalled_answer_times_out_and_is_tried_again(host: Host) -> None:
    stall = threading.Event()
    answer_in_turn(host, replace(text_reply("late"), stall=stall), text_reply(" sang."))
    assert ask(host, timeout=0.3).text == " sang."
    stall.set()


def test_a_host_that_only_stalls(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "ATTEMPTS", 2)
    stall = threading.Event()
    host.answer = lambda asked: replace(text_reply("late"), stall=stall)
    assert ask(host, timeout=0.1).failure == "timeout"
    stall.set()


def test_a_truncated_body_is_tried_again(host: Host) -> None:
    answer_in_turn(host, replace(text_reply("half"), cut=10), text_reply(" sang."))
    assert ask(host).text == " sang."
    host.answer = lambda asked: replace(text_reply("half"), cut=10)
    assert ask(host).failure == "connection"
