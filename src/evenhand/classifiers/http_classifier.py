"""A classifier behind a URL, with a minimal HTTP interface.

A POST of ``{"texts": ["..", ..]}`` is answered with ``{"labels": ["anger", ..], "scores": [[0.7, ..], ..]}``:
one row per text, one number from 0 to 1 per label. ``{"texts": []}`` requests the labels only. A response may
include a ``revision``, which then identifies the weights.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast
from urllib.parse import urlsplit

import httpx
import numpy as np
import polars as pl
import stamina
from numpy.typing import NDArray

from evenhand.classifiers.text_classifier import Probabilities
from evenhand.core import http
from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError, ModelError
from evenhand.core.records import Execution
from evenhand.store.table_files import read_table

KEY: Final = "EVENHAND_API_KEY"
"""The environment variable with the key; if it is unset, no key is sent."""
_ROWS: Final = 32
_ATTEMPTS: Final = 5
_LARGEST: Final = 1 << 24
_SHOWN: Final = 80
"""Maximum number of characters of a host's message to show."""
_ACCEPTED: Final = 'an answer {"labels": [NAME, ..], "scores": [[NUMBER, ..], ..]}, one row per text'
_log = logging.getLogger(__name__)


class HttpClassifier:
    """A hosted classifier. Its answers are not guaranteed to be reproducible; redirects are not followed."""

    def __init__(self, url: str, execution: Execution, *, timeout: float = 60.0) -> None:
        self._url = _check_url(url, execution)
        self._is_local = urlsplit(url).hostname in http.LOOPBACK
        self._rows = execution.batch or _ROWS
        self._timeout = timeout
        self._ssl = httpx.create_ssl_context()
        self._secret = http.read_api_key(KEY)
        if self._secret and not (self._is_local or url.startswith("https:")):
            _log.warning("%s", http.describe_plain_http(KEY, url))
        answer = self._ask([])
        labels = cast("Sequence[object]", answer["labels"])
        self.labels = tuple(http.redact_key(str(label), secret=self._secret) for label in labels)
        self.digest = digest([self._url, str(answer.get("revision", "")), list(self.labels)])

    def read(self, texts: Sequence[str]) -> Probabilities:
        """One row per text, one column per label of the host."""
        starts = range(0, len(texts), self._rows)
        empty = np.zeros((0, len(self.labels)), np.float32)
        return np.concatenate([empty, *(self._scores(texts[at : at + self._rows]) for at in starts)])

    def _scores(self, texts: Sequence[str]) -> Probabilities:
        answer = self._ask(texts)
        try:
            scores = np.asarray(answer["scores"], dtype=np.float32)
        except (KeyError, TypeError, ValueError, OverflowError):
            scores = np.empty((0, 0), np.float32)
        if scores.shape != (len(texts), len(self.labels)) or not ((scores >= 0) & (scores <= 1)).all():
            problem = (
                f"gave scores of shape {scores.shape} for {len(texts)} texts and {len(self.labels)} labels"
            )
            raise self._error(problem, expected=f"{_ACCEPTED}, each number from 0 to 1")
        return scores

    @stamina.retry(on=httpx.TransportError, attempts=_ATTEMPTS, wait_initial=0.2)
    def _post(self, texts: Sequence[str]) -> http.HttpResponse:
        body = json.dumps({"texts": list(texts)}).encode()
        with http.make_client(
            self._secret, seconds=self._timeout, is_local=self._is_local, verify=self._ssl
        ) as client:
            connection = http.HttpConnection(client, seconds=self._timeout)
            watch = threading.Timer(self._timeout, connection.close_if_overdue)
            watch.daemon = True
            watch.start()
            try:
                return connection.post(self._url, body, most=_LARGEST)
            finally:
                watch.cancel()

    def _ask(self, texts: Sequence[str]) -> Mapping[str, object]:
        try:
            response = self._post(texts)
        except http.CompressedResponseError:
            raise self._error("compressed its response, which was not requested") from None
        except httpx.HTTPError as error:
            problem = f"does not respond: {type(error).__name__}"
            raise self._error(problem, fix="check that the service runs, and its URL") from error
        if response.content is None:
            raise self._error(f"responded with more than {_LARGEST >> 20} MiB")
        try:
            answer = json.loads(response.content) if response.status == 200 else None
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or not isinstance(answer.get("labels"), list):
            message = http.sanitize_message(response.content.decode("utf-8", "replace"), secret=self._secret)
            raise self._error(
                f"responded with {response.status} {message[:_SHOWN]!r}",
                fix=f"check the URL, and the key in {KEY} if it requires one",
            )
        return answer

    def _error(self, problem: str, *, expected: str = _ACCEPTED, fix: str = "fix the service") -> ModelError:
        return ModelError(f"{self._url} {problem}", expected=expected, fix=fix)


def _check_url(url: str, execution: Execution) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port
        is_plain = not (parts.query or "@" in parts.netloc)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and is_plain
    except ValueError:
        is_usable = False
    if not is_usable:
        # Not shown: it may contain a password.
        raise InputError(
            "the URL of the classifier cannot be used",
            expected="endpoint:http://HOST:PORT/PATH, without user name and query",
            fix=f"set a key in the environment variable {KEY}",
        )
    if execution.offline and parts.hostname not in http.LOOPBACK:
        raise InputError(
            f"{url} is another host, and the run is offline",
            expected="a host on this machine",
            fix="remove --offline, or name a local server",
        )
    return url


TEXT: Final = ("text", "sentence")
LABEL: Final = ("prediction", "predicted", "predicted_label", "label")
INTENSITY: Final = ("prediction_intensity", "intensity", "score", "probability")

Synonyms = Mapping[str, Sequence[str]]


class ReplayClassifier:
    """Predictions from a table: a column per label, or the predicted label and its intensity.

    Columns are matched by name, in any case: ``text`` or ``sentence``; columns named as a label or a synonym
    of it, which are summed; else ``prediction`` (a label, or its index among ours) with
    ``prediction_intensity`` or ``score``.
    Missing values are NaN, and so are those of texts that the table lacks.
    """

    def __init__(self, path: Path, synonyms: Synonyms) -> None:
        table = read_table(path)
        names = {_normalise_name(name): name for name in reversed(table.columns)}
        text, label, strength = (
            next((names[name] for name in wanted if name in names), "") for wanted in (TEXT, LABEL, INTENSITY)
        )
        columns: dict[str, list[str]] = {}
        for ours, others in synonyms.items():
            for name in dict.fromkeys(map(_normalise_name, (ours, *others))):
                if name in names:
                    columns.setdefault(ours, []).append(names[name])
        if not text or not (columns or (label and strength)):
            raise InputError(
                f"{path} has the columns {', '.join(table.columns)}",
                expected=f"{' or '.join(TEXT)}; and {', '.join(synonyms)}, or {LABEL[0]} with {INTENSITY[0]}",
                fix="rename the columns, or map them with --label THEIRS=OURS",
            )
        if columns:
            self.labels = tuple(columns)
            answers = np.stack([_add_columns(table.select(own), path) for own in columns.values()], axis=1)
        else:
            places = {cell: _find_label(cell, synonyms, path) for cell in table[label].unique()}
            self.labels = tuple(synonyms)[: 1 + max(places.values())]
            answers = np.full((table.height, len(self.labels)), np.nan)
            chosen = [places[cell] for cell in table[label]]
            answers[np.arange(table.height), chosen] = _read_numbers(table[strength], path)
        self._rows: dict[str, int] = {}
        texts = ((words or "").strip() for words in table[text])
        first = answers[[self._rows.setdefault(words, row) for row, words in enumerate(texts)]]
        if (other := ~((first == answers) | (np.isnan(first) & np.isnan(answers))).all(1)).any():
            raise InputError(
                f"{path} row {other.argmax() + 1} has different predictions for a repeated text",
                expected="one prediction per text",
                fix="keep the predictions of a single model",
            )
        self._answers = np.vstack([answers, np.full(len(self.labels), np.nan)])
        self.digest = digest([file_digest(path), list(self.labels)])

    def read(self, texts: Sequence[str]) -> Probabilities:
        """One row per text, one column per label; NaN where the file has no value."""
        rows = np.array([self._rows.get(text.strip(), -1) for text in texts], dtype=np.int64)
        # In the file's precision: values with eight digits are not rounded to seven.
        return cast(Probabilities, self._answers[rows])


def _add_columns(table: pl.DataFrame, path: Path) -> NDArray[np.float64]:
    """The sum of each row's numbers, at most 1; NaN if it has none."""
    cells = np.stack(
        [_read_numbers(column.replace("", None), path, may_lack=True) for column in table], axis=1
    )
    return np.where(np.isnan(cells).all(1), np.nan, np.minimum(np.nansum(cells, axis=1), 1.0))


def _read_numbers(column: pl.Series, path: Path, *, may_lack: bool = False) -> NDArray[np.float64]:
    """The numbers in a column; an error for one outside 0 to 1, or for a null unless nulls are allowed."""
    numbers = column.str.strip_chars().cast(pl.Float64, strict=False)
    is_good = numbers.is_between(0, 1).fill_null(False) | (column.is_null() & may_lack)
    bad = (~is_good).arg_true()
    if len(bad):
        raise InputError(
            f"{path} row {bad[0] + 1} has the intensity {column[int(bad[0])]!r}",
            expected="numbers from 0 to 1",
            fix="repair that row",
        )
    return numbers.to_numpy()


def _find_label(label: str | None, synonyms: Synonyms, path: Path) -> int:
    """The index of one of our labels, given by its number, its name or a synonym."""
    name = (label or "").strip().lower().removesuffix(".0")
    if name.isdigit() and int(name) < len(synonyms):
        return int(name)
    for place, (ours, names) in enumerate(synonyms.items()):
        if name == ours or name in names:
            return place
    raise InputError(
        f"{path} predicts {name!r}",
        expected=", ".join(f"{number} or {label}" for number, label in enumerate(synonyms)),
        fix="map it with --label THEIRS=OURS",
    )


def _normalise_name(name: str) -> str:
    return "_".join(name.lower().split())
