"""Small studies, a running server and a person who answers, for the tests of the annotation app."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import httpx

from evenhand.annotate.database import Database
from evenhand.annotate.study import PageLayout, Study, StudyConfig, parse_task, task_text, write_study
from evenhand.annotate.study_creation import ItemCandidate, items_table
from evenhand.annotate.study_server import build_server
from evenhand.annotate.web_app import create_app


def candidate(
    number: int, *, group: str = "g=a", method: str = "m", score: float | None = 0.0, tail: str = ""
) -> ItemCandidate:
    return ItemCandidate(
        text_id=f"{method}-{number}",
        text=f"About Person, number {number}: a quiet day in town.{tail}",
        prompt=f"About Person, number {number}:",
        pair=f"p{number}",
        group=group,
        method=method,
        score=score,
        score_label=None,
    )


def make_study(
    folder: Path,
    *,
    task: str = "sentiment",
    items: int = 20,
    annotators: int = 3,
    seed: int = 0,
    checks: bool = True,
    methods: tuple[str, ...] = ("m",),
    layout: PageLayout | None = None,
    hold_hours: float = 24.0,
) -> Study:
    """A study of ``items`` texts by each of the methods."""
    text = task_text(task) if checks else task_text(task).partition("[[checks]]")[0]
    chosen = [
        candidate(number, method=method, tail=f" ({method})" if len(methods) > 1 else "")
        for number in range(items)
        for method in methods
    ]
    settings = StudyConfig(
        id=uuid4().hex, seed=seed, annotators=annotators, layout=layout, hold_hours=hold_hours
    )
    items_of = items_table(chosen, parse_task(text, where=task))
    return write_study(folder, task=text, settings=settings, items=items_of)


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@contextlib.contextmanager
def serving(db: Database, proxies: Sequence[str] = ()) -> Iterator[str]:
    """The app in a thread of this process, over real HTTP; gives its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = build_server(create_app(db), proxies)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.started
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=20)


@contextlib.contextmanager
def served(study: Study, port: int, *, url: str | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """The app in a process of its own, as `annotate serve` starts it; killed at the end."""
    command = [sys.executable, "-m", "evenhand", "annotate", "serve", str(study.folder), "--port", str(port)]
    process = subprocess.Popen(
        [*command, *(["--database", url] if url else [])],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        wait_for(port, process)
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(port: int, process: subprocess.Popen[bytes], *, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None:
            raise AssertionError(process.communicate()[1].decode())
        time.sleep(0.05)
    raise AssertionError(f"nothing listens at {port} after {seconds} s")


class Reader:
    """A person with a link and a browser without scripts."""

    def __init__(self, address: str, token: str) -> None:
        self.client = httpx.Client(base_url=address, follow_redirects=True, timeout=30)
        self.joined = self.client.get(f"/join/{token}")
        self.form, self.page, self.fields = "", "", []

    def open(self, where: str = "/work") -> httpx.Response:
        reply = self.client.get(where)
        self.read(reply)
        return reply

    def read(self, reply: httpx.Response) -> None:
        found = re.search(r'name="form" value="([0-9a-f]+)"', reply.text)
        self.form = found.group(1) if found else ""
        found = re.search(r'name="page" value="(\d+)"', reply.text)
        self.page = found.group(1) if found else ""
        self.fields = list(dict.fromkeys(re.findall(r'name="(a\.[^"]+)"', reply.text)))

    @property
    def items(self) -> list[str]:
        return list(dict.fromkeys(field.split(".")[1] for field in self.fields))

    @staticmethod
    def given(reply: httpx.Response) -> int:
        """How many answers a page shows."""
        return len(re.findall(r'<input type="radio"[^>]* checked', reply.text))

    def send(self, answers: dict[str, str], *, mark: str | None = None, **headers: str) -> httpx.Response:
        """Answers as the script sends them."""
        body = {"form": self.form, **answers} | ({"mark": mark} if mark else {})
        return self.client.post("/answers", data=body, headers={"Accept": "application/json", **headers})

    def submit(self, label: str = "neutral") -> httpx.Response:
        """The page's form with the same answer everywhere."""
        body = {"form": self.form, "page": self.page, **dict.fromkeys(self.fields, label)}
        reply = self.client.post("/answers", data=body)
        self.read(reply)
        return reply

    def close(self) -> None:
        self.client.close()
