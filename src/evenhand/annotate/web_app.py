"""The web app: server-rendered pages, one private link per person, no reply before an answer is on disk.

It works without scripts: a page is one form. With scripts, each answer is sent separately, in the same
format, to the same address.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import jinja2
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evenhand.annotate.annotation_service import AnnotationService
from evenhand.annotate.database import Database, DatabaseError, Person
from evenhand.core.errors import EvenhandError, InputError
from evenhand.core.files import asset_path

MOST_BYTES: Final = 64 << 10
"""Maximum bytes of a body; a page of answers has a few hundred."""
RATE, BURST = 20.0, 120
"""Requests per second, and burst size, per link, or per address without a valid link."""
JOIN: Final = "/join/"
"""The path of a link, before its token."""
_MOST_CALLERS: Final = 10_000
_FRESH: Final = 1.0
"""Seconds for which links are cached: new ones are created while the app is running."""
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: forms would then have the origin "null", which does not identify the sender.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "X-Robots-Tag": "noindex, nofollow",
}


@dataclass
class Links:
    """The digests of valid links, as returned by ``read``.

    All unknown links together cost one database query per second.
    """

    read: Callable[[], frozenset[str]]
    digest: Callable[[str], str]
    clock: Callable[[], float] = time.monotonic
    _known: frozenset[str] = frozenset()
    _since: float = -math.inf
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def holder(self, token: str) -> str | None:
        """The digest of a valid link; None for any other."""
        digest = self.digest(token)
        if digest not in self._known:
            # Concurrent requests wait while the links are read: at startup none are known.
            async with self._reading:
                if self.clock() - self._since >= _FRESH:
                    # Without a database the cached links stay valid; the app reports the error.
                    with suppress(EvenhandError):
                        self._known = await run_in_threadpool(self.read)
                    self._since = self.clock()
        return digest if digest in self._known else None


class RequestGuard:
    """Wraps an app: adds security headers to every reply, and limits body sizes and request rates.

    Each valid link has its own rate limit, regardless of the address; other requests share the limit of their
    address. So strangers cannot block the participants, even if all come through one proxy.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        links: Links,
        cookie: str,
        headers: Mapping[str, str] = HEADERS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.app, self.links, self.cookie, self.headers = app, links, cookie, headers
        self.people, self.strangers = (RateLimiter(RATE, BURST, clock) for _ in range(2))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        handler: ASGIApp = self.app
        if not await self._admits(Request(scope), scope["path"]):
            handler = PlainTextResponse("Too many requests. Wait a moment.", 429, {"Retry-After": "2"})
        elif declared_length(Headers(scope=scope)) > MOST_BYTES:
            handler = PlainTextResponse("The request is too large.", 413)
        elif not scope["query_string"].isascii():
            # Not every server refuses such a path, and Starlette decodes it in more than one way.
            handler = PlainTextResponse("This page does not exist.", 400)
        await handler(scope, _limit_body(receive), self._add_headers(send))

    async def _admits(self, request: Request, path: str) -> bool:
        token = path.removeprefix(JOIN) if path.startswith(JOIN) else request.cookies.get(self.cookie, "")
        holder = await self.links.holder(token) if token else None
        if holder:
            return self.people.take(holder)
        return self.strangers.take(client_network(request.client.host if request.client else ""))

    def _add_headers(self, send: Send) -> Send:
        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self.headers)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        return headed


class RateLimiter:
    """A token bucket for each caller: ``burst`` at once, ``rate`` per second after that."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self.clock = rate, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> bool:
        """Whether one more request is allowed now."""
        now = self.clock()
        left, since = self._left.pop(caller, (float(self.burst), now))
        left = min(float(self.burst), left + (now - since) * self.rate)
        allowed = left >= 1
        self._left[caller] = (left - 1 if allowed else left, now)
        if len(self._left) > _MOST_CALLERS:
            self._left.popitem(last=False)
        return allowed


class RequestRefusedError(Exception):
    """A request that gets an error page: status, title and text."""


def form_token(token: str) -> str:
    """The secret a form must contain: only pages rendered for the holder of the link have it."""
    return hmac.new(token.encode(), b"evenhand form", hashlib.sha256).hexdigest()


def is_forged(request: Request, *, token: str, given: str, base: str | None = None) -> bool:
    """Whether a POST comes from another site, or from a page of another person.

    ``base`` is the public address: a proxy may change the host of the request.
    """
    if not hmac.compare_digest(form_token(token).encode(), given.encode()):
        return True
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    origin = request.headers.get("origin")
    own = {request.headers.get("host"), _place(base or "")} - {None, ""}
    return bool(origin) and _place(origin or "") not in own


def _place(address: str) -> str:
    """Host and port of a URL; empty if it is invalid."""
    try:
        return urlsplit(address).netloc
    except ValueError:
        return ""


def client_network(address: str) -> str:
    """The address; for IPv6 its first half, since one customer owns the whole second half."""
    try:
        known = ip_address(address)
    except ValueError:
        return address
    is_v6 = isinstance(known, IPv6Address) and not known.ipv4_mapped
    return known.exploded[:19] if is_v6 else address


def declared_length(headers: Headers) -> int:
    """The Content-Length of the body; 0 if it is not a number."""
    value = headers.get("content-length", "0")
    # isdigit alone would accept superscripts; a number too long to parse exceeds any limit.
    return int(value[:19]) if value.isascii() and value.isdigit() else 0


def _limit_body(receive: Receive) -> Receive:
    read = 0

    async def limited() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > MOST_BYTES:
            raise RequestRefusedError(413, "The request is too large", "Nothing was saved.")
        return message

    return limited


_HERE: Final = Path(__file__).parent
_COOKIE_DAYS: Final = 60
_MOST_FIELDS: Final = 600
_MARK: Final = re.compile(r"[0-9a-f]{16,64}")
LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")
_STRANGER: Final = (
    403,
    "You need your private link",
    "Open the link you received. If it no longer works, ask the person who sent it for a new one.",
)
_FORGED: Final = (
    403,
    "This page belongs to another link",
    "Another link was opened in this browser, or the form came from another site. Nothing was saved. "
    "Open your own link again.",
)
_NOWHERE: Final = (404, "Page not found", "This page does not exist.")
_ERROR_PAGES: Final[Mapping[type[Exception], tuple[int, str, str]]] = {
    ClientDisconnect: (400, "The connection was interrupted", "Nothing was saved."),
    DatabaseError: (
        503,
        "The study cannot be reached",
        "The database does not respond. Saved answers are safe. Please try again soon.",
    ),
}


class AnnotationApp:
    """The request handlers of one study."""

    def __init__(self, db: Database, *, base: str | None = None) -> None:
        self.db, self.base = db, base
        self.service = AnnotationService(db)
        self.secure = urlsplit(base or "").scheme == "https"
        self.cookie = f"evenhand_{db.study.id[:16]}"
        static = _HERE / "static"
        style = asset_path("style", "tokens.css").read_bytes() + (static / "annotate.css").read_bytes()
        self.files = {"annotate.css": style, "annotate.js": (static / "annotate.js").read_bytes()}
        self.templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        version = hashlib.sha256(b"".join(self.files.values())).hexdigest()[:12]
        self.templates.globals.update(study=db.study, task=db.study.task.task, version=version)

    def open_link(self, request: Request) -> Response:
        """Open a private link: store it in a cookie, then redirect to a URL without it."""
        token = request.path_params["token"]
        self._find_person(request, token)
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(
            self.cookie,
            token,
            max_age=_COOKIE_DAYS * 86_400,
            httponly=True,
            secure=self.secure,
            # Not strict: the link is opened from a message, and the next page needs the cookie.
            samesite="lax",
        )
        return answer

    def start_page(self, request: Request) -> Response:
        """The questions of the study, and a button to begin or continue."""
        person = self._find_person(request)
        begun = bool(self.service.read_claims(person.annotator).pages)
        return self._page("start.html.j2", person, begun=begun)

    def work_page(self, request: Request) -> Response:
        """A page of items, or the final page if none is left."""
        person = self._find_person(request)
        page = self.service.next_page(person, _number(request.query_params.get("page", "")))
        if page is None:
            ending = self.service.completion_state(person)
            return self._page("done.html.j2", person, ending=ending)
        missing = request.query_params.get("missing") == "1"
        return self._page("work.html.j2", person, work=page, missing=missing)

    async def save_answers(self, request: Request) -> Response:
        """Store all submitted answers or none."""
        person = await run_in_threadpool(self._find_person, request)
        try:
            body = (await request.body()).decode("utf-8")
            fields = dict(
                parse_qsl(body, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
            )
        except ValueError as error:
            raise _bad_request("text that cannot be decoded") from error
        if is_forged(request, token=person.token, given=fields.get("form", ""), base=self.base):
            raise RequestRefusedError(*_FORGED)
        return await run_in_threadpool(self._save, request, person, fields)

    def _save(self, request: Request, person: Person, fields: Mapping[str, str]) -> Response:
        mark, wants_json = fields.get("mark"), _wants_json(request)
        if mark is not None and not _MARK.fullmatch(mark):
            raise _bad_request("an invalid mark")
        try:
            answers = self.service.parse(fields)
            self.db.save_answers(person.annotator, answers, mark=mark, handed=True)
        except InputError as error:
            raise _bad_request(error.problem) from error
        except DatabaseError:
            if wants_json:
                raise
            return self._page("again.html.j2", person, status=503, fields=fields)
        if wants_json:
            return JSONResponse({"saved": len(answers)})
        number = _number(fields.get("page", ""))
        if number is None:
            return RedirectResponse("/work", status_code=303)
        # Go on, or back to the same page if an answer is missing.
        is_missing = self.service.is_missing(person, number)
        target = f"/work?page={number}&missing=1" if is_missing else f"/work?page={number + 1}"
        return RedirectResponse(target, status_code=303)

    async def static_file(self, request: Request) -> Response:
        """The style sheet or the script."""
        name = request.path_params["name"]
        if name not in self.files:
            raise RequestRefusedError(*_NOWHERE)
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        return Response(self.files[name], media_type=kind, headers={"Cache-Control": "public, max-age=86400"})

    async def respond_with_error(self, request: Request, error: Exception) -> Response:
        """The error page, or JSON, for a refused request."""
        pages = (page for kind, page in _ERROR_PAGES.items() if isinstance(error, kind))
        is_refusal = isinstance(error, RequestRefusedError)
        status, title, text = error.args if is_refusal else next(pages, _NOWHERE)
        if _wants_json(request):
            return JSONResponse({"error": text}, status)
        return self._page("message.html.j2", None, status=status, title=title, text=text)

    def _find_person(self, request: Request, token: str | None = None) -> Person:
        """The holder of a link, by default the one in the cookie; refuses anybody else."""
        token = token if token is not None else request.cookies.get(self.cookie, "")
        if person := self.db.find_person(token) if token else None:
            return person
        raise RequestRefusedError(*_STRANGER)

    def _page(self, name: str, person: Person | None, *, status: int = 200, **values: object) -> Response:
        if person:
            values |= {"form": form_token(person.token), "who": person.annotator}
        return HTMLResponse(self.templates.get_template(name).render(**values), status_code=status)


def create_app(db: Database, *, host: str = "127.0.0.1", base: str | None = None) -> Starlette:
    """Create the app of a study.

    ``host`` is the address to listen on and ``base`` the public address. An app that listens on this machine
    only accepts local host names and ``base``, so that no other site can reach it through a browser.
    """
    app = AnnotationApp(db, base=base)
    links = Links(lambda: frozenset(db.read_links().values()), db.token_digest)
    secure = {"Strict-Transport-Security": "max-age=31536000"} if app.secure else {}
    named = [urlsplit(base).hostname or ""] if base else []
    hosts = [*LOCAL, host, *named] if named else ["*"]
    if host in (*LOCAL, "::1"):
        hosts = [*LOCAL, *named]
    refused = (RequestRefusedError, *_ERROR_PAGES, 404, 405)
    return Starlette(
        routes=[
            Route("/", app.start_page),
            Route(f"{JOIN}{{token}}", app.open_link),
            Route("/work", app.work_page),
            Route("/answers", app.save_answers, methods=["POST"]),
            Route("/static/{name}", app.static_file),
        ],
        middleware=[
            Middleware(RequestGuard, links=links, cookie=app.cookie, headers=HEADERS | secure),
            Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False),
        ],
        exception_handlers=dict.fromkeys(refused, app.respond_with_error),
    )


def _bad_request(what: str) -> RequestRefusedError:
    return RequestRefusedError(
        422, "This could not be saved", f"The form has {what}. Nothing was saved. Open your link again."
    )


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def _wants_json(request: Request) -> bool:
    return "application/json" in request.headers.get("accept", "")
