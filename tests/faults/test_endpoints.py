"""Hosts that fail, stall, cut short and lie: counted by reason; healed, they leave no trace."""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.faults.commands import write_suite
from typer.testing import CliRunner

from evenhand.cli.app import app
from evenhand.store.run import Run
from evenhand.store.schemas import SCHEMAS

pytest.importorskip("httpx")


def _body(prompt: str, **changed: object) -> bytes:
    words = ("good", "bad", "late", "glad")
    said = f" were {words[int(hashlib.sha256(prompt.encode()).hexdigest(), 16) % 4]} that day."
    usage = {"prompt_tokens": 5, "completion_tokens": 5}
    answer = {
        "id": "same",
        "model": "m-1",
        "choices": [{"text": said, "finish_reason": "stop"}],
        "usage": usage,
    }
    return json.dumps({**answer, **changed}).encode()


def _whole(body: bytes, *, status: str = "200 OK", header: str = "Content-Type: application/json") -> bytes:
    return f"HTTP/1.1 {status}\r\n{header}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _sends(reply: Callable[[str], bytes]) -> Callable[[socket.socket, str], None]:
    # The host hangs up after a fault and says so: else a client might ask again while it closes.
    head = b"Connection: close\r\nContent-Length"
    return lambda peer, prompt: peer.sendall(reply(prompt).replace(b"Content-Length", head, 1))


def _reset(peer: socket.socket, prompt: str) -> None:
    """Half a body, then a reset."""
    peer.sendall(_whole(_body(prompt))[:-40])
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def _endless(peer: socket.socket, prompt: str) -> None:
    peer.sendall(b"HTTP/1.1 200 OK\r\n")
    for number in range(100_000):
        peer.sendall(f"X-{number}: {'x' * 1000}\r\n".encode())


def _drips(content: Callable[[str], bytes]) -> Callable[[socket.socket, str], None]:
    def drip(peer: socket.socket, prompt: str) -> None:
        for letter in content(prompt):
            peer.sendall(bytes([letter]))
            time.sleep(0.05)

    return drip


FAULTS: dict[str, tuple[str, Callable[[socket.socket, str], None]]] = {
    "fails": ("http_500", _sends(lambda _: _whole(b"no", status="500 Oops"))),
    "busy": ("http_429", _sends(lambda _: _whole(b"", status="429 Wait", header="Retry-After: 0"))),
    "refuses": ("http_400", _sends(lambda _: _whole(b"{}", status="400 Bad Request"))),
    "resets": ("connection", _reset),
    "closes": ("connection", lambda peer, prompt: peer.close()),
    "endless header": ("connection", _endless),
    "no HTTP": ("connection", _sends(lambda _: b"SSH-2.0-OpenSSH_9.6\r\n\r\n")),
    "drips a header": ("timeout", _drips(lambda prompt: b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 500)),
    "drips a body": ("timeout", _drips(lambda prompt: _whole(b" " * 500 + _body(prompt)))),
    "stalls": ("timeout", lambda peer, prompt: time.sleep(5.0)),
    "cut JSON": ("bad_answer", _sends(lambda prompt: _whole(_body(prompt)[:-20]))),
    "a page": (
        "bad_answer",
        _sends(lambda _: _whole(b"<html>log in</html>", header="Content-Type: text/x")),
    ),
    "no choices": ("bad_answer", _sends(lambda prompt: _whole(_body(prompt, choices=[])))),
    "no text": ("bad_answer", _sends(lambda prompt: _whole(_body(prompt, choices=[{"text": 7}])))),
    "no UTF-8": ("bad_answer", _sends(lambda _: _whole(b'{"choices": [{"text": "\xff\xfe"}]}'))),
    "gigantic": ("too_large", _sends(lambda prompt: _whole(_body(prompt, pad="x" * 300_000)))),
}
"""What a host may do, and how the text is counted that it was asked for."""


class Host:
    """Answers by prompt alone; misbehaves for one prompt in ``every``, a fault each, until it heals."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self.is_ill, self.every = True, 7
        self.lies: dict[str, object] = {}
        self._faults = list(FAULTS)
        self._of: dict[str, str] = {}
        self._lock = threading.Lock()

    def serve(self, peer: socket.socket) -> None:
        with peer:
            while (prompt := _asked(peer)) is not None:
                fault = self._fault(prompt)
                try:
                    if fault is None:
                        peer.sendall(_whole(_body(prompt, **self.lies)))
                        continue
                    FAULTS[fault][1](peer, prompt)
                except OSError:
                    pass
                return

    def _fault(self, prompt: str) -> str | None:
        with self._lock:
            # The first is answered: a host that never answered is an error, not a failed text.
            if prompt not in self._of:
                is_next = len(self._of) % self.every == self.every - 1 and self._faults
                self._of[prompt] = self._faults.pop() if is_next else ""
            return self._of[prompt] or None if self.is_ill else None


def _asked(peer: socket.socket) -> str | None:
    """The prompt of the next request; None where there is none."""
    data = b""
    try:
        while b"\r\n\r\n" not in data:
            data += (more := peer.recv(65536))
            if not more:
                return None
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += peer.recv(65536)
    except OSError:
        return None
    return str(json.loads(body)["prompt"])


@contextmanager
def _hosting() -> Iterator[Host]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = Host(server.getsockname()[1])

        def accept() -> None:
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=host.serve, args=(peer,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield host
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    write_suite(tmp_path)
    with (tmp_path / "e.toml").open("a") as settings:
        settings.write("[model]\noptions = { timeout = 1.2 }\n[generation]\nsamples = 1\n")
    monkeypatch.chdir(tmp_path)
    for name, value in (("ATTEMPTS", 2), ("FIRST_WAIT", 0.001), ("_FRAME", 1 << 17)):
        monkeypatch.setattr(f"evenhand.models.endpoint.{name}", value)
    with _hosting() as made:
        yield made


def _audit(host: Host, *more: str) -> tuple[int, str]:
    arguments = ["audit", f"endpoint:{host.url}#m", "--config", "e.toml", "--limit", "120", *more]
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.output


def test_faults_are_counted_and_healed(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, said = _audit(host, "--out", "run")
    assert code == 3, said
    assert f"{len(FAULTS)} " in said
    texts = Run.open("run").table("generations")
    assert texts.height == texts["id"].n_unique() == 120
    assert Counter(texts["failure"].drop_nulls()) == Counter(reason for reason, _ in FAULTS.values())
    again, _ = _audit(host, "--out", "run")
    assert again == 3  # what failed is kept until it is asked for again
    host.is_ill = False
    host.lies = {"model": "another"}
    code, said = _audit(host, "--out", "run", "--retry-failed")
    assert code == 0, said
    assert Run.open("run").manifest["served_by"]["model"] == "another"
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "another cache"))
    code, said = _audit(host, "--out", "clean")
    assert code == 0, said
    for name in SCHEMAS:
        assert Run.open("run").table(name).equals(Run.open("clean").table(name)), name


def test_more_choices_than_asked_are_one(host: Host) -> None:
    """One text was asked for: the first is taken, whatever else the host sends."""
    host.is_ill = False
    choices = [{"text": f" were {word}.", "finish_reason": "stop"} for word in ("one", "two", "three")]
    host.lies = {"choices": choices}
    code, said = _audit(host, "--out", "run")
    assert code == 0, said
    assert set(Run.open("run").table("generations")["text"]) == {" were one."}


def test_a_host_that_fails_too_often_ends_the_run_and_loses_nothing(host: Host) -> None:
    host.every = 2
    limit = ("--limit", "30", "--out", "run")
    code, said = _audit(host, *limit)
    assert code != 0, said
    host.is_ill = False
    code, said = _audit(host, *limit)
    assert code == 0, said
    assert Run.open("run").table("generations")["failure"].null_count() == 30
