"""The wire format of OpenAI-compatible hosts: request bodies, and how responses are read."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.http import LOOPBACK, HttpConnection, redact_key, sanitize_message
from evenhand.core.records import Finish, GenerationSpec

INSTRUCTION: Final = (
    "Continue the user's text from where it stops. Write only the continuation, in the same voice, "
    "without repeating the text and without comments."
)
"""The system message for chat models, which would otherwise reply to the text instead of continuing it."""

OPTIONAL: Final = ("top_k", "repetition_penalty", "repeat_penalty")
"""Fields beyond OpenAI's own, which vLLM and llama.cpp accept and other hosts may reject."""

_ACCEPTED: Final = "endpoint:URL#MODEL, such as endpoint:http://localhost:8000/v1#my-model"
_CHAT: Final = "/chat/completions"
_PLAIN: Final = "/completions"
_FINISHES: Final[Mapping[object, Finish]] = {"stop": "stop", "length": "length"}
_LARGEST_COUNT: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class EndpointTarget:
    """One model of one host."""

    url: str
    """The full URL of requests, with ``/completions``."""
    model: str
    chat: bool
    is_local: bool

    @property
    def name(self) -> str:
        """The name without the part that distinguishes the two interfaces."""
        return f"{self.url.removesuffix(_CHAT if self.chat else _PLAIN)}#{self.model}"


class HostResponse(NamedTuple):
    """A host's response to one request: a text, or why there is none."""

    text: str | None
    finish: Finish | None
    failure: str | None = None
    prompt_tokens: int | None = None
    new_tokens: int | None = None
    served_by: Mapping[str, str] = {}
    """The model's full name and fingerprint, if the host reports them."""


def parse_target(name: str, *, chat: bool | None) -> EndpointTarget:
    """The target of ``URL#MODEL``; if ``chat`` is None, the URL decides, by default plain completions."""
    address, _, model = name.partition("#")
    parts = _split(address)
    # Without a scheme, user info is not where URL parsers expect it: u:PW@h reads as the scheme u.
    if "@" in (parts.netloc or address):
        raise InputError(
            f"the endpoint of model {model!r} holds a user name or a password",
            expected=f"{_ACCEPTED}; keys by environment variable only",
            fix="set the key in EVENHAND_API_KEY and remove it from the URL",
        )
    if parts.query or "?" in address:
        raise InputError(
            f"the endpoint of model {model!r} has a query after '?'",
            expected=f"{_ACCEPTED}, without a query",
            fix="remove the part after '?' from the URL",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not model:
        problem = f"{name!r} is not an endpoint" if address else "the endpoint has no URL"
        raise InputError(problem, expected=_ACCEPTED, fix="write the URL, a # and the model")
    path = parts.path.rstrip("/")
    says_chat = True if path.endswith(_CHAT) else False if path.endswith(_PLAIN) else None
    if chat is not None and says_chat is not None and chat != says_chat:
        raise InputError(
            f"the URL ends in {_CHAT if says_chat else _PLAIN} and chat is {chat}",
            expected="one of the two",
            fix="remove the option chat",
        )
    as_chat = bool(says_chat if chat is None else chat)
    base = path.removesuffix(_CHAT if says_chat else _PLAIN) if says_chat is not None else path or "/v1"
    url = f"{parts.scheme}://{parts.netloc}{base}{_CHAT if as_chat else _PLAIN}"
    return EndpointTarget(url, model, as_chat, parts.hostname in LOOPBACK)


def _split(address: str) -> SplitResult:
    """The parts of a URL. An invalid URL is not shown: a password with a # in it would end up here."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        raise InputError(
            "the endpoint has an invalid host or port",
            expected=f"{_ACCEPTED}; keys by environment variable only",
            fix="check the part between // and the next /",
        ) from None
    return parts


def request_body(target: EndpointTarget, prompt: str, spec: GenerationSpec, *, seed: int) -> bytes:
    """The request body. Fields with the neutral value in the spec are not sent."""
    body: dict[str, Json] = {
        "model": target.model,
        "max_tokens": spec.max_new_tokens,
        "temperature": spec.temperature,
        "top_p": spec.top_p,
        "seed": seed,
    }
    if spec.top_k:
        body["top_k"] = spec.top_k
    if spec.repetition_penalty != 1:
        body |= dict.fromkeys(("repetition_penalty", "repeat_penalty"), spec.repetition_penalty)
    if target.chat:
        body["messages"] = [{"role": "system", "content": INSTRUCTION}, {"role": "user", "content": prompt}]
    else:
        body["prompt"] = prompt
    return json.dumps(body).encode("utf-8")


def read_answer(target: EndpointTarget, content: bytes, *, prompt: str, secret: str = "") -> HostResponse:
    """Parse a successful response; an invalid body becomes the failure ``bad_answer``.

    Half a character (a lone surrogate, which JSON allows and no table accepts) becomes U+FFFD, and is dropped
    at the end, as local models drop it there. ``secret`` is removed from the text before any cut, and from
    the host's report on itself.
    """
    try:
        body = json.loads(content)
        choice = body["choices"][0]
        message = choice["message"] if target.chat else choice
        refusal = message.get("refusal")
        text = message.get("content" if target.chat else "text")
        finish = choice.get("finish_reason")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return HostResponse(None, None, "bad_answer")
    tokens = _count(body, "prompt_tokens"), _count(body, "completion_tokens")
    if finish == "content_filter":
        return HostResponse(None, None, "content_filter", *tokens)
    if refusal:
        return HostResponse(None, None, "refused", *tokens)
    if not isinstance(text, str):
        return HostResponse(None, None, "bad_answer", *tokens)
    if target.chat:
        text = text.removeprefix(prompt)
    finish_code = _FINISHES.get(finish, "stop") if isinstance(finish, str) else "stop"
    text = redact_key(_whole(text), secret=secret)
    names = {"model": body.get("model"), "fingerprint": body.get("system_fingerprint")}
    served_by = {
        key: sanitize_message(name, secret=secret) for key, name in names.items() if isinstance(name, str)
    }
    return HostResponse(text, finish_code, None, *tokens, served_by=served_by)


def error_message(content: bytes, *, secret: str = "") -> tuple[str, str]:
    """The code and the message of an error response, as far as it has them, sanitized."""
    try:
        error = json.loads(content)["error"]
        code, message = str(error.get("code") or ""), str(error.get("message") or "")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        code, message = "", content.decode("utf-8", "replace")
    return sanitize_message(code, secret=secret), sanitize_message(message, secret=secret)


def _count(body: Mapping[str, object], name: str) -> int | None:
    """A token count that a table can hold; JSON's true is an int in Python, but not a count."""
    usage = body.get("usage")
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if type(count) is int and 0 <= count <= _LARGEST_COUNT else None


def _whole(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").rstrip("\ufffd")
    return text


LONGEST_WAIT: Final = 60.0
"""Seconds; a host that asks for a longer pause is not waited for."""


@dataclass(eq=False)
class RetryError(Exception):
    """A failure that may be temporary."""

    code: str
    wait: float | None = None


def close_overdue(
    connections: Sequence[HttpConnection], workers: Sequence[threading.Thread], *, seconds: float
) -> None:
    """Close overdue connections of all workers while any is busy; one thread instead of a timer per request.

    A response may therefore take a tenth longer than ``seconds``, or one second longer.
    """
    while any(worker.is_alive() for worker in workers):
        time.sleep(min(1.0, seconds / 10))
        for connection in tuple(connections):
            connection.close_if_overdue()


@dataclass(slots=True)
class TokenBudget:
    """Tokens spent, including those reserved by open requests, against a cap."""

    cap: int | None
    spent: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, tokens: int) -> bool:
        """Whether that many more tokens may be spent; if so, they are counted at once."""
        with self.lock:
            if self.cap is not None and self.spent + tokens > self.cap:
                return False
            self.spent += tokens
            return True

    def charge(self, reserved: int, answer: HostResponse) -> None:
        """Replace the reservation by the usage that the host reports; a failure uses nothing."""
        counts = [count for count in (answer.prompt_tokens, answer.new_tokens) if count is not None]
        if counts or answer.text is None:
            with self.lock:
                self.spent += sum(counts) - reserved


def retry_pause(error: Exception) -> bool | float:
    """Whether an error is worth a retry, or the pause in seconds that the host asked for."""
    if not isinstance(error, RetryError) or error.wait is None:
        return isinstance(error, RetryError)
    return error.wait if error.wait <= LONGEST_WAIT else False


def parse_retry_after(asked: str) -> float | None:
    """The pause that a host asks for, in seconds; None if the header is missing or invalid."""
    if asked.isascii() and asked.isdigit():
        return float(asked)
    try:
        wait = (parsedate_to_datetime(asked) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError):
        return None
    return max(0.0, wait)
