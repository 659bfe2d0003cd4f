"""Which addresses and settings of an endpoint are taken, and what is said of the others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.models.asking import model
from tests.models.host import Host

from evenhand.core.errors import InputError
from evenhand.core.records import Execution, GenerationSpec
from evenhand.models.endpoint import EndpointModel, parse_target


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
        ("http://u:p#pw@h/v1#m", "the endpoint has an invalid host or port"),
        ("http://[h/pw#m", "the endpoint has an invalid host or port"),
        ("http://h:99999/pw#m", "the endpoint has an invalid host or port"),
        ("#u:pw@h", "the endpoint has no URL"),
        ("http://h/v1?key=1#m", "the endpoint of model 'm' has a query after '?'"),
        ("http://h/v1", "'http://h/v1' is not an endpoint"),
        ("ftp://h/v1#m", "'ftp://h/v1#m' is not an endpoint"),
        ("h:8000#m", "'h:8000#m' is not an endpoint"),
        ("#m", "the endpoint has no URL"),
    ],
)
def test_addresses_that_are_refused(name: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        EndpointModel(name)
    assert str(caught.value).startswith(f"{message}. Expected: endpoint:URL#MODEL, such as ")
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
            r"^control code 'Books' for the model .* Expected: control codes are",
        ),
        (
            {"iterations": 5},
            r"^iterations 5 for the model .* Expected: burn-in and iterations",
        ),
    ],
)
def test_sampling_no_host_knows_is_refused(host: Host, change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        model(host).resolved(replace(GenerationSpec(), **change))  # type: ignore[arg-type]
    assert model(host).resolved(GenerationSpec()) == GenerationSpec()
