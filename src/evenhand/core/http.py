"""HTTP hosts of models and classifiers: API keys, connections, and messages made safe to show."""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from evenhand._version import __version__
from evenhand.core.errors import InputError

if TYPE_CHECKING:
    import ssl

    import httpx

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Host names, as `urllib.parse` spells them, allowed in offline runs and for sending a key without TLS."""
_LONGEST_MESSAGE: Final = 300
_SHORTEST_KEY: Final = 8
"""Shorter keys are placeholders for hosts that need none (``EMPTY``), or words that may occur in a text."""


def read_api_key(variable: str) -> str:
    """The key in an environment variable, checked for use in a header; empty if the variable is unset."""
    key = os.environ.get(variable, "").strip()
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise InputError(
            f"the environment variable {variable} holds a space or a non-ASCII character",
            expected="a key of printable ASCII characters",
            fix="copy the key again",
        )
    return key


def describe_plain_http(variable: str, url: str) -> str:
    """The warning that a key is sent to another machine over plain HTTP."""
    return (
        f"the key in {variable} goes to {url} unencrypted: anyone on the way can read it; use https, or "
        "unset the variable"
    )


def redact_key(text: str, *, secret: str) -> str:
    """The response with each echo of the key replaced by ``[key]``, safe to store.

    A key of fewer than 8 characters is kept: it protects nothing, and may occur in any text as a word.
    """
    return _redact(text, secret) if len(secret) >= _SHORTEST_KEY else text


def sanitize_message(text: str, *, secret: str) -> str:
    """A host's message, safe to show: at most 300 characters on one line, with the secret as ``[key]``.

    Control characters, which could move the cursor or hide words, are removed.
    """
    words = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
    # Before truncation, which could leave part of the secret.
    return _redact(words, secret).strip()[:_LONGEST_MESSAGE]


def _redact(text: str, secret: str) -> str:
    """The text without the secret in any form that hosts echo: plain, JSON-escaped or percent-encoded."""
    as_json = json.dumps(secret)[1:-1]
    forms = {secret, as_json, as_json.replace("/", "\\/"), quote(secret, safe="")} - {""}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, "[key]")
    return text


class CompressedResponseError(Exception):
    """An unrequested compressed response: a few bytes could expand to any size."""


class HttpResponse(NamedTuple):
    """A host's response."""

    status: int
    headers: Mapping[str, str]
    content: bytes | None
    """None if it is larger than allowed."""


class HttpConnection:
    """A client with one connection, which is closed if a complete response takes too long.

    httpx limits the time of each read, not the total: a host that sends its headers byte by byte could block
    a reader for days. Callers have `close_if_overdue` called from another thread.
    """

    def __init__(self, client: httpx.Client, *, seconds: float) -> None:
        self._client, self._seconds = client, seconds
        self._socket: socket.socket | None = None
        self._ends = math.inf
        self._was_cut = False

    def post(self, url: str, content: bytes, *, most: int) -> HttpResponse:
        """The response, of at most ``most`` bytes; a connection that was closed raises ``ReadTimeout``."""
        import httpx

        self._was_cut = False
        self._ends = time.monotonic() + self._seconds
        try:
            trace = {"trace": self._note_socket}
            with self._client.stream("POST", url, content=content, extensions=trace) as response:
                answer = _read_content(response, most=most)
        except httpx.TransportError:
            if self._was_cut:
                raise httpx.ReadTimeout("the response took too long") from None
            raise
        finally:
            self._ends = math.inf
        if answer is not None and self._was_cut:
            # Without a Content-Length, the body ends when the connection is closed.
            raise httpx.ReadTimeout("the response took too long")
        return HttpResponse(response.status_code, response.headers, answer)

    def close_if_overdue(self) -> None:
        """Close the connection if its response is overdue; called from another thread."""
        if time.monotonic() < self._ends:
            return
        self._was_cut = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _note_socket(self, event: str, info: Mapping[str, object]) -> None:
        """Store the socket of a new connection; with TLS, the socket that wraps it."""
        stream: Any = info.get("return_value")
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")) and stream is not None:
            used = stream.get_extra_info("socket")
            self._socket = used if isinstance(used, socket.socket) else None


def make_client(
    secret: str, *, seconds: float, is_local: bool, verify: ssl.SSLContext | bool = True
) -> httpx.Client:
    """A client that sends JSON, with the secret if there is one, and does not follow redirects."""
    import httpx

    agent = f"evenhand/{__version__}"
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": agent}
    return httpx.Client(
        headers=headers | ({"Authorization": f"Bearer {secret}"} if secret else {}),
        timeout=seconds,
        verify=verify,
        follow_redirects=False,
        # A proxy from the environment would see requests meant for this machine, with the key unencrypted.
        trust_env=not is_local,
    )


def _read_content(response: httpx.Response, *, most: int) -> bytes | None:
    """The body of a response; None if it is larger than ``most`` bytes."""
    packing = response.headers.get("Content-Encoding", "identity").strip().lower()
    if packing != "identity":
        raise CompressedResponseError(packing)
    content = bytearray()
    for part in response.iter_raw():
        content += part
        if len(content) > most:
            return None
    return bytes(content)
