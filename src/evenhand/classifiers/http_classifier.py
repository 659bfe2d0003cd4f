"""A classifier behind a URL, with the smallest contract that serves.

A POST of ``{"texts": ["..", ..]}`` is answered with ``{"labels": ["anger", ..], "scores": [[0.7, ..], ..]}``:
a row a text, a number from 0 to 1 a label. ``{"texts": []}`` asks for the labels alone. An answer may have a
``revision``, which then identifies the weights.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, cast
from urllib.parse import urlsplit

import httpx
import numpy as np
import polars as pl
import stamina

from evenhand.classifiers.text_classifier import Probabilities
from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError, ModelError
from evenhand.core.http import (
    LOOPBACK,
    CompressedResponseError,
    HttpConnection,
    describe_plain_http,
    make_client,
    read_api_key,
    read_content,
    redact_key,
    sanitize_message,
)
from evenhand.core.records import Execution
from evenhand.store.table_files import read_table

KEY: Final = "EVENHAND_API_KEY"
"""The environment variable of the key; nothing is sent where it is unset."""
_ROWS: Final = 32
_ATTEMPTS: Final = 5
_LARGEST: Final = 1 << 24
_SHOWN: Final = 80
"""Letters of what a host said that are repeated."""
_ACCEPTED: Final = 'an answer {"labels": [NAME, ..], "scores": [[NUMBER, ..], ..]}, a row a text'
_log = logging.getLogger(__name__)


class _HttpAnswer(NamedTuple):
    status: int
    content: bytes


class HttpClassifier:
    """A hosted classifier. Its answers cannot be promised again; redirects are not followed."""

    def __init__(self, url: str, execution: Execution, *, timeout: float = 60.0) -> None:
        self._url = _check_url(url, execution)
        self._is_local = urlsplit(url).hostname in LOOPBACK
        self._rows = execution.batch or _ROWS
        self._timeout = timeout
        self._ssl = httpx.create_ssl_context()
        self._secret = read_api_key(KEY)
        if self._secret and not (self._is_local or url.startswith("https:")):
            _log.warning("%s", describe_plain_http(KEY, url))
        answer = self._ask([])
        labels = cast("Sequence[object]", answer["labels"])
        self.labels = tuple(redact_key(str(label), secret=self._secret) for label in labels)
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
                expected=f"{_ACCEPTED}, each number from 0 to 1",
                fix="mend the service",
            )
        return scores

    @stamina.retry(on=httpx.TransportError, attempts=_ATTEMPTS, wait_initial=0.2)
    def _post(self, texts: Sequence[str]) -> _HttpAnswer:
        with make_client(
            self._secret, seconds=self._timeout, is_local=self._is_local, verify=self._ssl
        ) as client:
            wire = HttpConnection(client, seconds=self._timeout)
            late = threading.Timer(self._timeout, wire.close_if_overdue)
            late.daemon = True
            late.start()
            try:
                with wire.post(self._url, json.dumps({"texts": list(texts)}).encode()) as response:
                    content = read_content(response, most=_LARGEST)
            except CompressedResponseError as error:
                raise self._unreadable("packed its answer, and was asked not to") from error
            finally:
                late.cancel()
        if wire.was_cut:
            # A body of no stated length ends where the connection does.
            raise httpx.ReadTimeout("the answer took too long")
        if content is None:
            raise self._unreadable(f"answered with more than {_LARGEST >> 20} MiB")
        return _HttpAnswer(response.status_code, content)

    def _unreadable(self, what: str) -> ModelError:
        return ModelError(f"{self._url} {what}", expected=_ACCEPTED, fix="mend the service")

    def _ask(self, texts: Sequence[str]) -> Mapping[str, object]:
        status, content = self._post_with_retries(texts)
        try:
            answer = json.loads(content) if status == 200 else None
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or not isinstance(answer.get("labels"), list):
            said = sanitize_message(content.decode("utf-8", "replace"), secret=self._secret)[:_SHOWN]
            raise ModelError(
                f"{self._url} answered {status} {said!r}",
                expected=_ACCEPTED,
                fix=f"check the URL, and the key in {KEY} where it wants one",
            )
        return answer

    def _post_with_retries(self, texts: Sequence[str]) -> _HttpAnswer:
        try:
            return self._post(texts)
        except httpx.HTTPError as error:
            raise ModelError(
                f"{self._url} does not answer: {type(error).__name__}",
                expected=_ACCEPTED,
                fix="check that the service runs, and its URL",
            ) from error


def _check_url(url: str, execution: Execution) -> str:
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
            expected="endpoint:http://HOST:PORT/PATH, without user name and query",
            fix=f"put a key into the environment variable {KEY}",
        )
    if execution.offline and parts.hostname not in LOOPBACK:
        raise InputError(
            f"{url} is another host, and the run is offline",
            expected="a host on this machine",
            fix="leave --offline out, or name a local server",
        )
    return url


TEXT: Final = ("text", "sentence")
LABEL: Final = ("prediction", "predicted", "predicted_label", "label")
INTENSITY: Final = ("prediction_intensity", "intensity", "score", "probability")

Synonyms = Mapping[str, Sequence[str]]


class ReplayClassifier:
    """Predictions from a table: a column for each label, or the predicted label and its intensity.

    Columns are found by name, in any case: ``text`` or ``sentence``; those named as a label or as a name for
    it, which are added up; else
    ``prediction`` (a label, or its number in the order of ours) with ``prediction_intensity`` or ``score``.
    What the table does not say is NaN, also for a text it does not have.
    """

    def __init__(self, path: Path, synonyms: Synonyms) -> None:
        table = read_table(path)
        names = {_normalise_name(name): name for name in reversed(table.columns)}
        text = _first_column(names, TEXT)
        columns = _columns(names, synonyms)
        said, strength = _first_column(names, LABEL), _first_column(names, INTENSITY)
        if text is None or not (columns or (said and strength)):
            raise InputError(
                f"{path} has the columns {', '.join(table.columns)}",
                expected=f"{' or '.join(TEXT)}; and {', '.join(synonyms)}, or {LABEL[0]} with {INTENSITY[0]}",
                fix="rename the columns, or say what they mean with --label THEIRS=OURS",
            )
        rows = (
            _read_wide(table, columns, path)
            if columns
            else _read_labelled(table.select(said or "", strength or ""), synonyms, path)
        )
        self.labels = tuple(columns or _list_labels(table, said or "", synonyms, path))
        found: dict[str, tuple[float, ...]] = {}
        for place, (words, row) in enumerate(zip(table[text], rows, strict=True), start=1):
            answer = tuple(row.get(label, np.nan) for label in self.labels)
            _check_twin(found.setdefault((words or "").strip(), answer), answer, path, place)
        self._predictions = found
        self.digest = digest([file_digest(path), list(self.labels)])

    def read(self, texts: Sequence[str]) -> Probabilities:
        """One row a text, one column a label; NaN where the file says nothing."""
        nothing = (np.nan,) * len(self.labels)
        rows = [self._predictions.get(text.strip(), nothing) for text in texts]
        # As the file has them: what was written with eight digits is not cut to seven.
        return cast(Probabilities, np.array(rows, dtype=np.float64).reshape(len(rows), len(self.labels)))


def _columns(names: Mapping[str, str], synonyms: Synonyms) -> dict[str, list[str]]:
    """For each label that has them its columns, as a classifier's labels are told in ours."""
    found = {
        label: [
            names[name] for name in dict.fromkeys(map(_normalise_name, (label, *others))) if name in names
        ]
        for label, others in synonyms.items()
    }
    return {label: columns for label, columns in found.items() if columns}


def _read_wide(
    table: pl.DataFrame, columns: Mapping[str, Sequence[str]], path: Path
) -> Iterator[dict[str, float]]:
    for place, row in enumerate(table.iter_rows(named=True), start=1):
        said = {
            label: [_number(row[name], path, place) for name in own if row[name] not in (None, "")]
            for label, own in columns.items()
        }
        yield {label: min(1.0, sum(values)) for label, values in said.items() if values}


def _read_labelled(table: pl.DataFrame, synonyms: Synonyms, path: Path) -> Iterator[dict[str, float]]:
    for place, (said, strength) in enumerate(table.iter_rows(), start=1):
        yield {_label(said, synonyms, path, place): _number(strength, path, place)}


def _list_labels(table: pl.DataFrame, column: str, synonyms: Synonyms, path: Path) -> list[str]:
    """The labels that occur, and the others up to the last of them: a number stands for a place."""
    used = {_label(said, synonyms, path, 0) for said in table[column].unique().to_list()}
    labels = list(synonyms)
    return labels[: 1 + max(labels.index(label) for label in used)]


def _label(said: str | None, synonyms: Synonyms, path: Path, place: int) -> str:
    given = (said or "").strip().lower().removesuffix(".0")
    labels = list(synonyms)
    if given.isdigit() and int(given) < len(labels):
        return labels[int(given)]
    for label, names in synonyms.items():
        if given == label or given in names:
            return label
    where = f" row {place}" if place else ""
    raise InputError(
        f"{path}{where} predicts {given!r}",
        expected=", ".join(f"{number} or {label}" for number, label in enumerate(labels)),
        fix="say what it means with --label THEIRS=OURS",
    )


def _number(cell: str | None, path: Path, place: int) -> float:
    try:
        value = float(cell or "")
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(
            f"{path} row {place} has the intensity {cell!r}",
            expected="numbers from 0 to 1",
            fix="repair that row",
        )
    return value


def _check_twin(first: tuple[float, ...], second: tuple[float, ...], path: Path, place: int) -> None:
    if not np.array_equal(first, second, equal_nan=True):
        raise InputError(
            f"{path} row {place} has other predictions for a text that is there before",
            expected="one prediction a text",
            fix="keep the predictions of one model",
        )


def _first_column(names: Mapping[str, str], wanted: Sequence[str]) -> str | None:
    return next((names[name] for name in wanted if name in names), None)


def _normalise_name(name: str) -> str:
    return "_".join(name.lower().split())
