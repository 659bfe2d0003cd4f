"""Requests a second of the endpoint back-end against a server on this machine that answers at once.

    python benchmarks/bench_endpoint.py [--requests 4000] [--concurrency 200] [--out FILE.json]

The server runs in a process of its own on the same cores. First the gate: every request has its answer. The
figure is requests a second of wall time, server included; CPU time of the client alone is told beside it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness import Way, gate, parser, result, take_turns, write

from evenhand.core.records import GenerationSpec, Request
from evenhand.models.endpoint import EndpointModel

SPEC = GenerationSpec(max_new_tokens=8, top_k=0, stop="none")


@contextmanager
def serving() -> Iterator[str]:
    """The address of a running server."""
    command = [sys.executable, str(Path(__file__).with_name("loopback.py"))]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
    finally:
        server.terminate()
        server.wait()


def asked(model: EndpointModel, count: int) -> int:
    requests = [Request(f"p{number}", "The singer", (0,)) for number in range(count)]
    return sum(answer.text == " sang well." for answer in model.generate(requests, SPEC))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--requests", type=int, default=4000)
    options.add_argument("--concurrency", type=int, default=200)
    args = options.parse_args()
    with serving() as url:
        model = EndpointModel(f"{url}#tiny", concurrency=args.concurrency)
        answered = asked(model, args.requests)
        gate(answered == args.requests, f"{args.requests - answered} of {args.requests} have no answer")
        ways = {"evenhand": Way(lambda: asked(model, args.requests), args.requests)}
        turns = take_turns(ways, rounds=args.rounds)
    found = result(
        turns,
        ours="evenhand",
        unit="requests/s",
        gate=f"{answered:,} of {args.requests:,} answered",
        data="loopback server",
        concurrency=args.concurrency,
        requests_per_second=round(turns.rate("evenhand", "wall"), 1),
    )
    write(found, args.out)


if __name__ == "__main__":
    main()
