"""Hosts of models and classifiers: the key they are sent, the connection, what of their words is shown."""

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
"""Hosts, as `urllib.parse` spells them, that an offline run may ask and that a key may reach in the clear."""
_LONGEST_MESSAGE: Final = 300
_SHORTEST_KEY: Final = 8
"""Shorter ones are stand-ins for hosts that ask for none (``EMPTY``), and words that a text may hold."""


def read_api_key(variable: str) -> str:
    """The key an environment variable holds, fit for a header; empty if it is unset."""
    key = os.environ.get(variable, "").strip()
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise InputError(
            f"the environment variable {variable} holds a space or a character beyond ASCII",
            expected="a key of printable ASCII characters",
            fix="copy the key again",
        )
    return key


def describe_plain_http(variable: str, url: str) -> str:
    """The warning for a key that is sent to another machine over plain HTTP."""
    return (
        f"the key in {variable} goes to {url} unencrypted: anyone on the way can read it; use https, or "
        "unset the variable"
    )


def redact_key(text: str, *, secret: str) -> str:
    """An answer fit to be stored: ``[key]`` where the host repeats the key it was sent.

    A key of fewer than 8 characters stays: it keeps nothing secret, and a word of every text may be like it.
    """
    return _redact(text, secret) if len(secret) >= _SHORTEST_KEY else text


def sanitize_message(text: str, *, secret: str) -> str:
    """What a host said, fit to be shown: at most 300 characters on one line, the secret as ``[key]``.

    Control characters would move the cursor or hide words.
    """
    words = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
    # Before the cut, which could leave a part of the secret.
    return _redact(words, secret).strip()[:_LONGEST_MESSAGE]


def _redact(text: str, secret: str) -> str:
    """The text without the secret: as it is, escaped for JSON, or percent-encoded, as hosts repeat it."""
    as_json = json.dumps(secret)[1:-1]
    forms = {secret, as_json, as_json.replace("/", "\\/"), quote(secret, safe="")} - {""}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, "[key]")
    return text


class CompressedResponseError(Exception):
    """A compressed answer, which was not requested: a few bytes could stand for any size."""


class HttpResponse(NamedTuple):
    """What a host answered."""

    status: int
    headers: Mapping[str, str]
    content: bytes | None
    """None where it is larger than was allowed."""


class HttpConnection:
    """A client with one connection, which is cut when a whole answer takes too long.

    httpx bounds each read, not their sum: a host that sends its headers letter by letter would hold a
    reader for days. Users have `close_if_overdue` called from another thread.
    """

    def __init__(self, client: httpx.Client, *, seconds: float) -> None:
        self._client, self._seconds = client, seconds
        self._socket: socket.socket | None = None
        self._ends = math.inf
        self._was_cut = False

    def post(self, url: str, content: bytes, *, most: int) -> HttpResponse:
        """The response, of at most ``most`` bytes; a connection that was cut is a ``ReadTimeout``."""
        import httpx

        self._was_cut = False
        self._ends = time.monotonic() + self._seconds
        try:
            trace = {"trace": self._note_socket}
            with self._client.stream("POST", url, content=content, extensions=trace) as response:
                answer = _read_content(response, most=most)
        except httpx.TransportError:
            if self._was_cut:
                raise httpx.ReadTimeout("the answer took too long") from None
            raise
        finally:
            self._ends = math.inf
        if answer is not None and self._was_cut:
            # A body of no stated length ends where the connection does.
            raise httpx.ReadTimeout("the answer took too long")
        return HttpResponse(response.status_code, response.headers, answer)

    def close_if_overdue(self) -> None:
        """End the connection whose answer should have arrived; called from another thread."""
        if time.monotonic() < self._ends:
            return
        self._was_cut = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _note_socket(self, event: str, info: Mapping[str, object]) -> None:
        """Keep the socket of a new connection; with TLS the one that wraps it."""
        stream: Any = info.get("return_value")
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")) and stream is not None:
            used = stream.get_extra_info("socket")
            self._socket = used if isinstance(used, socket.socket) else None


def make_client(
    secret: str, *, seconds: float, is_local: bool, verify: ssl.SSLContext | bool = True
) -> httpx.Client:
    """A client that sends JSON with the secret, if there is one, and follows no redirect."""
    import httpx

    agent = f"evenhand/{__version__}"
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": agent}
    return httpx.Client(
        headers=headers | ({"Authorization": f"Bearer {secret}"} if secret else {}),
        timeout=seconds,
        verify=verify,
        follow_redirects=False,
        # A proxy of the environment would be sent what is meant for this machine, the key in the clear too.
        trust_env=not is_local,
    )


def _read_content(response: httpx.Response, *, most: int) -> bytes | None:
    """The body of a response; None where it is larger than ``most`` bytes."""
    packing = response.headers.get("Content-Encoding", "identity").strip().lower()
    if packing != "identity":
        raise CompressedResponseError(packing)
    content = bytearray()
    for part in response.iter_raw():
        content += part
        if len(content) > most:
            return None
    return bytes(content)
