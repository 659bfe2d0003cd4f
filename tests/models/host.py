"""A real HTTP server that answers as a test tells it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Reply:
    """One response; ``cut`` sends fewer bytes than announced, ``stall`` waits before the body."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int = 0
    stall: threading.Event | None = None


@dataclass
class Asked:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, object]


@dataclass
class Host:
    """Where the server is, what it was asked, and what it answers."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    answer: Callable[[Asked], Reply] = lambda asked: text_reply(" sang.")
    under_way: int = 0
    most_under_way: int = 0


def text_reply(text: str | None, **choice: object) -> Reply:
    """A good answer of the completions interface."""
    body = {
        "choices": [{"text": text, "finish_reason": "stop", **choice}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 3},
        "model": "m-2",
        "system_fingerprint": "fp",
    }
    return Reply(body=json.dumps(body).encode())


def chat_reply(content: str | None, *, finish: str = "stop", **message: object) -> Reply:
    """A good answer of the chat interface."""
    choice = {"message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    return Reply(body=json.dumps({"choices": [choice]}).encode())


def error_reply(status: int, message: str = "", code: str | None = None, **headers: str) -> Reply:
    """An error with OpenAI's body."""
    body = json.dumps({"error": {"message": message, "code": code}}).encode()
    return Reply(status, body, {key.replace("_", "-"): value for key, value in headers.items()})


@contextmanager
def serving() -> Iterator[Host]:
    """A running server on a free port of this machine."""
    host = Host()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            asked = Asked(self.path, dict(self.headers.items()), json.loads(self.rfile.read(length)))
            with lock:
                host.asked.append(asked)
                host.under_way += 1
                host.most_under_way = max(host.most_under_way, host.under_way)
            try:
                self._send(host.answer(asked))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True
            finally:
                with lock:
                    host.under_way -= 1

        def _send(self, reply: Reply) -> None:
            self.send_response(reply.status)
            for key, value in reply.headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(reply.body) + reply.cut))
            self.end_headers()
            if reply.stall is not None:
                reply.stall.wait(5)
            self.wfile.write(reply.body)
            self.close_connection = reply.cut > 0

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    host.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
