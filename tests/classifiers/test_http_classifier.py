"""A classifier behind a URL, asked over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import numpy as np
import pytest
import stamina
from tests.models.host import Asked, Host, Reply, serving

from evenhand.classifiers.http_classifier import HttpClassifier
from evenhand.core.errors import EvenhandError
from evenhand.core.records import Execution


@pytest.fixture
def host() -> Iterator[Host]:
    with serving() as found:
        found.answer = answer
        yield found


def answer(asked: Asked) -> Reply:
    texts = asked.body["texts"]
    assert isinstance(texts, list)
    scores = [[len(text) / 100, 0.5] for text in texts]
    return Reply(body=json.dumps({"labels": ["rage", "joy"], "scores": scores, "revision": "7"}).encode())


def test_texts_are_asked_in_batches(host: Host) -> None:
    reader = HttpClassifier(host.url, Execution(batch=2))
    assert reader.labels == ("rage", "joy")
    found = reader.read(["a", "bb", "ccc"])
    assert np.allclose(found, [[0.01, 0.5], [0.02, 0.5], [0.03, 0.5]])
    assert [asked.body["texts"] for asked in host.asked] == [[], ["a", "bb"], ["ccc"]]
    assert reader.read([]).shape == (0, 2)


def test_the_revision_identifies_the_weights(host: Host) -> None:
    before = HttpClassifier(host.url, Execution()).digest
    host.answer = lambda asked: Reply(body=b'{"labels": ["rage", "joy"], "scores": [], "revision": "8"}')
    assert HttpClassifier(host.url, Execution()).digest != before


def test_answers_of_another_shape_are_refused(host: Host) -> None:
    reader = HttpClassifier(host.url, Execution())
    host.answer = lambda asked: Reply(body=b'{"labels": ["rage", "joy"], "scores": [[0.1, 7]]}')
    with pytest.raises(EvenhandError) as raised:
        reader.read(["a"])
    assert str(raised.value) == (
        f"{host.url} gave scores of shape (1, 2) for 1 texts and 2 labels. Expected: an answer "
        '{"labels": [NAME, ..], "scores": [[NUMBER, ..], ..]}, one row per text, each number from 0 to 1. '
        "Fix: fix the service."
    )


def test_an_error_is_told(host: Host) -> None:
    host.answer = lambda asked: Reply(status=401, body=b"no key")
    with pytest.raises(EvenhandError) as raised:
        HttpClassifier(host.url, Execution())
    assert str(raised.value) == (
        f"{host.url} responded with 401 'no key'. Expected: an answer "
        '{"labels": [NAME, ..], "scores": [[NUMBER, ..], ..]}, one row per text. '
        "Fix: check the URL, and the key in EVENHAND_API_KEY if it requires one."
    )


def test_labels_that_repeat_the_key(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_API_KEY", "sk-a/b-9")
    host.answer = lambda asked: Reply(body=b'{"labels": ["rage of sk-a/b-9", "joy"], "scores": []}')
    assert HttpClassifier(host.url, Execution()).labels == ("rage of [key]", "joy")


def test_a_key_is_sent_and_never_repeated(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_API_KEY", "secret")
    HttpClassifier(host.url, Execution())
    assert host.asked[0].headers["Authorization"] == "Bearer secret"
    with pytest.raises(EvenhandError) as raised:
        HttpClassifier("http://me:word@example.org/x", Execution())
    assert str(raised.value) == (
        "the URL of the classifier cannot be used. Expected: endpoint:http://HOST:PORT/PATH, without user "
        "name "
        "and query. Fix: set a key in the environment variable EVENHAND_API_KEY."
    )


def test_offline_asks_this_machine_alone() -> None:
    with pytest.raises(EvenhandError) as raised:
        HttpClassifier("https://example.org/x", Execution(offline=True))
    assert str(raised.value) == (
        "https://example.org/x is another host, and the run is offline. Expected: a host on this machine. "
        "Fix: remove --offline, or name a local server."
    )


@pytest.mark.parametrize("status", [401, 200])
def test_a_key_the_host_repeats_is_not_shown(
    host: Host, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setenv("EVENHAND_API_KEY", "sk-a/b-9\n")
    host.answer = lambda asked: Reply(status, b"Bearer sk-a/b-9 \x1b[2J and sk-a%2Fb-9 are unknown")
    with pytest.raises(EvenhandError) as raised:
        HttpClassifier(host.url, Execution())
    assert f"{host.url} responded with {status} 'Bearer [key] [2J and [key] are unknown'." in str(
        raised.value
    )
    assert host.asked[0].headers["Authorization"] == "Bearer sk-a/b-9"


@pytest.mark.parametrize("key", ["two words", "sk-\u00e9"])
def test_a_key_no_header_can_hold(host: Host, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("EVENHAND_API_KEY", key)
    with pytest.raises(EvenhandError, match="holds a space or a non-ASCII character") as raised:
        HttpClassifier(host.url, Execution())
    assert key not in str(raised.value)
    assert host.asked == []


def test_a_key_in_the_clear_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("EVENHAND_API_KEY", "secret")
    monkeypatch.setattr(HttpClassifier, "_ask", lambda self, texts: {"labels": ["rage"]})
    HttpClassifier("https://example.org/x", Execution())
    assert caplog.messages == []
    HttpClassifier("http://example.org/x", Execution())
    assert caplog.messages == [
        "the key in EVENHAND_API_KEY goes to http://example.org/x unencrypted: anyone on the way can read "
        "it; use https, or unset the variable"
    ]


@pytest.mark.parametrize("url", ["http://:word@example.org/x", "http://[word", "http://h:word/x", "x:y@z"])
def test_addresses_that_are_refused_are_not_repeated(url: str) -> None:
    with pytest.raises(EvenhandError, match="the URL of the classifier cannot be used") as raised:
        HttpClassifier(url, Execution())
    assert "word" not in str(raised.value)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(body=b"[" * 100_000), "responded with 200 '["),
        (Reply(body=b" " * 5000), "responded with more than 0 MiB"),
        (Reply(body=b"x", headers={"Content-Encoding": "gzip, gzip"}), "compressed its response"),
        (Reply(307, b"", {"Location": "http://127.0.0.1:1/"}), "responded with 307 ''"),
    ],
)
def test_answers_made_to_harm(host: Host, monkeypatch: pytest.MonkeyPatch, reply: Reply, said: str) -> None:
    monkeypatch.setattr(
        "evenhand.classifiers.http_classifier._LARGEST", 4096 if reply.body[:1] == b" " else 1 << 20
    )
    host.answer = lambda asked: reply
    with pytest.raises(EvenhandError) as raised:
        HttpClassifier(host.url, Execution())
    assert f"{host.url} {said}" in str(raised.value)
    assert len(host.asked) == 1


def test_a_score_no_number_can_hold(host: Host) -> None:
    reader = HttpClassifier(host.url, Execution())
    host.answer = lambda asked: Reply(
        body=b'{"labels": ["rage", "joy"], "scores": [[1' + b"0" * 400 + b", 0]]}"
    )
    with pytest.raises(EvenhandError, match=r"gave scores of shape \(0, 0\)"):
        reader.read(["a"])


def test_a_host_that_stalls_is_given_up(host: Host) -> None:
    ended = threading.Event()
    reader = HttpClassifier(host.url, Execution())
    # Only now: the first answer may take its time.
    reader._timeout = 0.2
    host.answer = lambda asked: Reply(body=b"x", stall=ended)
    stamina.set_testing(True)
    try:
        with pytest.raises(EvenhandError, match="does not respond: "):
            reader.read(["a"])
    finally:
        stamina.set_testing(False)
        ended.set()
