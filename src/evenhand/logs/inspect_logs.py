"""Inspect logs: ``.eval`` files and their JSON form, version 2 of the log format.

An ``.eval`` file is a zip archive, read up to a size limit; with zstd too, which zipfile supports since 3.14.
"""

from __future__ import annotations

import json
import lzma
import re
import struct
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from evenhand.core.digests import Json
from evenhand.core.errors import InputError, MissingLibraryError
from evenhand.core.files import max_decompressed_size
from evenhand.core.regular_files import open_regular
from evenhand.logs import log_records
from evenhand.logs.log_records import Row, ToolLog, read_list, read_object
from evenhand.store.table_files import read_bytes, to_cell

VERSION = 2
_ACCEPTED = f"an Inspect log, .eval or .json, of format version {VERSION}"
_METADATA = "metadata"
_ATTACHED = "attachment://"
_ATTACHMENTS = re.compile(r"(?P<folder>.+/)attachments/(?P<start>[0-9]{1,18})\.json", re.DOTALL)
"""The archive members that hold the attachments of a sample, numbered."""

Object = Mapping[str, Json]


def read_json_log(path: Path) -> ToolLog:
    """The answers in a JSON log."""
    header = read_object(_parse_json(read_bytes(path), path.name, path))
    if not header.keys() >= {"version", "status", "eval"}:
        if header.keys() >= {"results", "configs"}:
            raise InputError(
                f"{path} holds the totals of lm-eval, not its samples",
                expected="samples_*.jsonl",
                fix="run lm_eval with --log_samples --output_path FOLDER, and name the samples",
            )
        raise InputError(
            f"{path} is JSON, but not an Inspect log", expected=_ACCEPTED, fix="save rows as .jsonl"
        )
    return _read_log(header, _objects(header.get("samples")), path)


def read_eval_log(path: Path) -> ToolLog:
    """The answers in a log of Inspect's own ``.eval`` format, a zip file with one member per sample."""
    with open_archive(path) as archive:
        names = archive.names
        start = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
        header = read_object(_parse_json(archive.read(start), start, path) if start else None)
        if not header.keys() >= {"version", "eval"}:
            raise InputError(f"{path} has no log header", expected=_ACCEPTED, fix="check the file")
        # Without a header at its end, the evaluation is still running or was killed.
        status = {} if start == "header.json" else {"status": "started"}
        return _read_log({**header, **status}, _members(archive, path), path)


def _members(archive: ZipArchive, path: Path) -> Iterator[Object]:
    """The samples: one member each, or for large ones a folder with a shell, metadata and attachments."""
    names = archive.names
    attachments: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for name in names:
        if match := _ATTACHMENTS.fullmatch(name):
            attachments[match["folder"]].append((int(match["start"]), name))
    for name in names:
        if not name.startswith("samples/"):
            continue
        if name.endswith("/sample.json"):
            folder = name.removesuffix("sample.json")
            sample = dict(read_object(_parse_json(archive.read(name), folder, path)))
            if (metadata := f"{folder}metadata.json") in names:
                sample["metadata"] = _parse_json(archive.read(metadata), folder, path)
            texts: list[Json] = []
            for _, attached in sorted(attachments[folder]):
                texts += read_list(_parse_json(archive.read(attached), folder, path))
            yield {**sample, "attachments": {str(number): text for number, text in enumerate(texts)}}
        elif name.endswith(".json") and name.count("/") == 1:
            yield from _objects([_parse_json(archive.read(name), name, path)])


def _read_log(header: Object, samples: Iterable[Object], path: Path) -> ToolLog:
    if header.get("version") != VERSION:
        raise InputError(
            f"{path} is an Inspect log of format version {header.get('version')}",
            expected=f"format version {VERSION}",
            fix="`inspect log convert` rewrites older logs; for newer ones update evenhand",
        )
    per_sample = [_rows(sample) for sample in samples]
    count, rows = len(per_sample), [row for rows in per_sample for row in rows]
    status, message = header.get("status"), read_object(header.get("error")).get("message")
    state = f"status {status}" + (f": {str(message).splitlines()[0][:200]}" if message else "")
    if not rows:
        raise InputError(
            f"{path} has no samples ({state})",
            expected="a log with samples",
            fix="run the evaluation to completion, without --no-log-samples",
        )
    warnings = []
    if status != "success":
        total = read_object(header.get("results")).get("total_samples")
        out_of = f" of {total:,}" if isinstance(total, int) and total > count else ""
        warnings.append(f"the evaluation is not complete ({state}): it has {count:,}{out_of} samples")
    task = to_cell(read_object(header.get("eval")).get("task")) or "?"
    n_samples = len({row["sample"] for row in rows})
    summary = f"{len(rows):,} answers to {n_samples:,} samples of the Inspect task {task}"
    return log_records.read_tool_log(
        rows, path, tool="Inspect", prefix=_METADATA, summary=summary, warnings=tuple(warnings)
    )


def _rows(sample: Object) -> list[Row]:
    """One row for every answer of a sample; a sample without answers gives one row with the reason."""
    attachments, output = read_object(sample.get("attachments")), read_object(sample.get("output"))
    key, epoch = to_cell(sample.get("id")) or "", to_cell(sample.get("epoch")) or "1"
    answers = (
        (f"{key}:{epoch}:{at}" if at else f"{key}:{epoch}", text, failure)
        for at, (text, failure) in enumerate(_answers(sample, output, attachments))
    )
    cells: Row = {log_records.PROMPT: _input(sample.get("input"), attachments), log_records.CLUSTER: key}
    cells |= {"sample": key, "epoch": epoch, "target": to_cell(sample.get("target"))}
    cells["model"], tree = to_cell(output.get("model")), read_object(sample.get("metadata"))
    return log_records.answer_rows(answers, tree, prefix=_METADATA, cells=cells)


def _answers(sample: Object, output: Object, attachments: Object) -> Iterator[tuple[str | None, str | None]]:
    """Text and failure of every choice. Refused answers and answers of failed samples have no text."""
    choices = list(_objects(output.get("choices")))
    failed = "sample_error" if sample.get("error") else None
    if not choices:
        yield None, failed or "no_answer"
    for choice in choices:
        content = read_object(choice.get("message")).get("content")
        refused = "content_filter" if choice.get("stop_reason") == "content_filter" else None
        failure = failed or refused or (to_cell(output.get("error")) and "model_error")
        yield (None, failure) if failure else (_text(content, attachments), None)


def _input(value: Json, attachments: Object) -> str | None:
    """The prompt: the input itself, or the user's last message."""
    if isinstance(value, str):
        return _resolve_attachment(value, attachments)
    messages = [message.get("content") for message in _objects(value) if message.get("role") == "user"]
    return _text(messages[-1], attachments) if messages else None


def _text(content: Json, attachments: Object) -> str | None:
    """The text of a message: a string, or the text parts of a list; reasoning and images are left out."""
    if isinstance(content, str):
        return _resolve_attachment(content, attachments)
    parts = [part.get("text") for part in _objects(content) if part.get("type") == "text"]
    texts = [_resolve_attachment(part, attachments) for part in parts if isinstance(part, str)]
    return to_cell("\n".join(text for text in texts if text)) if texts else None


def _resolve_attachment(text: str, attachments: Object) -> str | None:
    """The text, or the attachment that it refers to: Inspect stores long texts once."""
    if text.startswith(_ATTACHED):
        return to_cell(attachments.get(text.removeprefix(_ATTACHED), text))
    return to_cell(text)


def _parse_json(content: bytes, name: str, path: Path) -> Json:
    try:
        return cast(Json, json.loads(content.decode("utf-8", "replace")))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path}: {name} is not JSON: {error}", expected=_ACCEPTED, fix="download the file again"
        ) from error


def _objects(value: Json) -> Iterator[Object]:
    return (item for item in read_list(value) if isinstance(item, Mapping))


MAX_UNPACKED = 4 << 30
"""Maximum bytes that one archive may decompress to."""
_ZSTD = 93
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_DAMAGE = (
    zipfile.BadZipFile,
    NotImplementedError,  # an unsupported compression method
    RuntimeError,  # the archive needs a password
    EOFError,
    OSError,
    ValueError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
)
"""Errors from reading a damaged archive."""


class ZipArchive:
    """An open zip file; ``read`` counts the decompressed bytes and stops at the limit."""

    def __init__(self, path: Path, file: IO[bytes], limit: int) -> None:
        self._path, self._file, self._zip = path, file, zipfile.ZipFile(file)
        self._left = self._limit = limit
        self.names = tuple(self._zip.NameToInfo)
        """The members, without duplicates: a repeated name refers to its last content."""

    def read(self, name: str) -> bytes:
        """The content of a member."""
        info = self._zip.getinfo(name)
        content = b""
        if info.file_size <= self._left and info.compress_type == _ZSTD:
            content = self._unpack_zstd(info)
        elif info.file_size <= self._left:
            with self._zip.open(info) as member:
                content = member.read(self._left + 1)
        self._left -= max(len(content), info.file_size)
        if self._left < 0:
            raise InputError(
                f"{self._path} unpacks to more than {self._limit >> 20:,} MiB",
                expected="a smaller log: a higher ratio suggests a decompression bomb",
                fix="log fewer samples in one file, or leave out the parts of them that are not needed",
            )
        return content

    def _unpack_zstd(self, info: zipfile.ZipInfo) -> bytes:
        try:
            import zstandard
        except ImportError as error:
            raise MissingLibraryError(
                f"{self._path} is compressed with zstd, and the library 'zstandard' is not installed",
                expected="the extra `corpus` brings it",
                fix='pip install "evenhand[corpus]", or `inspect log convert --to json`',
            ) from error
        self._file.seek(info.header_offset)
        mark, name_size, extra_size = _LOCAL_HEADER.unpack(self._file.read(_LOCAL_HEADER.size))
        if mark != b"PK\x03\x04" or info.flag_bits & 1:
            raise zipfile.BadZipFile(f"{info.filename} has an unexpected local header")
        self._file.seek(name_size + extra_size, 1)
        packed = self._file.read(info.compress_size)
        try:
            with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as member:
                return bytes(member.read(self._left + 1))
        except zstandard.ZstdError as error:
            raise zipfile.BadZipFile(f"{info.filename}: {error}") from error


@contextmanager
def open_archive(path: Path, *, limit: int | None = None) -> Iterator[ZipArchive]:
    """The archive, closed afterwards; damage raises an error that names the file."""
    try:
        with open_regular(path) as file:
            most = min(MAX_UNPACKED, max_decompressed_size(path.stat().st_size)) if limit is None else limit
            yield ZipArchive(path, file, most)
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(
            f"{path} cannot be read: {error}", expected="a complete zip file", fix="download the file again"
        ) from error
