"""The app over HTTP, as a browser without scripts and as somebody who means it no good."""

from __future__ import annotations

import asyncio
import html
import re
import socket
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from tests.annotate.study_parts import Reader, make_study, serving

from evenhand.annotate.database import Database, DatabaseError
from evenhand.annotate.study import Study
from evenhand.annotate.web_app import (
    BURST,
    Links,
    RateLimiter,
    RequestGuard,
    client_network,
    create_app,
    declared_length,
)


class Site:
    """A study that is served, and its people."""

    def __init__(self, address: str, db: Database, tokens: list[str]) -> None:
        self.address, self.db, self.tokens = address, db, tokens
        self._readers: list[Reader] = []

    def reader(self, number: int = 0) -> Reader:
        self._readers.append(Reader(self.address, self.tokens[number]))
        return self._readers[-1]

    def close(self) -> None:
        for reader in self._readers:
            reader.close()


@pytest.fixture
def site(study: Study, place: str | None) -> Iterator[Site]:
    with Database(study, place, patience=0.5) as db, serving(db) as address:
        opened = Site(address, db, [one.token for one in db.create_invitations(3)])
        yield opened
        opened.close()


@pytest.fixture
def local(study: Study) -> Iterator[Site]:
    """The same with the study's own file alone."""
    with Database(study, patience=0.5) as db, serving(db) as address:
        opened = Site(address, db, [one.token for one in db.create_invitations(3)])
        yield opened
        opened.close()


def test_a_person_without_scripts_answers_everything(site: Site) -> None:
    reader = site.reader()
    assert "Which feeling does each text express?" in reader.joined.text
    assert "Begin" in reader.joined.text
    reader.open()
    assert len(reader.items) == 10
    second = reader.submit("positive")
    assert second.url.query == b"page=1"
    assert len(reader.items) == 10
    thanks = reader.submit("negative")
    assert "All 20 texts you were given are answered and saved" in thanks.text
    assert sorted(one.label for one in site.db.latest_answers()) == ["negative"] * 10 + ["positive"] * 10
    # Another device, the same link: nothing is lost, and the last page can be looked at again.
    elsewhere = site.reader()
    assert "Continue where you left off" in elsewhere.joined.text
    assert elsewhere.given(elsewhere.open("/work?page=1")) == 10


def test_what_is_missing_is_marked_and_the_rest_is_saved(local: Site) -> None:
    reader = local.reader()
    reader.open()
    body = {"form": reader.form, "page": "0", reader.fields[0]: "positive"}
    reply = reader.client.post("/answers", data=body)
    assert reply.url.query == b"page=0&missing=1"
    assert reply.text.count("Not answered yet") == 9
    assert len(local.db.latest_answers()) == 1


def test_a_change_and_an_answer_taken_back(local: Site) -> None:
    reader = local.reader()
    reader.open()
    field = reader.fields[0]
    assert reader.send({field: "positive"}, mark="a" * 16).json() == {"saved": 1}
    assert reader.send({field: "negative"}, mark="b" * 16).json() == {"saved": 1}
    assert [one.label for one in local.db.latest_answers()] == ["negative"]
    assert reader.send({field: ""}, mark="c" * 16).json() == {"saved": 1}
    assert local.db.latest_answers() == []


def test_a_double_submission_counts_once(site: Site) -> None:
    reader = site.reader()
    reader.open()
    for _ in range(2):
        assert reader.send({reader.fields[0]: "positive"}, mark="a" * 16).status_code == 200
    for _ in range(2):
        reader.client.post("/answers", data={"form": reader.form, reader.fields[1]: "neutral"})
    assert sorted(one.label for one in site.db.latest_answers()) == ["neutral", "positive"]


def test_two_people_at_once(site: Site) -> None:
    first, second = site.reader(0), site.reader(1)
    first.open()
    second.open()
    assert set(first.items) == set(second.items)
    first.submit("positive")
    second.submit("negative")
    by_person = {one.annotator: one.label for one in site.db.latest_answers()}
    assert by_person == {"a1": "positive", "a2": "negative"}
    assert len(site.db.latest_answers()) == 20


@pytest.mark.parametrize("token", ["forged", "a" * 32, "x" * 5000, "%00", "ä", "' or 1=1 --"])
def test_a_forged_link_opens_nothing(site: Site, token: str) -> None:
    reply = httpx.get(f"{site.address}/join/{token}")
    assert reply.status_code == 403
    assert "You need your private link" in reply.text
    assert "set-cookie" not in reply.headers
    for where in ("/", "/work"):
        cookie = {"Cookie": f"{_cookie(site)}=forged"}
        assert httpx.get(f"{site.address}{where}", headers=cookie).status_code == 403
        assert httpx.get(f"{site.address}{where}").status_code == 403


def _cookie(site: Site) -> str:
    return f"evenhand_{site.db.study.id[:16]}"


def test_a_link_of_another_study_opens_nothing(tmp_path: Path, local: Site) -> None:
    other = make_study(tmp_path / "other")
    with Database(other) as db:
        (made,) = db.create_invitations(1)
    assert httpx.get(f"{local.address}/join/{made.token}").status_code == 403


def test_items_of_other_people_and_studies_are_out_of_reach(local: Site) -> None:
    first = local.reader()
    first.open()
    others = sorted(set(local.db.study.items()["item_id"]) - set(first.items))
    for item in (others[0], "0" * 16, "", "../../etc/passwd"):
        reply = first.send({f"a.{item}.sentiment": "positive"}, mark="a" * 16)
        assert reply.status_code == 422
        assert reply.json()["error"].startswith("The form has an answer ")
    # All or nothing: a good answer beside a bad one is not stored either.
    assert first.send({first.fields[0]: "positive", f"a.{others[0]}.sentiment": "neutral"}).status_code == 422
    assert local.db.latest_answers() == []


@pytest.mark.parametrize("label", ["excellent", "POSITIVE", "8", "positive\x00", "<script>", "-1"])
def test_a_label_outside_the_scale_is_refused(local: Site, label: str) -> None:
    reader = local.reader()
    reader.open()
    assert reader.send({reader.fields[0]: label}, mark="a" * 16).status_code == 422
    item = reader.items[0]
    assert reader.send({f"a.{item}.colour": "positive"}).status_code == 422
    assert local.db.latest_answers() == []


@pytest.mark.parametrize(
    ("length", "declared"), [(b"12", 12), (b"9" * 40, 10**19 - 1), (b"\xb2", 0), (b"-1", 0), (b"", 0)]
)
def test_a_length_that_is_none_is_no_defect(length: bytes, declared: int) -> None:
    assert declared_length(Headers(raw=[(b"content-length", length)])) == declared


def test_a_field_of_a_megabyte_is_refused(local: Site) -> None:
    reader = local.reader()
    reader.open()
    assert reader.send({reader.fields[0]: "x" * (1 << 20)}).status_code == 413

    def parts() -> Iterator[bytes]:
        yield b"form=" + reader.form.encode()
        for _ in range(1 << 10):
            yield b"&" + b"x" * 1024

    # Also where its length is not declared.
    assert reader.client.post("/answers", content=parts()).status_code == 413
    assert reader.client.post("/answers", content=b"&".join([b"a=1"] * 5000)).status_code == 422
    assert reader.client.post("/answers", content=b"\xff\xfe=\x80").status_code == 422
    assert local.db.latest_answers() == []


def test_posts_from_other_sites_are_refused(local: Site) -> None:
    reader = local.reader()
    reader.open()
    answer = {reader.fields[0]: "positive"}
    assert reader.send(answer, **{"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert reader.send(answer, Origin="https://evil.example").status_code == 403
    assert reader.send(answer, Origin="null").status_code == 403
    assert reader.send(answer, Origin="http://[::").status_code == 403
    other = local.reader(1)
    other.open()
    form, reader.form = reader.form, other.form
    assert reader.send(answer).status_code == 403
    reader.form = ""
    assert reader.send(answer).status_code == 403
    reader.form = "ü"
    assert reader.send(answer).status_code == 403
    reader.form = form
    assert local.db.latest_answers() == []
    assert reader.send(answer, mark="not hex").status_code == 422
    assert reader.send(answer, Origin=local.address, **{"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_headers_cookie_and_methods(local: Site) -> None:
    joined = httpx.get(f"{local.address}/join/{local.tokens[0]}")
    assert joined.status_code == 303
    assert joined.headers["location"] == "/"
    cookie = joined.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie
    for where in ("/", "/static/annotate.js", "/nowhere", "/join/forged"):
        headers = httpx.get(f"{local.address}{where}").headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
        assert "server" not in headers
    assert httpx.get(f"{local.address}/").headers["cache-control"] == "no-store"
    assert (
        httpx.get(f"{local.address}/static/annotate.js").headers["cache-control"] == "public, max-age=86400"
    )
    assert httpx.get(f"{local.address}/static/../web.py").status_code == 404
    assert httpx.get(f"{local.address}/answers").status_code == 404
    assert httpx.get(f"{local.address}/", headers={"Host": "evil.example"}).status_code == 400


def test_headers_without_end_are_refused(local: Site) -> None:
    """What is not whole after 16 KiB is not waited for; a browser needs one."""
    port = int(local.address.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + b"a" * (20 << 10))
        assert line.recv(12) == b"HTTP/1.1 400"


def test_an_https_address_makes_cookies_secure(study: Study) -> None:
    with Database(study) as db:
        (made,) = db.create_invitations(1)
        app = create_app(db, base="https://study.example")
        with TestClient(app, base_url="https://study.example", follow_redirects=False) as client:
            reply = client.get(f"/join/{made.token}")
            assert "Secure" in reply.headers["set-cookie"]
            assert reply.headers["strict-transport-security"] == "max-age=31536000"
            # A proxy may put its own idea of the host into the request; the origin is what people see.
            form = re.search(r'name="form" value="([0-9a-f]+)"', client.get("/work").text)
            assert form
            headers = {
                "Host": "127.0.0.1:8765",
                "Origin": "https://study.example",
                "Accept": "application/json",
            }
            assert client.post("/answers", data={"form": form[1]}, headers=headers).status_code == 200
            headers["Origin"] = "https://evil.example"
            assert client.post("/answers", data={"form": form[1]}, headers=headers).status_code == 403


def test_who_asks_too_often_waits() -> None:
    now = [0.0]
    bucket = RateLimiter(rate=2.0, burst=3, clock=lambda: now[0])
    assert [bucket.take("one") for _ in range(4)] == [True, True, True, False]
    assert bucket.take("other")
    now[0] = 0.5  # half a second at two a second: one more
    assert [bucket.take("one") for _ in range(2)] == [True, False]
    now[0] = 100.0  # never more than the burst
    assert [bucket.take("one") for _ in range(4)] == [True, True, True, False]


def test_the_limit_answers_429() -> None:
    # A clock that stands still: what came before is never forgiven, however slow the machine is.
    guard = _guard(lambda: 0.0)
    client = TestClient(guard)
    codes = [client.get("/").status_code for _ in range(BURST + 1)]
    assert codes == [200] * BURST + [429]
    refused = client.get("/")
    assert refused.headers["retry-after"] == "2"
    assert refused.headers["x-frame-options"] == "DENY"
    # Nor is a cookie that is no link a way around it.
    assert client.get("/", headers={"Cookie": "evenhand=other"}).status_code == 429
    client.close()


def test_strangers_use_up_nothing_of_people_with_links() -> None:
    """All come from one address, as behind a proxy that says nothing of them."""
    client = TestClient(_guard(lambda: 0.0, "one", "two"))
    while client.get("/join/guessed").status_code == 200:
        pass
    assert client.get("/", headers={"Cookie": "evenhand=forged"}).status_code == 429
    for path, cookie in (("/join/one", ""), ("/work", "evenhand=two")):
        codes = [client.get(path, headers={"Cookie": cookie}).status_code for _ in range(BURST + 1)]
        assert codes == [200] * BURST + [429]
    client.close()


def test_a_link_made_while_the_app_is_served_is_known_within_a_second() -> None:
    now, made = [0.0], {"one"}
    looks = []

    def read() -> frozenset[str]:
        looks.append(now[0])
        return frozenset(made)

    links = Links(read, str, lambda: now[0])

    async def holders(*tokens: str) -> list[str | None]:
        return await asyncio.gather(*map(links.holder, tokens))

    async def come() -> None:
        # At the start many come at once, and nobody is taken for a stranger before the links are read.
        assert await holders("one", "new", "one") == ["one", None, "one"]
        made.add("new")
        assert await holders("new") == [None]
        now[0] = 1.0
        assert await holders(*["forged"] * 50, "new") == [None] * 50 + ["new"]

    asyncio.run(come())
    assert looks == [0.0, 1.0]


def test_links_read_last_stand_while_the_database_is_gone() -> None:
    answers = iter([frozenset({"one"})])

    def read() -> frozenset[str]:
        for known in answers:
            return known
        raise DatabaseError("gone")

    links = Links(read, str, iter(range(100)).__next__)
    assert asyncio.run(links.holder("one")) == "one"
    assert asyncio.run(links.holder("other")) is None
    assert asyncio.run(links.holder("one")) == "one"


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:0db8:0001:0002"),
        ("2001:db8:1:2::", "2001:0db8:0001:0002"),
        ("::ffff:203.0.113.7", "::ffff:203.0.113.7"),
        ("", ""),
        ("unknown", "unknown"),
    ],
)
def test_one_customer_of_ipv6_is_one_stranger(address: str, network: str) -> None:
    assert client_network(address) == network


def _until_refused(address: str, forwarded: Callable[[int], str]) -> int:
    """How many requests with these headers are answered before one is not."""
    with httpx.Client(base_url=address) as client:
        for number in range(BURST + 10):
            headers = {"X-Forwarded-For": forwarded(number)}
            if client.get("/join/guessed", headers=headers).status_code == 429:
                return number
    return BURST + 10


@pytest.fixture
def _never_forgiven(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, requests that came before count."""
    monkeypatch.setattr("evenhand.annotate.web_app.RATE", 0.0)


@pytest.mark.usefixtures("_never_forgiven")
def test_nobody_is_believed_where_they_come_from(study: Study) -> None:
    with Database(study) as db, serving(db) as address:
        assert _until_refused(address, lambda number: f"192.0.2.{number}") == BURST


@pytest.mark.usefixtures("_never_forgiven")
def test_a_trusted_proxy_says_where_strangers_come_from(study: Study) -> None:
    with Database(study) as db, serving(db, ["127.0.0.1/32", "10.0.0.0/8"]) as address:
        # What a stranger writes stands before what proxies add: the last address that is no proxy's counts.
        assert _until_refused(address, lambda number: f"192.0.2.{number}, 203.0.113.1, 10.1.1.1") == BURST
        assert httpx.get(address, headers={"X-Forwarded-For": "203.0.113.1"}).status_code == 429
        assert httpx.get(address, headers={"X-Forwarded-For": "203.0.113.2, 10.9.9.9"}).status_code == 403
        assert httpx.get(address, headers={"X-Forwarded-For": "203.0.113.1, 203.0.113.3"}).status_code == 403


def _guard(clock: Callable[[], float], *links: str) -> RequestGuard:
    """A guard before an app that answers everything; a link is its own digest."""
    known = Links(lambda: frozenset(links), str, lambda: 0.0)
    return RequestGuard(PlainTextResponse("here"), links=known, cookie="evenhand", clock=clock)


def test_texts_are_shown_and_never_run(tmp_path: Path) -> None:
    study = make_study(tmp_path / "s", items=3, checks=False)
    evil = '<script>alert(1)</script> & "quoted" \u202e'
    items = study.items()
    items = items.with_columns(items["text"].str.replace("a quiet day", evil, literal=True))
    items.write_parquet(study.folder / "items.parquet")
    with Database(study) as db, serving(db) as address:
        reader = Reader(address, db.create_invitations(1)[0].token)
        page = reader.open().text
        reader.close()
    assert "<script>alert" not in page
    assert html.escape('<script>alert(1)</script> & "quoted" ', quote=True).replace("&quot;", "&#34;") in page


def test_nobody_sees_group_score_or_method(tmp_path: Path) -> None:
    study = make_study(tmp_path / "s", task="likert", items=8, methods=("ours-one", "ours-two"))
    items = study.items().with_columns(text=study.items()["text"].str.replace(r" \(ours-.*\)", ""))
    items.write_parquet(study.folder / "items.parquet")
    with Database(study) as db, serving(db) as address:
        reader = Reader(address, db.create_invitations(1)[0].token)
        page = reader.open().text
        reader.close()
    assert "<u>About Person" in page
    for word in ("ours", "g=a", "is_check", "expected", "score"):
        assert word not in page


def test_a_locked_database_keeps_the_answers_on_the_page(local: Site) -> None:
    reader = local.reader()
    reader.open()
    with _locked(local.db.study.labels_file):
        assert reader.send({reader.fields[0]: "positive"}, mark="a" * 16).status_code == 503
        reply = reader.submit("negative")
    assert reply.status_code == 503
    assert "Your answers are not saved yet" in reply.text
    assert local.db.latest_answers() == []
    # The page holds what was sent; sending it again is all there is to do.
    fields = dict(_hidden(reply.text))
    assert len(fields) == 12
    assert reader.client.post("/answers", data=fields).url.query == b"page=1"
    assert len(local.db.latest_answers()) == 10


def test_a_database_that_is_gone_is_a_clear_page(local: Site) -> None:
    reader = local.reader()
    reader.open()
    away = local.db.study.labels_file.with_suffix(".away")
    local.db.close()
    local.db.study.labels_file.rename(away)
    local.db.study.labels_file.mkdir()
    reply = reader.client.get("/work")
    assert reply.status_code == 503
    assert "The study cannot be reached" in reply.text
    assert reader.send({reader.fields[0]: "positive"}).status_code == 503
    local.db.study.labels_file.rmdir()
    away.rename(local.db.study.labels_file)
    assert reader.send({reader.fields[0]: "positive"}).status_code == 200
    assert len(local.db.latest_answers()) == 1


def test_somebody_forgotten_is_a_stranger(local: Site) -> None:
    reader = local.reader()
    reader.open()
    reader.submit("positive")
    local.db.erase_person("a1")
    assert reader.client.get("/work").status_code == 403
    assert reader.send({reader.fields[0]: "negative"}).status_code == 403
    assert {one.label for one in local.db.latest_answers()} == {"positive"}


class _locked:
    """Another writer that does not let go."""

    def __init__(self, path: Path) -> None:
        self.holder = sqlite3.connect(path, isolation_level=None)

    def __enter__(self) -> None:
        self.holder.execute("BEGIN IMMEDIATE")

    def __exit__(self, *_: object) -> None:
        self.holder.execute("ROLLBACK")
        self.holder.close()


def _hidden(page: str) -> list[tuple[str, str]]:
    return re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page)
