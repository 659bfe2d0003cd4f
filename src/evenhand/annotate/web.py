"""The web app: pages made on the server, one private link a person, no reply before an answer is on the disk.

It works without scripts: a page is one form. With scripts the same form is sent answer by answer, in the
same shape, to the same address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import jinja2
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from evenhand.annotate import claims, people
from evenhand.annotate.database import Database, DatabaseError
from evenhand.annotate.desk import Desk
from evenhand.annotate.guard import JOIN, Guard, Links, TooLargeError, form_token, is_forged
from evenhand.annotate.people import Person
from evenhand.core.assets import asset
from evenhand.core.errors import InputError

_HERE: Final = Path(__file__).parent
_COOKIE_DAYS: Final = 60
_MOST_FIELDS: Final = 600
_MARK: Final = re.compile(r"[0-9a-f]{16,64}")
LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")


class RefusedError(Exception):
    """A request that is answered with a page saying why not."""

    def __init__(self, status: int, title: str, text: str) -> None:
        super().__init__(title)
        self.status, self.title, self.text = status, title, text


_STRANGER: Final = (
    403,
    "This needs your private link",
    "Open the link you were given. If it no longer works, ask whoever sent it for a new one.",
)
_FORGED: Final = (
    403,
    "This page is not yours any more",
    "Another link was opened in this browser, or the page was sent from elsewhere. Nothing was saved. "
    "Open your own link again.",
)
_NOWHERE: Final = (404, "Nothing here", "This address leads nowhere.")


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks: somebody with a valid link."""

    person: Person
    token: str


class App:
    """One study, served."""

    def __init__(self, db: Database, *, base: str | None = None) -> None:
        self.db = db
        self.desk = Desk(db)
        self.base = base
        self.secure = urlsplit(base or "").scheme == "https"
        self.cookie = f"evenhand_{db.study.id[:16]}"
        self.files = _static_files()
        self.templates = _templates(db, version=_version(self.files))

    async def join(self, request: Request) -> Response:
        """A private link: remember it in a cookie, and go on without it in the address."""
        token = request.path_params["token"]
        if await run_in_threadpool(people.find, self.db, token) is None:
            raise RefusedError(*_STRANGER)
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(
            self.cookie,
            token,
            max_age=_COOKIE_DAYS * 86_400,
            httponly=True,
            secure=self.secure,
            # Not strict: the link is opened from a message, and the page behind it must know who came.
            samesite="lax",
        )
        return answer

    async def start(self, request: Request) -> Response:
        """What the study asks, and where to begin or to go on."""
        visitor = await self._visitor(request)
        pages = await run_in_threadpool(claims.pages_of, self.db, visitor.person.annotator)
        return self._page("start.html.j2", visitor, begun=bool(pages))

    async def work(self, request: Request) -> Response:
        """A page of items, or thanks where there is none."""
        visitor = await self._visitor(request)
        asked = _number(request.query_params.get("page", ""))
        found = await run_in_threadpool(self.desk.work, visitor.person, asked)
        if found is None:
            ending = await run_in_threadpool(self.desk.ending, visitor.person)
            return self._page("done.html.j2", visitor, ending=ending)
        missing = request.query_params.get("missing") == "1"
        return self._page("work.html.j2", visitor, work=found, missing=missing)

    async def answers(self, request: Request) -> Response:
        """Store what was sent, all or nothing."""
        visitor = await self._visitor(request)
        fields = await _fields(request)
        if is_forged(request, token=visitor.token, given=fields.get("form", ""), base=self.base):
            raise RefusedError(*_FORGED)
        mark = fields.get("mark")
        if mark is not None and not _MARK.fullmatch(mark):
            raise _malformed("a mark that is none")
        try:
            given = self.desk.parse(fields)
            await run_in_threadpool(self.desk.save, visitor.person, given, mark)
        except InputError as error:
            raise _malformed(error.came) from error
        except DatabaseError:
            if _wants_json(request):
                raise
            return self._page("again.html.j2", visitor, status=503, fields=fields)
        if _wants_json(request):
            return JSONResponse({"saved": len(given)})
        return await self._onward(visitor, fields.get("page", ""))

    async def file(self, request: Request) -> Response:
        """The style sheet or the script."""
        name = request.path_params["name"]
        if name not in self.files:
            raise RefusedError(*_NOWHERE)
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        return Response(self.files[name], media_type=kind, headers={"Cache-Control": "public, max-age=86400"})

    async def refused(self, request: Request, error: Exception) -> Response:
        """The page, or the JSON, for a request that is not answered."""
        status, title, text = _explained(error)
        if _wants_json(request):
            return JSONResponse({"error": text}, status)
        return self._page("message.html.j2", None, status=status, title=title, text=text)

    async def _onward(self, visitor: Visitor, page: str) -> Response:
        """Where a form leads: on, or back to its page where something is missing."""
        number = _number(page)
        if number is None:
            return RedirectResponse("/work", status_code=303)
        if await run_in_threadpool(self.desk.missing, visitor.person, number):
            return RedirectResponse(f"/work?page={number}&missing=1", status_code=303)
        return RedirectResponse(f"/work?page={number + 1}", status_code=303)

    async def _visitor(self, request: Request) -> Visitor:
        token = request.cookies.get(self.cookie, "")
        person = await run_in_threadpool(people.find, self.db, token) if token else None
        if person is None:
            raise RefusedError(*_STRANGER)
        return Visitor(person, token)

    def _page(self, name: str, visitor: Visitor | None, *, status: int = 200, **values: object) -> Response:
        form = form_token(visitor.token) if visitor else ""
        who = visitor.person.annotator if visitor else ""
        return HTMLResponse(
            self.templates.get_template(name).render(form=form, who=who, **values), status_code=status
        )


def create_app(db: Database, *, host: str = "127.0.0.1", base: str | None = None) -> Starlette:
    """The app of a study.

    ``host`` is where it listens and ``base`` the address people use. An app that listens to this machine
    alone answers to local names and to ``base``, so that no other site can speak to it through a browser.
    """
    app = App(db, base=base)
    links = Links(partial(people.links, db), partial(people.token_digest, db.study.id))
    refused = (RefusedError, TooLargeError, DatabaseError, ClientDisconnect, 404, 405)
    return Starlette(
        routes=[
            Route("/", app.start),
            Route(f"{JOIN}{{token}}", app.join),
            Route("/work", app.work),
            Route("/answers", app.answers, methods=["POST"]),
            Route("/static/{name}", app.file),
        ],
        middleware=[
            Middleware(Guard, secure=app.secure, links=links, cookie=app.cookie),
            Middleware(TrustedHostMiddleware, allowed_hosts=_hosts(host, base), www_redirect=False),
        ],
        exception_handlers=dict.fromkeys(refused, app.refused),
    )


def _hosts(host: str, base: str | None) -> list[str]:
    named = [urlsplit(base).hostname or ""] if base else []
    if host in (*LOCAL, "::1"):
        return [*LOCAL, *named]
    return [*LOCAL, host, *named] if named else ["*"]


async def _fields(request: Request) -> dict[str, str]:
    try:
        body = (await request.body()).decode("utf-8")
        return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"))
    except ValueError as error:
        raise _malformed("a form that cannot be read") from error


def _explained(error: Exception) -> tuple[int, str, str]:
    if isinstance(error, RefusedError):
        return error.status, error.title, error.text
    if isinstance(error, TooLargeError):
        return 413, "That is too much for one page", "Nothing was saved."
    if isinstance(error, ClientDisconnect):
        return 400, "This was cut off", "Nothing was saved."
    if isinstance(error, DatabaseError):
        text = "The place where answers are kept does not answer. What was saved is safe. Try again soon."
        return 503, "The study cannot be reached", text
    return _NOWHERE


def _malformed(what: str) -> RefusedError:
    return RefusedError(
        422, "This could not be saved", f"What came was {what}. Nothing was saved. Open your link again."
    )


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def _wants_json(request: Request) -> bool:
    return "application/json" in request.headers.get("accept", "")


def _templates(db: Database, *, version: str) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(study=db.study, task=db.study.task.task, version=version)
    return environment


def _static_files() -> dict[str, bytes]:
    static = _HERE / "static"
    style = asset("style", "tokens.css").read_bytes() + (static / "annotate.css").read_bytes()
    return {"annotate.css": style, "annotate.js": (static / "annotate.js").read_bytes()}


def _version(files: dict[str, bytes]) -> str:
    return sha256(b"".join(files.values())).hexdigest()[:12]
