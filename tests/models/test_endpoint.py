"""A model behind an endpoint: what is asked, what comes back, and what stops it."""

from __future__ import annotations

import asyncio
import gzip
import logging
import threading
import time
from dataclasses import replace

import polars as pl
import pytest
from tests.models.asking import ONE, SPEC, answer_in_turn, ask, model
from tests.models.host import Asked, Host, Reply, chat_reply, error_reply, text_reply

from evenhand.audits.generator import ParallelModel
from evenhand.core import registry
from evenhand.core.errors import ModelError
from evenhand.core.records import Completion, Request
from evenhand.models.endpoint import EndpointModel

BOMB = gzip.compress(gzip.compress(bytes(1 << 24)))
"""A hundred bytes that are 16 MiB, and would be as quickly a terabyte."""


def test_a_completion_with_its_token_counts(host: Host) -> None:
    assert ask(host) == Completion("p", 0, " sang.", "stop", prompt_tokens=5, new_tokens=3)
    (asked,) = host.asked
    assert asked.path == "/v1/completions"
    assert {
        key: asked.body[key] for key in ("model", "prompt", "max_tokens", "temperature", "top_p", "top_k")
    } == {
        "model": "m",
        "prompt": "The man",
        "max_tokens": 8,
        "temperature": 1.0,
        "top_p": 0.95,
        "top_k": 40,
    }


def test_every_sample_is_one_request_with_its_own_seed(host: Host) -> None:
    requests = [Request("p", "The man", (0, 1, 2)), Request("q", "The man", (0,))]
    done = list(model(host).generate(requests, SPEC))
    assert {(item.request_id, item.sample) for item in done} == {("p", 0), ("p", 1), ("p", 2), ("q", 0)}
    seeds = {asked.body["seed"] for asked in host.asked}
    assert len(seeds) == 4
    list(model(host).generate(requests, SPEC))
    assert {asked.body["seed"] for asked in host.asked} == seeds


def test_neutral_settings_are_not_sent(host: Host) -> None:
    list(model(host).generate(ONE, replace(SPEC, top_k=0)))
    assert not {"top_k", "repetition_penalty", "repeat_penalty"} & set(host.asked[0].body)
    list(model(host).generate(ONE, replace(SPEC, repetition_penalty=1.2)))
    assert (host.asked[1].body["repetition_penalty"], host.asked[1].body["repeat_penalty"]) == (1.2, 1.2)


def test_chat_gives_an_instruction_and_drops_a_repeated_prompt(host: Host) -> None:
    host.answer = lambda asked: chat_reply("The man sang.")
    done = ask(host, chat=True)
    assert (done.text, done.finish, done.prompt_tokens) == (" sang.", "stop", None)
    (asked,) = host.asked
    assert asked.path == "/v1/chat/completions"
    messages = asked.body["messages"]
    assert isinstance(messages, list)
    assert [message["role"] for message in messages] == ["system", "user"]
    assert messages[1]["content"] == "The man"


def test_the_first_sentence_is_cut_here(host: Host) -> None:
    host.answer = lambda asked: text_reply(" sang. Then he left.")
    (done,) = model(host).generate(ONE, replace(SPEC, stop="sentence"))
    assert (done.text, done.finish) == (" sang.", "sentence")


def test_the_length_limit_is_told(host: Host) -> None:
    host.answer = lambda asked: text_reply(" sang and", finish_reason="length")
    assert ask(host).finish == "length"


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (Reply(body=b"<html>It works!</html>"), "bad_answer"),
        (Reply(body=b""), "bad_answer"),
        (Reply(body=b"[]"), "bad_answer"),
        (Reply(body=b'{"choices": []}'), "bad_answer"),
        (Reply(body=b'{"choices": [{"text": 7}]}'), "bad_answer"),
        (Reply(body=b'{"choices": [null]}'), "bad_answer"),
        (Reply(body=b"\xff\xfe"), "bad_answer"),
        (Reply(body=b"[" * 100_000), "bad_answer"),
        (Reply(body=b'{"choices": [{"text": "x"}], "n": ' + b"9" * 5000 + b"}"), "bad_answer"),
        (text_reply("bad", finish_reason="content_filter"), "content_filter"),
        (error_reply(400, "filtered", code="content_filter"), "content_filter"),
        (error_reply(400, "this model's context is 4096 tokens"), "http_400"),
        (error_reply(403, "not for you"), "http_403"),
        (Reply(418, b"\xff not JSON"), "http_418"),
        (Reply(body=BOMB, headers={"Content-Encoding": "zstd"}), "bad_answer"),
    ],
)
def test_what_is_no_text_is_a_failure_with_a_code(host: Host, reply: Reply, failure: str) -> None:
    host.answer = lambda asked: reply
    done = ask(host)
    assert (done.text, done.finish, done.failure) == (None, None, failure)
    assert len(host.asked) == 1


@pytest.mark.parametrize(
    ("reply", "failure"),
    [
        (chat_reply(None, refusal="I cannot do that."), "refused"),
        (chat_reply("", finish="content_filter"), "content_filter"),
        (chat_reply(None), "bad_answer"),
        (Reply(body=b'{"choices": [{"text": "of the other interface"}]}'), "bad_answer"),
    ],
)
def test_refusals_of_chat_models(host: Host, reply: Reply, failure: str) -> None:
    host.answer = lambda asked: reply
    assert ask(host, chat=True).failure == failure


def test_odd_usage_is_unknown_not_zero(host: Host) -> None:
    host.answer = lambda asked: Reply(
        body=b'{"choices": [{"text": "x"}], "usage": {"prompt_tokens": "5", "completion_tokens": -1}}'
    )
    done = ask(host)
    assert (done.text, done.prompt_tokens, done.new_tokens) == ("x", None, None)


@pytest.mark.parametrize("count", ["true", str(2**63), str(10**30), "1e3", "NaN"])
def test_a_count_no_table_can_hold_is_unknown(host: Host, count: str) -> None:
    usage = f'{{"prompt_tokens": {count}, "completion_tokens": 7}}'
    host.answer = lambda asked: Reply(body=f'{{"choices": [{{"text": "x"}}], "usage": {usage}}}'.encode())
    done = ask(host, max_tokens_total=1000)
    assert (done.text, done.prompt_tokens, done.new_tokens) == ("x", None, 7)


def test_the_largest_count_a_table_can_hold(host: Host) -> None:
    usage = f'{{"prompt_tokens": {2**63 - 1}}}'
    host.answer = lambda asked: Reply(body=f'{{"choices": [{{"text": "x"}}], "usage": {usage}}}'.encode())
    assert ask(host).prompt_tokens == 2**63 - 1


@pytest.mark.parametrize("chat", [False, True])
def test_half_a_character_is_marked_and_at_the_end_dropped(host: Host, chat: bool) -> None:
    host.answer = lambda asked: (chat_reply if chat else text_reply)(" \ud800sang \ud83d\ude00 and \ud83d")
    done = ask(host, chat=chat)
    assert done.text == " \ufffdsang \U0001f600 and "
    assert pl.DataFrame([done.text])[0, 0] == done.text


def test_an_odd_finish_is_a_stop(host: Host) -> None:
    host.answer = lambda asked: text_reply(" sang.", finish_reason=["length"])
    assert ask(host).finish == "stop"


def test_one_bad_item_does_not_stop_the_others(host: Host) -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(body=b"rubbish") if asked.body["prompt"] == "bad" else text_reply(" sang.")

    host.answer = answer
    requests = [Request("a", "bad", (0, 1)), Request("b", "good", (0, 1))]
    done = {(item.request_id, item.sample): item.failure for item in model(host).generate(requests, SPEC)}
    assert done == {("a", 0): "bad_answer", ("a", 1): "bad_answer", ("b", 0): None, ("b", 1): None}


def test_no_more_requests_under_way_than_allowed(host: Host) -> None:
    def answer(asked: Asked) -> Reply:
        time.sleep(0.01)
        return text_reply(" sang.")

    host.answer = answer
    done = list(model(host, concurrency=3).generate([Request("p", "The man", tuple(range(20)))], SPEC))
    assert len(done) == 20
    assert 2 <= host.most_under_way <= 3


def test_small_shards_do_not_hold_requests_back(host: Host) -> None:
    """The host answers nobody before requests of four shards are there."""
    all_there = threading.Barrier(8)

    def answer(asked: Asked) -> Reply:
        all_there.wait(timeout=30)
        return text_reply(f" {asked.body['prompt']}")

    host.answer = answer
    asked = model(host, concurrency=8)
    assert isinstance(asked, ParallelModel)
    shards = [[Request(f"p{shard}", f"{shard}", (0, 1))] for shard in range(8)]
    done = dict(asked.generate_each(iter(shards), SPEC))
    texts = {place: [(item.request_id, item.text) for item in items] for place, items in done.items()}
    assert texts == {place: [(f"p{place}", f" {place}")] * 2 for place in range(8)}
    assert host.most_under_way == 8


@pytest.mark.parametrize(
    ("reply", "options", "advice"),
    [
        (error_reply(401, "no key"), {}, "set a valid key in the environment variable EVENHAND_API_KEY"),
        (error_reply(404, "no such model"), {}, "or use chat messages (chat=true)"),
        (error_reply(404, "no such model"), {"chat": True}, "or use plain completions (chat=false)"),
        (
            error_reply(400, "Unrecognized request argument: top_k"),
            {},
            "set top_k to 0: the host does not support it",
        ),
    ],
)
def test_what_every_request_would_meet_is_an_error_at_once(
    host: Host, reply: Reply, options: dict[str, object], advice: str
) -> None:
    host.answer = lambda asked: reply
    with pytest.raises(ModelError) as caught:
        ask(host, **options)
    assert advice in str(caught.value)


def test_later_it_is_a_failure_of_the_item(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    asked = model(host)
    assert next(asked.generate(ONE, SPEC)).text == " sang."
    host.answer = lambda _: error_reply(401, "revoked")
    with caplog.at_level(logging.WARNING):
        done = list(asked.generate([Request("p", "The man", (0, 1, 2))], SPEC))
    assert {item.failure for item in done} == {"http_401"}
    assert sum("revoked" in record.getMessage() for record in caplog.records) == 1


def test_nobody_listening() -> None:
    with pytest.raises(ModelError, match=r"^http://127\.0\.0\.1:9/v1/completions cannot be reached: "):
        list(EndpointModel("http://127.0.0.1:9#m").generate(ONE, SPEC))


def test_the_token_cap_is_never_passed(host: Host) -> None:
    # Each answer counts 5 + 3 tokens; a request may need about 75, so the cap of 200 ends the run before it.
    capped = model(host, concurrency=1, max_tokens_total=200)
    done = list(capped.generate([Request("p", "The man", tuple(range(40)))], SPEC))
    failures = [item.failure for item in done]
    written = failures.count(None)
    assert 0 < written < 40
    assert failures.count("token_cap") == 40 - written
    assert written * 8 <= 200
    assert len(host.asked) == written


def test_a_cap_that_allows_nothing_asks_nothing(host: Host) -> None:
    assert ask(host, max_tokens_total=1).failure == "token_cap"
    assert host.asked == []


def test_after_an_early_stop_nothing_more_is_sent(host: Host) -> None:
    stall = threading.Event()
    answer_in_turn(host, text_reply(" sang."), replace(text_reply("late"), stall=stall))
    texts = model(host, concurrency=2).generate([Request("p", "The man", tuple(range(50)))], SPEC)
    assert next(texts).text == " sang."
    started = time.monotonic()
    texts.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < 1
    stall.set()
    time.sleep(0.1)
    assert len(host.asked) <= 4


def test_it_works_inside_a_running_event_loop(host: Host) -> None:
    async def notebook() -> str | None:
        return ask(host).text

    assert asyncio.run(notebook()) == " sang."


def test_nothing_asked_nothing_sent(host: Host) -> None:
    assert list(model(host).generate([], SPEC)) == []


def test_a_packed_answer_is_not_unpacked(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    host.answer = lambda asked: Reply(body=BOMB, headers={"Content-Encoding": "gzip, gzip"})
    assert ask(host).failure == "bad_answer"
    assert host.asked[0].headers["Accept-Encoding"] == "identity"
    assert caplog.messages == [
        f"{host.url}/completions compressed its response as gzip, gzip, which was not requested"
    ]


def test_odd_characters_travel(host: Host) -> None:
    list(model(host).generate([Request("p", "\ud800 é 日本\0", (0,))], SPEC))
    assert host.asked[0].body["prompt"] == "\ud800 é 日本\0"


def test_the_reference_is_not_repeatable_and_holds_no_date(host: Host) -> None:
    plain, chat = model(host), model(host, chat=True)
    assert plain.ref.repeatable is False
    assert (plain.ref.backend, plain.ref.name) == ("endpoint", f"{host.url}#m")
    assert plain.ref.options == {"interface": "completions"}
    assert chat.ref.name == plain.ref.name
    assert chat.ref.identity() != plain.ref.identity()
    before = plain.ref
    list(plain.generate(ONE, SPEC))
    assert plain.ref == before
    assert plain.served_by == {"model": "m-2", "fingerprint": "fp"}


def test_the_registry_finds_it(host: Host) -> None:
    found = registry.create_model(f"endpoint:{host.url}#m", {"concurrency": 2})
    assert next(iter(found.generate(ONE, SPEC))).text == " sang."


def test_an_answer_far_beyond_the_tokens_asked_for_is_not_read(host: Host) -> None:
    host.answer = lambda asked: text_reply("x" * 300_000)
    assert ask(host).failure == "too_large"
    # As much as a thousand tokens may take.
    done = next(model(host).generate(ONE, replace(SPEC, max_new_tokens=1_000)))
    assert len(done.text or "") == 300_000
    # Hosts that repeat the prompt may answer as much more as it is long.
    long = [Request("p", "é" * 20_000, (0,))]
    host.answer = lambda asked: text_reply(f"{asked.body['prompt']}{'x' * 200_000}")
    assert next(model(host).generate(long, SPEC)).failure is None
