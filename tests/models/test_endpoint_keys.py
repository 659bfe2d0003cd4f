"""The key of an endpoint goes to its host and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.models.asking import ONE, SPEC, ask, model
from tests.models.host import Host, Reply, error_reply, serving, text_reply

from evenhand.core.errors import InputError, ModelError
from evenhand.core.http import redact_key, sanitize_message
from evenhand.models.endpoint import EndpointModel


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
        f"{host.url}/completions answered 307: no reason given. Expected: an OpenAI-compatible host that "
        "knows the model and takes the key. Fix: use the URL that it redirects to, if you trust it; keys "
        "are never sent on a redirect."
    )
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_what_is_meant_for_this_machine_goes_to_no_proxy(
    host: Host, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("EVENHAND_API_KEY", "secret")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving() as proxy:
        monkeypatch.setenv(variable, proxy.url.removesuffix("/v1"))
        assert ask(host).text == " sang."
        assert proxy.asked == []
    assert len(host.asked) == 1


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
    assert sanitize_message("a\n b\x1b[0m", secret="") == "a b[0m"
    assert sanitize_message("key k, token", secret="k") == "[key]ey [key], to[key]en"
    assert sanitize_message("s3cret" * 100, secret="s3cret") == "[key]" * 60


def test_answers_without_the_key() -> None:
    said = "it is sk-a/b-9\nor sk-a\\/b-9 or sk-a%2Fb-9."
    assert redact_key(said, secret="sk-a/b-9") == "it is [key]\nor [key] or [key]."
    assert redact_key("an EMPTY shop", secret="EMPTY") == "an EMPTY shop"
    assert redact_key("as it is", secret="") == "as it is"


def test_a_text_that_repeats_the_key(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_API_KEY", "sk-a/b-9")
    host.answer = lambda asked: text_reply(" sent Bearer sk-a/b-9. Then more.")
    assert ask(host).text == " sent Bearer [key]. Then more."


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
        "the environment variable EVENHAND_API_KEY holds a space or a non-ASCII character. "
        "Expected: a key of printable ASCII characters. Fix: copy the key again."
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
