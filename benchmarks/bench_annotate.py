"""How long an answer takes until it is on the disk and acknowledged, while fifty people answer at once.

    python benchmarks/bench_annotate.py [--people 50] [--rate 5] [--seconds 30] [--out FILE.json]

The server runs in a process of its own on the same cores and is spoken to over HTTP. All come at the same
moment, then send ``rate`` answers a second in all, at random, each opening a new page when one is done. The
gate: every acknowledged answer is stored, once. Figures are milliseconds of wall time, client included;
``page_ms`` holds the moment when all come at once.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
from harness import FORMAT, gate, machine, parser, write

from evenhand.annotate.database import Database
from evenhand.annotate.label_set import read_labels
from evenhand.annotate.study import Study, StudyConfig, parse_task, task_text, write_study
from evenhand.annotate.study_creation import ItemCandidate, items_table


@dataclass
class Timings:
    answers: list[float] = field(default_factory=list)
    pages: list[float] = field(default_factory=list)
    failed: int = 0


class Reader:
    def __init__(self, client: httpx.AsyncClient, token: str, timings: Timings) -> None:
        self.client, self.token, self.timings = client, token, timings
        self.form, self.fields = "", []

    async def join(self) -> None:
        await self.client.get(f"/join/{self.token}")
        await self.page()

    async def page(self) -> None:
        start = time.perf_counter()
        text = (await self.client.get("/work")).text
        self.timings.pages.append(time.perf_counter() - start)
        self.form = re.search(r'name="form" value="([0-9a-f]+)"', text).group(1)  # type: ignore[union-attr]
        checked = set(re.findall(r'name="(a\.[^"]+)" value="[^"]*" checked', text))
        self.fields = [f for f in dict.fromkeys(re.findall(r'name="(a\.[^"]+)"', text)) if f not in checked]

    async def answer(self) -> None:
        if not self.fields:
            await self.page()
        body = {"form": self.form, "mark": secrets.token_hex(12), self.fields.pop(): "neutral"}
        start = time.perf_counter()
        reply = await self.client.post("/answers", data=body, headers={"Accept": "application/json"})
        self.timings.answers.append(time.perf_counter() - start)
        self.timings.failed += reply.status_code != 200


def make(folder: Path, people: int) -> tuple[Study, list[str]]:
    text = task_text("sentiment")
    texts = [
        ItemCandidate(str(n), f"Person went to town on day {n}.", "", str(n), "g=a", "m", 0.0, None)
        for n in range(1000)
    ]
    settings = StudyConfig(id=secrets.token_hex(16), annotators=3)
    table = items_table(texts, parse_task(text, where="sentiment"))
    study = write_study(folder, task=text, settings=settings, items=table)
    with Database(study) as db:
        return study, [one.token for one in db.create_invitations(people)]


def port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


async def crowd(address: str, tokens: list[str], *, seconds: float, rate: float) -> Timings:
    timings = Timings()
    limits = httpx.Limits(max_connections=len(tokens) + 10)
    transport = httpx.AsyncHTTPTransport(limits=limits)
    clients = [
        httpx.AsyncClient(base_url=address, transport=transport, follow_redirects=True, timeout=30)
        for _ in tokens
    ]
    readers = [Reader(client, token, timings) for client, token in zip(clients, tokens, strict=True)]
    await asyncio.gather(*(reader.join() for reader in readers))
    rng = np.random.default_rng(0)
    # Answers come at random moments whether or not earlier ones are done: a slow server gets no relief.
    moments = np.sort(rng.uniform(0, seconds, int(seconds * rate)))
    who = np.resize(rng.permutation(len(readers)), len(moments))
    locks = [asyncio.Lock() for _ in readers]
    start = time.perf_counter()

    async def sit(moment: float, number: int) -> None:
        await asyncio.sleep(start + moment - time.perf_counter())
        async with locks[number]:
            await readers[number].answer()

    await asyncio.gather(*map(sit, moments.tolist(), who.tolist()))
    await transport.aclose()
    return timings


def quantiles(values: list[float]) -> dict[str, float]:
    return {f"p{share}": round(float(np.quantile(values, share / 100)) * 1000, 1) for share in (50, 95, 99)}


@contextmanager
def serving(study: Study) -> Iterator[str]:
    """The address of the app in a process of its own, as `evenhand annotate serve` starts it."""
    listening = port()
    command = [sys.executable, "-m", "evenhand", "annotate", "serve", str(study.folder)]
    server = subprocess.Popen([*command, "--port", str(listening)], stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", listening), timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{listening}"
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    options = parser(__doc__, rounds=1)
    options.add_argument("--seconds", type=float, default=30)
    options.add_argument("--people", type=int, default=50)
    options.add_argument("--rate", type=float, default=5)
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        study, tokens = make(Path(folder) / "study", args.people)
        with serving(study) as address:
            timings = asyncio.run(crowd(address, tokens, seconds=args.seconds, rate=args.rate))
        stored = read_labels(study).height
    sent = len(timings.answers)
    gate(not timings.failed, f"{timings.failed} of {sent} answers were refused")
    gate(stored == sent, f"{sent} answers were acknowledged and {stored} are stored")
    found = {
        "format": FORMAT,
        "gate": f"{stored:,} of {sent:,} acknowledged answers are stored",
        "data": "1,000 texts made up",
        "unit": "ms",
        "people": args.people,
        "seconds": args.seconds,
        "answers_per_second": round(sent / args.seconds, 2),
        "answer_ms": quantiles(timings.answers),
        "page_ms": quantiles(timings.pages),
        "machine": machine(),
    }
    write(found, args.out)


if __name__ == "__main__":
    main()
