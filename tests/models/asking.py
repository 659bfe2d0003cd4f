"""Asks a model behind `host.Host`, once or with several answers in turn."""

from __future__ import annotations

from collections.abc import Iterator

from tests.models.host import Host, Reply

from evenhand.core.records import Completion, GenerationSpec, Request
from evenhand.models.endpoint import EndpointModel

SPEC = GenerationSpec(max_new_tokens=8, stop="none")
ONE = [Request("p", "The man", (0,))]


def model(host: Host, **options: object) -> EndpointModel:
    return EndpointModel(f"{host.url}#m", **options)  # type: ignore[arg-type]


def ask(host: Host, **options: object) -> Completion:
    (done,) = model(host, **options).generate(ONE, SPEC)
    return done


def in_turn(*replies: Reply) -> Iterator[Reply]:
    yield from replies
    while True:
        yield replies[-1]


def answer_in_turn(host: Host, *replies: Reply) -> None:
    turn = in_turn(*replies)
    host.answer = lambda asked: next(turn)
