"""What bounds the requests to a host: attempts, pauses, and a cap on tokens."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from evenhand.core.wire import Wire
from evenhand.models.openai_wire import Answer

LONGEST_WAIT: Final = 60.0
"""Seconds; a host that asks for a longer pause is not waited for."""


class AgainError(Exception):
    """A failure that may pass."""

    def __init__(self, code: str, *, wait: float | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.wait = wait


def cut_late(wires: Sequence[Wire], workers: Sequence[threading.Thread], *, seconds: float) -> None:
    """Watch the wires of all workers while one of them is at work; one thread, not a timer a request.

    An answer may so take a tenth longer than ``seconds``, or one second longer.
    """
    while any(worker.is_alive() for worker in workers):
        time.sleep(min(1.0, seconds / 10))
        for wire in tuple(wires):
            wire.cut_if_late()


@dataclass(slots=True)
class TokenBudget:
    """Tokens spent, those under way included, against a cap."""

    cap: int | None
    spent: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, tokens: int) -> bool:
        """Whether that many more may be spent; they are counted at once."""
        with self.lock:
            if self.cap is not None and self.spent + tokens > self.cap:
                return False
            self.spent += tokens
            return True

    def settle(self, reserved: int, answer: Answer) -> None:
        """Replace what was reserved by what was used, as far as the host tells; a failure used nothing."""
        told = answer.prompt_tokens is not None or answer.new_tokens is not None
        used = (answer.prompt_tokens or 0) + (answer.new_tokens or 0)
        if told or answer.text is None:
            with self.lock:
                self.spent += used - reserved


def pause_after(error: Exception) -> bool | float:
    """Whether an error is worth another attempt, or the seconds the host asked for."""
    if not isinstance(error, AgainError):
        return False
    if error.wait is None:
        return True
    return error.wait if error.wait <= LONGEST_WAIT else False


def retry_after(asked: str) -> float | None:
    """The pause a host asks for, in seconds; None where it does not, or not legibly."""
    if asked.isascii() and asked.isdigit():
        return float(asked)
    try:
        wait = (parsedate_to_datetime(asked) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError):
        return None
    return max(0.0, wait)
