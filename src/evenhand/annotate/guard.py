"""What stands between the network and the app: headers, limits on bodies and on requests, forged posts."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand.core.errors import EvenhandError

MOST_BYTES: Final = 64 << 10
"""A page of answers has a few hundred bytes."""
RATE, BURST = 20.0, 120
"""Requests a second, and at once, with one link, or from one address without a valid one."""
JOIN: Final = "/join/"
"""What stands before the token in the address of a link."""
_MOST_CALLERS: Final = 10_000
_FRESH: Final = 1.0
"""Seconds for which the links read last are all there are: new ones are made while the app is served."""
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


class Links:
    """The valid links, as ``read`` gives their digests.

    Whoever comes with another link costs no look into the database, but for one a second for all of them.
    """

    def __init__(
        self,
        read: Callable[[], frozenset[str]],
        digest: Callable[[str], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.read, self.digest, self.clock = read, digest, clock
        self._known: frozenset[str] = frozenset()
        self._since = -math.inf
        self._reading = asyncio.Lock()

    async def holder(self, token: str) -> str | None:
        """The digest of a valid link; None for another."""
        digest = self.digest(token)
        if digest not in self._known:
            # Who comes while the links are read waits for them: at the start nobody is known.
            async with self._reading:
                if self.clock() - self._since >= _FRESH:
                    await self._read_again()
        return digest if digest in self._known else None

    async def _read_again(self) -> None:
        # Without a database the links read last still say who is who; the app says what is wrong.
        with suppress(EvenhandError):
            self._known = await run_in_threadpool(self.read)
        self._since = self.clock()


class Guard:
    """Wraps an app: every answer has the headers, no body is too large, nobody asks too often.

    Each valid link has a limit of its own, whatever address it comes from; everybody else has that of their
    address. So no stranger holds up the people of a study, though all come through one proxy.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        secure: bool,
        links: Links,
        cookie: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.app = app
        self.secure = secure
        self.links, self.cookie = links, cookie
        self.people = Bucket(RATE, BURST, clock)
        self.strangers = Bucket(RATE, BURST, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = self._headed(send)
        headers = Headers(scope=scope)
        if not await self._admits(Request(scope), scope["path"]):
            refusal = PlainTextResponse("Too many requests. Wait a moment.", 429, {"Retry-After": "2"})
            await refusal(scope, receive, answer)
        elif _declared(headers) > MOST_BYTES:
            await PlainTextResponse("That is too much for one page.", 413)(scope, receive, answer)
        elif not scope["query_string"].isascii():
            # Not every server refuses it, and Starlette reads it in more than one way.
            await PlainTextResponse("This address leads nowhere.", 400)(scope, receive, answer)
        else:
            await self.app(scope, _limited(receive), answer)

    async def _admits(self, request: Request, path: str) -> bool:
        token = path.removeprefix(JOIN) if path.startswith(JOIN) else request.cookies.get(self.cookie, "")
        holder = await self.links.holder(token) if token else None
        if holder:
            return self.people.take(holder)
        return self.strangers.take(_network(request.client.host if request.client else ""))

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


def _network(address: str) -> str:
    """The address; for IPv6 its first half, since one customer has all of the other."""
    try:
        known = ip_address(address)
    except ValueError:
        return address
    is_v6 = isinstance(known, IPv6Address) and not known.ipv4_mapped
    return known.exploded[:19] if is_v6 else address


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
