"""A classifier behind a URL, with the smallest contract that serves.

A POST of ``{"texts": ["..", ..]}`` is answered with ``{"labels": ["anger", ..], "scores": [[0.7, ..], ..]}``:
a row a text, a number from 0 to 1 a label. ``{"texts": []}`` asks for the labels alone. An answer may have a
``revision``, which then identifies the weights.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final, cast
from urllib.parse import urlsplit

import httpx
import numpy as np
import stamina

from evenhand.core.digests import digest
from evenhand.core.errors import InputError, ModelError
from evenhand.core.hosts import LOOPBACK
from evenhand.core.records import Execution
from evenhand.neural.classifier import Probabilities

KEY: Final = "EVENHAND_API_KEY"
"""The environment variable of the key; nothing is sent where it is unset."""
_ROWS: Final = 32
_ATTEMPTS: Final = 5
_ACCEPTED: Final = 'an answer {"labels": [NAME, ..], "scores": [[NUMBER, ..], ..]}, a row a text'


class EndpointReader:
    """A hosted classifier. Its answers cannot be promised again; redirects are not followed."""

    def __init__(self, url: str, execution: Execution, *, timeout: float = 60.0) -> None:
        self._url = _checked(url, execution)
        self._rows = execution.batch or _ROWS
        self._timeout = timeout
        answer = self._ask([])
        self.labels = tuple(str(label) for label in cast("Sequence[object]", answer["labels"]))
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
        except (KeyError, TypeError, ValueError):
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
    def _post(self, texts: Sequence[str]) -> httpx.Response:
        key = os.environ.get(KEY, "")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.post(
            self._url,
            json={"texts": list(texts)},
            headers=headers,
            timeout=self._timeout,
            follow_redirects=False,
        )

    def _ask(self, texts: Sequence[str]) -> Mapping[str, object]:
        try:
            response = self._post(texts)
            answer = response.json() if response.status_code == 200 else None
        except (httpx.HTTPError, ValueError) as error:
            raise ModelError(
                f"{self._url} does not answer: {type(error).__name__}",
                accepted=_ACCEPTED,
                todo="check that the service runs, and its URL",
            ) from error
        if not isinstance(answer, dict) or not isinstance(answer.get("labels"), list):
            raise ModelError(
                f"{self._url} answered {response.status_code} {response.text[:80]!r}",
                accepted=_ACCEPTED,
                todo=f"check the URL, and the key in {KEY} where it wants one",
            )
        return answer


def _checked(url: str, execution: Execution) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
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
