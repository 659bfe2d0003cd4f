"""Members of a zip file, read up to a size limit; zstd too, which zipfile supports since 3.14."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from evenhand.core.errors import InputError, MissingLibraryError
from evenhand.core.files import max_decompressed_size
from evenhand.core.regular_files import open_regular

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

    def names(self) -> tuple[str, ...]:
        """The members, without duplicates: a repeated name refers to its last content."""
        return tuple(self._zip.NameToInfo)

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
