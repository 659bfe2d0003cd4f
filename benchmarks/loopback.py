"""A server on this machine that answers every completion request at once with a tiny text.

    python benchmarks/loopback.py

Prints its port, then serves until it is ended. A bare asyncio protocol: what is measured is the client.
"""

from __future__ import annotations

import asyncio
import json

BODY = json.dumps(
    {
        "choices": [{"text": " sang well.", "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 3},
        "model": "tiny",
    }
).encode()
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY)


class Answers(asyncio.Protocol):
    """One connection: counts the bytes of each request, then answers."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            at = head.find(b"content-length:")
            size = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.buffer) < end + 4 + size:
                return
            self.buffer = self.buffer[end + 4 + size :]
            self.transport.write(HEAD + BODY)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Answers, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
