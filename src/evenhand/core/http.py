"""The connection to a model or a classifier behind a URL, with bounds on time and size."""

from __future__ import annotations

import contextlib
import math
import socket
import ssl
import time
from collections.abc import Iterator, Mapping

import httpx

from evenhand._version import __version__


class CompressedResponseError(Exception):
    """An answer that is packed although that was not asked for: a few bytes could stand for any size."""


class HttpConnection:
    """A client with one connection, which is cut when a whole answer takes too long.

    httpx bounds each read, not their sum: a host that sends its headers letter by letter would hold a
    reader for days. Whoever uses a wire has `cut_if_late` called from another thread.
    """

    def __init__(self, client: httpx.Client, *, seconds: float) -> None:
        self._client, self._seconds = client, seconds
        self._socket: socket.socket | None = None
        self._ends = math.inf
        self.was_cut = False

    @contextlib.contextmanager
    def post(self, url: str, content: bytes) -> Iterator[httpx.Response]:
        """The response to a body, while there is time."""
        self.was_cut = False
        self._ends = time.monotonic() + self._seconds
        try:
            with self._client.stream(
                "POST", url, content=content, extensions={"trace": self._note}
            ) as response:
                yield response
        finally:
            self._ends = math.inf

    def close_if_overdue(self) -> None:
        """End the connection whose answer should have been there; called from another thread."""
        if time.monotonic() < self._ends:
            return
        self.was_cut = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _note(self, event: str, info: Mapping[str, object]) -> None:
        """Keep the socket of a new connection; with TLS the one that wraps it."""
        if not event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            return
        stream = info.get("return_value")
        if stream is not None:
            found = stream.get_extra_info("socket")  # type: ignore[attr-defined]
            self._socket = found if isinstance(found, socket.socket) else None


def make_client(
    secret: str, *, seconds: float, is_local: bool, verify: ssl.SSLContext | bool = True
) -> httpx.Client:
    """A client that sends JSON with the secret, if there is one, and follows no redirect."""
    headers = {
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": f"evenhand/{__version__}",
    }
    if secret:
        headers["Authorization"] = f"Bearer {secret}"
    return httpx.Client(
        headers=headers,
        timeout=seconds,
        verify=verify,
        follow_redirects=False,
        # A proxy of the environment would be sent what is meant for this machine, the key in the clear too.
        trust_env=not is_local,
    )


def read_content(response: httpx.Response, *, most: int) -> bytes | None:
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
