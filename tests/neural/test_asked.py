"""A classifier behind a URL, asked over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest
from tests.models.host import Asked, Host, Reply, serving

from evenhand.core.errors import EvenhandError
from evenhand.core.records import Execution
from evenhand.neural.asked import EndpointReader


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
    reader = EndpointReader(host.url, Execution(batch=2))
    assert reader.labels == ("rage", "joy")
    found = reader.read(["a", "bb", "ccc"])
    assert np.allclose(found, [[0.01, 0.5], [0.02, 0.5], [0.03, 0.5]])
    assert [asked.body["texts"] for asked in host.asked] == [[], ["a", "bb"], ["ccc"]]
    assert reader.read([]).shape == (0, 2)


def test_the_revision_identifies_the_weights(host: Host) -> None:
    before = EndpointReader(host.url, Execution()).digest
    host.answer = lambda asked: Reply(body=b'{"labels": ["rage", "joy"], "scores": [], "revision": "8"}')
    assert EndpointReader(host.url, Execution()).digest != before


def test_answers_of_another_shape_are_refused(host: Host) -> None:
    reader = EndpointReader(host.url, Execution())
    host.answer = lambda asked: Reply(body=b'{"labels": ["rage", "joy"], "scores": [[0.1, 7]]}')
    with pytest.raises(EvenhandError) as raised:
        reader.read(["a"])
    assert str(raised.value) == (
        f"{host.url} gave scores of shape (1, 2) for 1 texts and 2 labels. Accepted: an answer "
        '{"labels": [NAME, ..], "scores": [[NUMBER, ..], ..]}, a row a text, each number from 0 to 1. '
        "What to do: mend the service."
    )


def test_an_error_is_told(host: Host) -> None:
    host.answer = lambda asked: Reply(status=401, body=b"no key")
    with pytest.raises(EvenhandError) as raised:
        EndpointReader(host.url, Execution())
    assert str(raised.value) == (
        f"{host.url} answered 401 'no key'. Accepted: an answer "
        '{"labels": [NAME, ..], "scores": [[NUMBER, ..], ..]}, a row a text. '
        "What to do: check the URL, and the key in EVENHAND_API_KEY where it wants one."
    )


def test_a_key_is_sent_and_never_repeated(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_API_KEY", "secret")
    EndpointReader(host.url, Execution())
    assert host.asked[0].headers["Authorization"] == "Bearer secret"
    with pytest.raises(EvenhandError) as raised:
        EndpointReader("http://me:word@example.org/x", Execution())
    assert str(raised.value) == (
        "the URL of the classifier cannot be used. Accepted: endpoint:http://HOST:PORT/PATH, without user "
        "name "
        "and query. What to do: put a key into the environment variable EVENHAND_API_KEY."
    )


def test_offline_asks_this_machine_alone() -> None:
    with pytest.raises(EvenhandError) as raised:
        EndpointReader("https://example.org/x", Execution(offline=True))
    assert str(raised.value) == (
        "https://example.org/x is another host, and the run is offline. Accepted: a host on this machine. "
        "What to do: leave --offline out, or name a local server."
    )
