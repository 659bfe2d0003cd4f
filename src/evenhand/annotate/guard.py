"""What stands between the network and the app: headers, limits on bodies and on requests, forged posts."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES: Final = 64 << 10
"""A page of answers has a few hundred bytes."""
RATE, BURST = 20.0, 120
"""Requests a second, and at once, from one address with one cookie."""
ALL_RATE, ALL_BURST = 200.0, 1000
"""The same from one address with any cookies: a whole class may sit behind one."""
_MOST_CALLERS: Final = 10_000
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: a form would then be sent with the origin "null", which tells us nothing.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "X-Robots-Tag": "noindex, nofollow",
}


class Guard:
    """Wraps an app: every answer has the headers, no body is too large, nobody asks too often."""

    def __init__(self, app: ASGIApp, *, secure: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.app = app
        self.secure = secure
        self.each = Bucket(RATE, BURST, clock)
        self.all = Bucket(ALL_RATE, ALL_BURST, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = self._headed(send)
        headers = Headers(scope=scope)
        address = scope["client"][0] if scope.get("client") else ""
        if not (self.all.take(address) and self.each.take(f"{address} {_digest(headers.get('cookie', ''))}")):
            refusal = PlainTextResponse("Too many requests. Wait a moment.", 429, {"Retry-After": "2"})
            await refusal(scope, receive, answer)
        elif _declared(headers) > MOST_BYTES:
            await PlainTextResponse("That is too much for one page.", 413)(scope, receive, answer)
        else:
            await self.app(scope, _limited(receive), answer)

    def _headed(self, send: Send) -> Send:
        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
                if self.secure:
                    headers["Strict-Transport-Security"] = "max-age=31536000"
            await send(message)

        return headed


class Bucket:
    """A limit on how often: ``burst`` at once, ``rate`` a second after that, for each caller."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self.clock = rate, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> bool:
        """Whether one more is allowed now."""
        now = self.clock()
        left, since = self._left.pop(caller, (float(self.burst), now))
        left = min(float(self.burst), left + (now - since) * self.rate)
        allowed = left >= 1
        self._left[caller] = (left - 1 if allowed else left, now)
        if len(self._left) > _MOST_CALLERS:
            self._left.popitem(last=False)
        return allowed


class TooLargeError(Exception):
    """A body that grew beyond the limit without having said so."""


def form_token(token: str) -> str:
    """What a form must carry: known only to a page that was made for the holder of the link."""
    return hmac.new(token.encode(), b"evenhand form", hashlib.sha256).hexdigest()


def is_forged(request: Request, *, token: str, given: str, base: str | None = None) -> bool:
    """Whether a post was made by another site, or for another person.

    ``base`` is the address people use: a proxy in front may put another host into the request.
    """
    if not hmac.compare_digest(form_token(token).encode(), given.encode()):
        return True
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    origin = request.headers.get("origin")
    own = {request.headers.get("host"), _place(base or "")} - {None, ""}
    return bool(origin) and _place(origin or "") not in own


def _place(address: str) -> str:
    """Host and port of an address; empty where it is none."""
    try:
        return urlsplit(address).netloc
    except ValueError:
        return ""


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()


def _declared(headers: Headers) -> int:
    value = headers.get("content-length", "0")
    # Not isdigit alone, which takes a superscript for a digit; a number too long to read is beyond any limit.
    return int(value[:19]) if value.isascii() and value.isdigit() else 0


def _limited(receive: Receive) -> Receive:
    read = 0

    async def limited() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > MOST_BYTES:
            raise TooLargeError
        return message

    return limited
