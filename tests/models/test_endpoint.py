from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import polars as pl
import pytest
from tests.models.host import Asked, Host, Reply, chat_reply, error_reply, serving, text_reply

from evenhand.core import registry
from evenhand.core.errors import InputError, ModelError
from evenhand.core.records import Completion, Execution, GenerationSpec, Request
from evenhand.models import endpoint
from evenhand.models.endpoint import EndpointModel
from evenhand.models.endpoint_limits import retry_after
from evenhand.models.openai_wire import host_words, parse_target

SPEC = GenerationSpec(max_new_tokens=8, stop="none")
ONE = [Request("p", "The man", (0,))]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setattr(endpoint, "FIRST_WAIT", 0.01)
    monkeypatch.setattr(endpoint, "ATTEMPTS", 4)
    monkeypatch.delenv("EVENHAND_API_KEY", raising=False)
    with serving() as running:
        yield running


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


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_what_may_pass_is_tried_again(host: Host, status: int) -> None:
    answer_in_turn(host, error_reply(status), error_reply(status), text_reply(" sang."))
    assert ask(host).text == " sang."
    assert len(host.asked) == 3


def test_a_host_that_keeps_failing_is_given_up(host: Host) -> None:
    host.answer = lambda asked: error_reply(500)
    done = ask(host)
    assert (done.text, done.failure) == (None, "http_500")
    assert len(host.asked) == 4


def test_the_pause_a_host_asks_for_is_kept(host: Host) -> None:
    answer_in_turn(host, error_reply(429, Retry_After="1"), text_reply(" sang."))
    started = time.monotonic()
    assert ask(host).text == " sang."
    assert time.monotonic() - started >= 1


def test_a_pause_that_is_too_long_is_not(host: Host) -> None:
    host.answer = lambda asked: error_reply(429, Retry_After="3600")
    assert ask(host).failure == "http_429"
    assert len(host.asked) == 1


def test_pauses_come_as_seconds_or_as_dates() -> None:
    asked_for = retry_after
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert asked_for("7") == 7
    assert asked_for(later) == pytest.approx(29.5, abs=1.5)
    assert asked_for("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert asked_for("soon") is None
    assert asked_for("") is None
    assert asked_for("\u00b2") is None


def test_a_stalled_answer_times_out_and_is_tried_again(host: Host) -> None:
    stall = threading.Event()
    answer_in_turn(host, replace(text_reply("late"), stall=stall), text_reply(" sang."))
    assert ask(host, timeout=0.3).text == " sang."
    stall.set()


def test_a_host_that_only_stalls(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "ATTEMPTS", 2)
    stall = threading.Event()
    host.answer = lambda asked: replace(text_reply("late"), stall=stall)
    assert ask(host, timeout=0.1).failure == "timeout"
    stall.set()


def test_a_truncated_body_is_tried_again(host: Host) -> None:
    answer_in_turn(host, replace(text_reply("half"), cut=10), text_reply(" sang."))
    assert ask(host).text == " sang."
    host.answer = lambda asked: replace(text_reply("half"), cut=10)
    assert ask(host).failure == "connection"


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


def test_the_key_comes_from_the_environment(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(host)
    assert "Authorization" not in host.asked[0].headers
    monkeypatch.setenv("EVENHAND_API_KEY", "k1")
    monkeypatch.setenv("OTHER_KEY", "k2")
    ask(host)
    ask(host, api_key_env="OTHER_KEY")
    assert [asked.headers["Authorization"] for asked in host.asked[1:]] == ["Bearer k1", "Bearer k2"]


def test_the_key_is_not_sent_on_a_redirect(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_API_KEY", "secret")
    with serving() as elsewhere:
        host.answer = lambda asked: Reply(307, b"", {"Location": f"{elsewhere.url}/completions"})
        with pytest.raises(ModelError) as caught:
            ask(host)
        assert elsewhere.asked == []
    assert str(caught.value) == (
        f"{host.url}/completions answered 307: no reason given. Accepted: an OpenAI-compatible host that "
        "knows the model and takes the key. What to do: give the URL it redirects to, if you trust it; keys "
        "are never sent on a redirect."
    )
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "reply",
    [
        error_reply(401, f"{'x' * 292} sk-a/b-9 is wrong"),
        error_reply(401, "no", code="sk-a/b-9"),
        Reply(401, b'{"detail": "Bearer sk-a\\/b-9"}'),
        Reply(401, b"<p>sk-a/b-9</p>"),
        Reply(401, b"?key=sk-a%2Fb-9"),
        Reply(401, b"sk-a\x1b/b-9"),
    ],
)
def test_a_key_the_host_repeats_is_never_shown(
    host: Host, reply: Reply, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("EVENHAND_API_KEY", "sk-a/b-9")
    host.answer = lambda asked: reply
    with pytest.raises(ModelError) as caught:
        ask(host)
    host.answer = lambda asked: replace(reply, status=400)
    assert ask(host).failure == "http_400"
    shown = str(caught.value) + caplog.text
    assert "b-9" not in shown
    assert "sk-a" not in shown


def test_a_host_cannot_write_to_the_terminal(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    host.answer = lambda asked: error_reply(400, "\x1b[2Jall\r\nis \u202ewell\x07 \ud800", code="\x1b]0;x")
    ask(host)
    assert f"{host.url}/completions answered 400 ]0;x: [2Jall is well" in caplog.text
    assert "\x1b" not in caplog.text


def test_words_of_a_host() -> None:
    assert host_words("a\n b\x1b[0m", secret="") == "a b[0m"
    assert host_words("key k, token", secret="k") == "[key]ey [key], to[key]en"
    assert host_words("s3cret" * 100, secret="s3cret") == "[key]" * 60


def test_a_served_model_that_repeats_the_key(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_API_KEY", "sk-1")
    body = b'{"choices": [{"text": "x"}], "model": "m\\u001b sk-1", "system_fingerprint": "\\ud800f"}'
    host.answer = lambda asked: Reply(body=body)
    asked = model(host)
    assert next(asked.generate(ONE, SPEC)).text == "x"
    assert asked.served_by == {"model": "m [key]", "fingerprint": "f"}


@pytest.mark.parametrize("key", ["se\ncret", "sécret", "se cret"])
def test_a_key_no_header_can_hold(host: Host, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("EVENHAND_API_KEY", key)
    with pytest.raises(InputError) as caught:
        ask(host)
    assert str(caught.value) == (
        "the environment variable EVENHAND_API_KEY holds a space or a character beyond ASCII. "
        "Accepted: a key of printable ASCII characters. What to do: copy the key again."
    )
    assert host.asked == []


def test_white_space_around_a_key_is_dropped(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_API_KEY", " k1\n")
    ask(host)
    assert host.asked[0].headers["Authorization"] == "Bearer k1"


def test_a_key_in_the_clear_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("EVENHAND_API_KEY", "secret")
    for name in ("https://h.invalid#m", "http://localhost:1#m", "http://127.0.0.1:1#m"):
        list(EndpointModel(name).generate([], SPEC))
    assert caplog.text == ""
    remote = EndpointModel("http://h.invalid#m")
    list(remote.generate([], SPEC))
    list(remote.generate([], SPEC))
    (record,) = caplog.records
    assert record.getMessage() == (
        "the key in EVENHAND_API_KEY goes to http://h.invalid/v1/completions unencrypted: anyone on the way "
        "can read it; use https, or unset the variable"
    )
    monkeypatch.delenv("EVENHAND_API_KEY")
    list(EndpointModel("http://h.invalid#m").generate([], SPEC))
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("reply", "options", "advice"),
    [
        (error_reply(401, "no key"), {}, "put a valid key into the environment variable EVENHAND_API_KEY"),
        (error_reply(404, "no such model"), {}, "or use chat messages (chat=true)"),
        (error_reply(404, "no such model"), {"chat": True}, "or use plain completions (chat=false)"),
        (
            error_reply(400, "Unrecognized request argument: top_k"),
            {},
            "set top_k to 0: the host does not take it",
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
    found = registry.model(f"endpoint:{host.url}#m", {"concurrency": 2})
    assert next(iter(found.generate(ONE, SPEC))).text == " sang."


@pytest.mark.parametrize(
    ("name", "chat", "url", "as_chat"),
    [
        ("http://h#m", None, "http://h/v1/completions", False),
        ("http://h/#m", True, "http://h/v1/chat/completions", True),
        ("https://h:8/api/v2/#a/b#c", None, "https://h:8/api/v2/completions", False),
        ("http://h/v1/chat/completions#m", None, "http://h/v1/chat/completions", True),
        ("http://h/v1/completions/#m", None, "http://h/v1/completions", False),
    ],
)
def test_addresses(name: str, chat: bool | None, url: str, as_chat: bool) -> None:
    target = parse_target(name, chat=chat)
    assert (target.url, target.chat) == (url, as_chat)
    assert parse_target(target.name, chat=as_chat) == target


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("http://user:pw@h/v1#m", "the endpoint of model 'm' holds a user name or a password"),
        ("http://token@h/v1#m", "the endpoint of model 'm' holds a user name or a password"),
        ("u:pw@h#m", "the endpoint of model 'm' holds a user name or a password"),
        ("u:pw@h", "the endpoint of model '' holds a user name or a password"),
        ("http:u:pw@h/v1#m", "the endpoint of model 'm' holds a user name or a password"),
        ("http://u:p#pw@h/v1#m", "the endpoint has a host or a port that cannot be read"),
        ("http://[h/pw#m", "the endpoint has a host or a port that cannot be read"),
        ("http://h:99999/pw#m", "the endpoint has a host or a port that cannot be read"),
        ("#u:pw@h", "the endpoint has no URL"),
        ("http://h/v1?key=1#m", "the endpoint of model 'm' has a query after '?'"),
        ("http://h/v1", "'http://h/v1' is no endpoint"),
        ("ftp://h/v1#m", "'ftp://h/v1#m' is no endpoint"),
        ("h:8000#m", "'h:8000#m' is no endpoint"),
        ("#m", "the endpoint has no URL"),
    ],
)
def test_addresses_that_are_refused(name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        EndpointModel(name)
    assert str(caught.value).startswith(f"{message}. Accepted: endpoint:URL#MODEL, such as ")
    assert "pw" not in str(caught.value)


def test_contradictions_and_impossible_numbers() -> None:
    with pytest.raises(InputError, match=r"^the URL ends in /chat/completions and chat is False\."):
        EndpointModel("http://h/v1/chat/completions#m", chat=False)
    with pytest.raises(InputError, match=r"^concurrency is 0 and timeout 60\.0\."):
        EndpointModel("http://h#m", concurrency=0)


def test_offline_asks_this_machine_only() -> None:
    offline = Execution(offline=True)
    with pytest.raises(InputError, match=r"^https://api\.example\.org/v1/completions is another host"):
        EndpointModel("https://api.example.org/v1#m", execution=offline)
    assert EndpointModel("http://localhost:1#m", execution=offline).ref.name == "http://localhost:1/v1#m"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"control_code": "Books"},
            r"^control code 'Books' for the model .* Accepted: control codes are",
        ),
        (
            {"iterations": 5},
            r"^iterations 5 for the model .* Accepted: burn-in and iterations",
        ),
    ],
)
def test_sampling_no_host_knows_is_refused(host: Host, change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        model(host).resolved(replace(GenerationSpec(), **change))  # type: ignore[arg-type]
    assert model(host).resolved(GenerationSpec()) == GenerationSpec()
