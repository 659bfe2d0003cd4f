"""What comes to the annotation app over the network, and the files a study is made from or takes labels from.

A request is read where it is answered with 2xx or 3xx, refused where with 4xx. Anything else, and an answer
without the headers of the guard, is a crash.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Final
from urllib.parse import quote_plus, unquote

import sqlalchemy as sa
from tests.annotate.study_parts import make_study
from tests.fuzz.contents import as_csv, as_json
from tests.fuzz.harness import Reader, Tree, of_trees
from tests.fuzz.runs import ANNOTATED, ARGILLA, LABEL_STUDIO, RATINGS

import evenhand
from evenhand.annotate import database
from evenhand.annotate.database import Database
from evenhand.annotate.study import parse_task, task_text
from evenhand.annotate.study_creation import read_sources
from evenhand.annotate.web_app import HEADERS, create_app, form_token
from evenhand.core.errors import InputError
from evenhand.store.ingest import ColumnLayout

TOKEN: Final = "fuzzing-" + "a" * 24
ITEMS: Final = 4
TEXTS: Tree = [
    ["id", "text", "who", "prompt", "method", "score", "mentions"],
    ["a", "The nurse was kind.", "women", "The nurse", "m", "0.5", "nurse"],
    ["b", "The pilot left early.", "men", "The pilot", "m", "-0.5", "pilot"],
]
_callers = itertools.count()


class _Served:
    """One study whose only person has a link that is always the same."""

    def __init__(self) -> None:
        folder = Path(mkdtemp(prefix="evenhand-fuzz-"))
        atexit.register(rmtree, folder, ignore_errors=True)
        study = make_study(folder / "study", items=ITEMS, annotators=1)
        self.db = Database(study).__enter__()
        self.db.create_invitations(1)
        known = {"token": self.db.token_digest(TOKEN)}
        change = sa.update(database.people).values(known)
        self.db.write(lambda connection: connection.execute(change))
        self.app = create_app(self.db)
        self.cookie = f"evenhand_{study.id[:16]}={TOKEN}".encode()
        self.loop = asyncio.new_event_loop()
        self.ask("GET", b"/work")
        self.items = study.items()["item_id"].to_list()

    def ask(
        self,
        method: str,
        target: bytes,
        body: bytes | None = b"",
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """One request, as uvicorn hands it on; an input error where it is refused.

        Without a body the caller goes away in the middle of it.
        """
        path, _, query = target.partition(b"?")
        own = {b"host": b"localhost", b"cookie": self.cookie, **dict(headers)}
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path.decode("latin-1")),
            "raw_path": path,
            "query_string": query,
            "headers": list(own.items()),
            # A caller of its own: how often one may ask is not in question here.
            "client": (f"caller {next(_callers)}", 1),
            "server": ("localhost", 80),
        }
        answer = self.loop.run_until_complete(self._answered(scope, body))
        status, sent = answer["status"], {name.lower() for name, _ in answer["headers"]}
        assert status < 500, f"{status} to {method} {target[:200]!r}"
        assert {name.lower().encode() for name in HEADERS} <= sent, f"{status} without its headers"
        if status >= 400:
            raise InputError(f"{status}", expected="2xx and 3xx", fix="send another request")

    async def _answered(self, scope: dict[str, Any], body: bytes | None) -> dict[str, Any]:
        """How an answer begins; a body comes in two parts, and one that is None ends after the first."""
        found: list[dict[str, Any]] = []
        half = len(body or b"") // 2
        parts = [(body or b"form=")[:half], *([body[half:]] if body is not None else [])]
        coming = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        if body is not None:
            coming[-1]["more_body"] = False
        waiting = iter(coming)

        async def receive() -> dict[str, Any]:
            return next(waiting, {"type": "http.disconnect"})

        async def send(message: dict[str, Any]) -> None:
            found.append(message)

        await self.app(scope, receive, send)
        return next(message for message in found if message["type"] == "http.response.start")


@cache
def served() -> _Served:
    return _Served()


def _form() -> list[Tree]:
    fields = [[f"a.{item}.sentiment", "positive"] for item in served().items[:2]]
    return [["form", form_token(TOKEN)], ["page", "0"], ["mark", "0123456789abcdef"], *fields]


def _as_form(tree: Tree) -> bytes:
    """Fields as a browser sends them; what is no pair is a field by itself."""
    rows = tree if isinstance(tree, list) else [tree]
    pairs = [row if isinstance(row, list) else [row] for row in rows]
    written = ["=".join(quote_plus(str(cell), errors="surrogatepass") for cell in pair) for pair in pairs]
    return "&".join(written).encode()


def _posted(path: Path) -> None:
    for accept in (b"application/json", b"text/html"):
        served().ask("POST", b"/answers", path.read_bytes(), [(b"accept", accept)])


def _got(path: Path) -> None:
    served().ask("GET", path.read_bytes())


def _as_target(tree: Tree) -> bytes:
    parts = tree if isinstance(tree, list) else [tree]
    where, *rest = parts or [""]
    query = _as_form(rest)
    return quote_plus(str(where), safe="/", errors="surrogatepass").encode() + (
        b"?" + query if query else b""
    )


def _headed(path: Path) -> None:
    """Headers, a line each, before a form that would be taken."""
    lines = [line.partition(b":") for line in path.read_bytes().split(b"\n") if b":" in line]
    headers = [(name.strip().lower(), value.strip()) for name, _, value in lines]
    served().ask("POST", b"/answers", _as_form(_form()), headers)


def _as_headers(tree: Tree) -> bytes:
    rows = tree if isinstance(tree, list) else [tree]
    pairs = [[*row, "", ""][:2] if isinstance(row, list) else [row, ""] for row in rows]
    lines = [f"{name}: {value}".replace("\n", " ") for name, value in pairs]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _headers() -> list[Tree]:
    return [
        ["host", "localhost"],
        ["origin", "http://localhost"],
        ["cookie", served().cookie.decode()],
        ["accept", "application/json"],
        ["sec-fetch-site", "same-origin"],
        ["content-length", "10"],
        ["content-type", "application/x-www-form-urlencoded"],
    ]


def _lazy(tree: Callable[[], Tree], dump: Callable[[Tree], bytes]) -> dict[str, Callable[..., Any]]:
    """Examples that need the study, which is made when they are first asked for."""
    return {"examples": lambda: [dump(tree())], "trees": lambda: [tree()], "dump": dump}


def _sources(path: Path) -> object:
    layout = ColumnLayout("text", {"who": "who"}, prompt="prompt", id="id", mentions="mentions")
    task = parse_task(task_text("sentiment"), where="sentiment")
    return read_sources([path], task, layout, mask="xyz", method="method", score="score")


def _imported(path: Path) -> Iterator[object]:
    """Labels of other tools, kept as ours and read again."""
    out = path.parent / "back.jsonl"
    out.unlink(missing_ok=True)
    yield evenhand.import_labels(path, out=out)
    yield evenhand.agreement(out, out=path.parent / "run", fresh=True)


def _settled(path: Path) -> object:
    return evenhand.settle_labels(path, out=path.parent / "labels")


READERS: tuple[Reader, ...] = (
    Reader("app: form", "form", _posted, **_lazy(_form, _as_form)),
    Reader(
        "app: address",
        "target",
        _got,
        lambda: [b"/work?page=0&missing=1", f"/join/{TOKEN}".encode(), b"/static/annotate.css", b"/"],
        lambda: [["/work", ["page", "0"], ["missing", "1"]], [f"/join/{TOKEN}"]],
        _as_target,
    ),
    Reader("app: headers", "headers", _headed, **_lazy(_headers, _as_headers)),
    of_trees("texts of a study", "texts.csv", _sources, as_csv, TEXTS, cost=2),
    of_trees("import of Label Studio", "l.json", _imported, as_json, LABEL_STUDIO, cost=8),
    of_trees("import of Argilla", "l.json", _imported, as_json, ARGILLA, cost=8),
    of_trees("import of a table", "l.csv", _imported, as_csv, RATINGS, cost=8),
    of_trees("annotations to settle", "a.csv", _settled, as_csv, ANNOTATED, cost=8),
)
