"""The inputs to read: files by path, glob, folder or URL, with their format and compression."""

from __future__ import annotations

import glob
import io
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from lzma import LZMAError
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast
from urllib.parse import urlsplit

from evenhand.core.digests import Json
from evenhand.core.errors import EvenhandError, InputError
from evenhand.core.registry import require_library
from evenhand.core.regular_files import UnfitFileError, check_regular

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


@dataclass(frozen=True, slots=True)
class ReadProblem:
    """A part of an input that was not counted as it is, and its location."""

    file: str
    byte: int | None
    reason: str

    def __str__(self) -> str:
        where = self.file if self.byte is None else f"{self.file}, byte {self.byte:,}"
        return f"{where}: {self.reason}"


READ_ERRORS = (OSError, EOFError, LZMAError, zlib.error, RuntimeError)
"""Errors from damaged or vanished files."""

Format = Literal["text", "jsonl", "csv", "tsv", "parquet", "mediawiki"]
Compression = Literal["", "gzip", "bz2", "xz", "zstd"]

_PACKINGS: Mapping[Compression, str] = {"gzip": ".gz", "bz2": ".bz2", "xz": ".xz .lzma", "zstd": ".zst .zstd"}
_FORMATS: Mapping[Format, str] = {
    "jsonl": ".jsonl .ndjson .json",
    "csv": ".csv",
    "tsv": ".tsv",
    "parquet": ".parquet",
    "mediawiki": ".xml",
}
"""The suffixes of each format; all other files are running text."""
_TAGS = ("ETag", "etag", "blob_id", "md5Hash", "LastModified", "mtime", "created")
"""The names that stores use for the version of a file."""

_NOTHING = "no such file, or an empty folder"
_SHELL_PIPES = ("/dev/fd/", "/proc/self/fd/")
"""The shell's `<(...)` names a pipe, but one that has a writer."""
_ZSTD_STEP = 1 << 12
"""Stored bytes to decompress at a time: four of them may expand to 128 KiB."""


@dataclass(frozen=True, slots=True)
class TextSource:
    """One file of a corpus."""

    corpus: str
    path: str
    format: Format
    packing: Compression
    size: int
    """In bytes, as stored."""
    version: str = ""
    """Modification time, or the store's tag: the content of a name may change."""

    @property
    def is_url(self) -> bool:
        """Whether the file is on another machine."""
        return "://" in self.path

    def identity(self) -> dict[str, Json]:
        """The source as recorded in the manifest."""
        return asdict(self)


def find_sources(paths: Sequence[Path | str]) -> tuple[list[TextSource], list[ReadProblem]]:
    """The files behind paths, globs, folders and URLs, in a fixed order, and the paths without files.

    A path that exists exactly as given is not a glob, whatever characters it contains.
    ``NAME=PATH`` names a corpus; paths without a name form one corpus together.
    """
    sources: dict[tuple[str, str], TextSource] = {}
    problems: list[ReadProblem] = []
    shared = _shared_name([str(path) for path in paths if not _split_name(path)[0]])
    for path in paths:
        corpus, place = _split_name(path)
        refused = len(problems)
        files = list(_files(corpus or shared, place, problems))
        if not files and len(problems) == refused:
            problems.append(ReadProblem(place, None, _NOTHING))
        for file in files:
            sources.setdefault((file.corpus, file.path), file)
    if not sources:
        reasons = "; ".join(sorted({problem.reason for problem in problems} - {_NOTHING}))
        raise InputError(
            f"no files to read in {', '.join(map(str, paths)) or 'nothing'}{reasons and f': {reasons}'}",
            expected="files, folders, globs and URLs of text, JSONL, CSV, TSV, Parquet or MediaWiki XML",
            fix="check the path",
        )
    return list(sources.values()), problems


def open_source(source: TextSource) -> tuple[BinaryIO, BinaryIO]:
    """The decompressed bytes of a source, and the stored bytes below, whose position measures progress."""
    raw = _raw(source)
    if source.packing == "zstd":
        return cast(BinaryIO, io.BufferedReader(_ZstdFrames(raw), 1 << 20)), raw
    module = {"gzip": "gzip", "bz2": "bz2", "xz": "lzma"}.get(source.packing)
    return import_module(module).open(raw) if module else raw, raw


def _raw(source: TextSource) -> BinaryIO:
    if not source.is_url:
        return Path(source.path).open("rb")
    system, path = _file_system(source.path)
    return cast(BinaryIO, system.open(path, "rb"))


def _split_name(path: Path | str) -> tuple[str, str]:
    name, equals, place = str(path).partition("=")
    # The folder of a partitioned table may be named `split=train`.
    is_path = Path(path).exists() or bool(_matches(str(path)))
    return (name, place) if equals and "/" not in name and not is_path else ("", str(path))


def _shared_name(paths: Sequence[str]) -> str:
    names = [Path(path.rstrip("/")).name for path in paths]
    stems = {name.split(".")[0].replace("*", "").strip("-_") or "corpus" for name in names}
    if len(stems) == 1:
        return stems.pop()
    return os.path.commonprefix(list(stems)).rstrip("-_. ") or "corpus"  # noqa: RUF071, letters are meant


def _files(corpus: str, place: str, problems: list[ReadProblem]) -> Iterator[TextSource]:
    path = Path(place)
    if "://" in place:
        yield from _remote_files(corpus, place)
    elif path.is_dir():
        yield from (_local(corpus, file) for file in _inside(path, problems))
    else:
        files = [path] if path.exists() else filter(Path.is_file, _matches(place))
        for file in files:
            try:
                if file.exists() and not str(file.absolute()).startswith(_SHELL_PIPES):
                    check_regular(file)
            except UnfitFileError as error:
                problems.append(ReadProblem(str(file), None, str(error)))
            else:
                yield _local(corpus, file)


def _matches(pattern: str) -> list[Path]:
    """The paths that match a pattern; leading folders that exist by that name are taken literally."""
    path = Path(pattern)
    start = next((folder for folder in path.parents if folder.exists()), Path())
    inside = str(path.relative_to(start))
    return [start / match for match in sorted(glob.glob(inside, root_dir=start, recursive=True))]


def _local(corpus: str, path: Path) -> TextSource:
    # Opening a dangling link reports what is wrong.
    status = path.stat() if path.exists() else None
    size, version = (status.st_size, str(status.st_mtime_ns)) if status else (0, "")
    return _source(corpus, str(path), size, version)


def _inside(folder: Path, problems: list[ReadProblem]) -> list[Path]:
    """The files in a folder, recursively, except hidden ones and run folders; links are not followed."""

    def report(error: OSError) -> None:
        reason = f"cannot be listed: {error.strerror or error}; not counted"
        problems.append(ReadProblem(str(error.filename), None, reason))

    paths: list[Path] = []
    for place, folders, files in os.walk(folder, onerror=report):
        if {"run.json", ".lock"} <= set(files):
            folders[:] = []
            continue
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [Path(place, name) for name in files if not name.startswith(".")]
    # Dangling links are kept. Pipes, devices and links to them are not texts, and some never end.
    return [file for file in sorted(paths) if file.is_file() or not file.exists()]


def _remote_files(corpus: str, url: str) -> Iterator[TextSource]:
    """The files behind a URL; the URL is written to the run folder, so it must not contain a key."""
    refuse_keys(url)
    try:
        system, path = _file_system(url)
        protocol = url.split("://", 1)[0]
        if system.isdir(path):
            matches = sorted(system.find(path))
        elif system.exists(path):
            matches = [path]
        else:
            matches = sorted(system.glob(path)) if any(letter in path for letter in "*?[") else []
        for match in matches:
            name = match if "://" in match else f"{protocol}://{match.removeprefix(f'{protocol}:')}"
            if protocol in ("file", "local"):
                check_regular(match)
            info = system.info(match)
            tag = next((str(info[key]) for key in _TAGS if info.get(key)), "")
            yield _source(corpus, name, int(info.get("size") or 0), tag)
    except EvenhandError:
        raise
    # Each store raises its own errors, which have no common base class.
    except Exception as error:
        raise InputError(
            f"{url} cannot be listed: {type(error).__name__}: {error}",
            expected="a URL that is reachable from this machine",
            fix="check the URL, the network and the keys",
        ) from error


def refuse_keys(url: str) -> None:
    """Raise an error for a URL that contains a user, a password or a query."""
    # fsspec chains stores with two colons: filecache::https://HOST/FILE.
    for link in url.split("::"):
        try:
            parts = urlsplit(link)
        except ValueError as error:
            # Not shown: a URL that cannot be parsed may also contain a password.
            raise InputError(
                "a URL cannot be read", expected="PROTOCOL://HOST/PATH", fix="check its brackets"
            ) from error
        is_web = parts.scheme.endswith(("http", "https", "ftp"))
        # Other stores use @ in other ways: abfs://CONTAINER@ACCOUNT, github://ORG:REPO@TAG.
        has_password = parts.password is not None and parts.scheme != "github"
        if has_password or (is_web and ("@" in parts.netloc or parts.query)):
            raise InputError(
                f"the URL of {parts.hostname} contains a user, a password or a query",
                expected="URLs without keys: they are written to the run folder",
                fix="download the file first, or pass the key the way the store's library expects",
            )


def _file_system(url: str) -> tuple[Any, str]:
    fsspec = require_library("fsspec", url)
    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise InputError(
            f"{url} cannot be opened: {error}",
            expected="a URL that fsspec supports",
            fix="install the library it names, such as s3fs, gcsfs or huggingface_hub",
        ) from error
    return system, str(path)


def _source(corpus: str, path: str, size: int, version: str) -> TextSource:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes] or [""]
    packing = next((name for name, ends in _PACKINGS.items() if suffixes[-1] in ends.split()), None)
    suffix = ["", *suffixes][-2] if packing else suffixes[-1]
    kind: Format = next((name for name, ends in _FORMATS.items() if suffix in ends.split()), "text")
    return TextSource(corpus, path, kind, packing or "", size, version)


class _ZstdFrames(io.RawIOBase):
    """The bytes of zstd frames; the library's own reader would accept a truncated file as complete."""

    def __init__(self, raw: BinaryIO) -> None:
        self._steps, self._ready = _unpack_zstd(raw), memoryview(b"")

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill the buffer from one decompression step."""
        view = memoryview(buffer).cast("B")
        self._ready = self._ready or memoryview(next(filter(None, self._steps), b""))
        size = min(len(view), len(self._ready))
        view[:size], self._ready = self._ready[:size], self._ready[size:]
        return size


def _unpack_zstd(raw: BinaryIO) -> Iterator[bytes]:
    library = require_library("zstandard", "a zstd file")
    packed, frame = b"", None
    while data := packed or raw.read(_ZSTD_STEP):
        frame = frame or library.ZstdDecompressor().decompressobj()
        try:
            yield frame.decompress(data)
        except library.ZstdError as error:
            raise OSError(str(error)) from error
        packed, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
    if frame is not None:
        raise EOFError("Compressed file ended before the end of its last frame")
