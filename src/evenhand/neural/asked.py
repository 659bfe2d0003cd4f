"""A classifier behind a URL, with the smallest contract that serves.

A POST of ``{"texts": ["..", ..]}`` is answered with ``{"labels": ["anger", ..], "scores": [[0.7, ..], ..]}``:
a row a text, a number from 0 to 1 a label. ``{"texts": []}`` asks for the labels alone. An answer may have a
``revision``, which then identifies the weights.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast
from urllib.parse import urlsplit

import httpx
import numpy as np
import stamina

from evenhand.core.digests import digest
from evenhand.core.errors import InputError, ModelError
from evenhand.core.hosts import LOOPBACK, host_words, in_the_clear, key_in, without_key
from evenhand.core.records import Execution
from evenhand.core.wire import PackedError, Wire, client_for, content_of
from evenhand.neural.classifier import Probabilities

KEY: Final = "EVENHAND_API_KEY"
"""The environment variable of the key; nothing is sent where it is unset."""
_ROWS: Final = 32
_ATTEMPTS: Final = 5
_LARGEST: Final = 1 << 24
_SHOWN: Final = 80
"""Letters of what a host said that are repeated."""
_ACCEPTED: Final = 'an answer {"labels": [NAME, ..], "scores": [[NUMBER, ..], ..]}, a row a text'
_log = logging.getLogger(__name__)


class _Answer(NamedTuple):
    status: int
    content: bytes


class EndpointReader:
    """A hosted classifier. Its answers cannot be promised again; redirects are not followed."""

    def __init__(self, url: str, execution: Execution, *, timeout: float = 60.0) -> None:
        self._url = _checked(url, execution)
        self._is_local = urlsplit(url).hostname in LOOPBACK
        self._rows = execution.batch or _ROWS
        self._timeout = timeout
        self._ssl = httpx.create_ssl_context()
        self._secret = key_in(KEY)
        if self._secret and not (self._is_local or url.startswith("https:")):
            _log.warning("%s", in_the_clear(KEY, url))
        answer = self._ask([])
        labels = cast("Sequence[object]", answer["labels"])
        self.labels = tuple(without_key(str(label), secret=self._secret) for label in labels)
        self.digest = digest([self._url, str(answer.get("revision", "")), list(self.labels)])

    def read(self, texts: Sequence[str]) -> Probabilities:
        """One row a text, one column a label of theirs."""
        found = [
            self._scores(texts[start : start + self._rows]) for start in range(0, len(texts), self._rows)
        ]
        return np.concatenate(found) if found else np.zeros((0, len(self.labels)), np.float32)

    def _scores(self, texts: Sequence[str]) -> Probabilities:
        answer = self._ask(texts)
        try:
            scores = np.asarray(answer["scores"], dtype=np.float32)
        except (KeyError, TypeError, ValueError, OverflowError):
            scores = np.empty((0, 0), np.float32)
        if scores.shape != (len(texts), len(self.labels)) or not ((scores >= 0) & (scores <= 1)).all():
            raise ModelError(
                f"{self._url} gave scores of shape {scores.shape} for {len(texts)} texts and "
                f"{len(self.labels)} labels",
                accepted=f"{_ACCEPTED}, each number from 0 to 1",
                todo="mend the service",
            )
        return scores

    @stamina.retry(on=httpx.TransportError, attempts=_ATTEMPTS, wait_initial=0.2)
    def _post(self, texts: Sequence[str]) -> _Answer:
        with client_for(
            self._secret, seconds=self._timeout, is_local=self._is_local, verify=self._ssl
        ) as client:
            wire = Wire(client, seconds=self._timeout)
            late = threading.Timer(self._timeout, wire.cut_if_late)
            late.daemon = True
            late.start()
            try:
                with wire.post(self._url, json.dumps({"texts": list(texts)}).encode()) as response:
                    content = content_of(response, most=_LARGEST)
            except PackedError as error:
                raise self._unreadable("packed its answer, and was asked not to") from error
            finally:
                late.cancel()
        if wire.was_cut:
            # A body of no stated length ends where the connection does.
            raise httpx.ReadTimeout("the answer took too long")
        if content is None:
            raise self._unreadable(f"answered with more than {_LARGEST >> 20} MiB")
        return _Answer(response.status_code, content)

    def _unreadable(self, what: str) -> ModelError:
        return ModelError(f"{self._url} {what}", accepted=_ACCEPTED, todo="mend the service")

    def _ask(self, texts: Sequence[str]) -> Mapping[str, object]:
        status, content = self._answered(texts)
        try:
            answer = json.loads(content) if status == 200 else None
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or not isinstance(answer.get("labels"), list):
            said = host_words(content.decode("utf-8", "replace"), secret=self._secret)[:_SHOWN]
            raise ModelError(
                f"{self._url} answered {status} {said!r}",
                accepted=_ACCEPTED,
                todo=f"check the URL, and the key in {KEY} where it wants one",
            )
        return answer

    def _answered(self, texts: Sequence[str]) -> _Answer:
        try:
            return self._post(texts)
        except httpx.HTTPError as error:
            raise ModelError(
                f"{self._url} does not answer: {type(error).__name__}",
                accepted=_ACCEPTED,
                todo="check that the service runs, and its URL",
            ) from error


def _checked(url: str, execution: Execution) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port
        is_plain = not (parts.query or "@" in parts.netloc)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and is_plain
    except ValueError:
        is_usable = False
    if not is_usable:
        # Not repeated: it may hold a password.
        raise InputError(
            "the URL of the classifier cannot be used",
            accepted="endpoint:http://HOST:PORT/PATH, without user name and query",
            todo=f"put a key into the environment variable {KEY}",
        )
    if execution.offline and parts.hostname not in LOOPBACK:
        raise InputError(
            f"{url} is another host, and the run is offline",
            accepted="a host on this machine",
            todo="leave --offline out, or name a local server",
        )
    return url
