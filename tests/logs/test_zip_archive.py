"""Zip files are read within a limit, whatever they claim."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import pytest

from evenhand.core.errors import InputError
from evenhand.logs.inspect_logs import open_archive


def packed(path: Path, content: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a", content)
    return path


def packed_with_zstd(path: Path, content: bytes, *, claimed: int | None = None) -> Path:
    """A zip file of one zstd member, put together by hand: zipfile writes none before Python 3.14."""
    zstandard = pytest.importorskip("zstandard", reason="needs the extra corpus")
    data = zstandard.ZstdCompressor().compress(content)
    sizes = (0, len(data), len(content) if claimed is None else claimed, 1, 0)
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 63, 0, 93, 0, 0, *sizes)
    central = struct.pack("<4s6H3I5H2I", b"PK\1\2", 63, 63, 0, 93, 0, 0, *sizes, 0, 0, 0, 0, 0)
    body = io.BytesIO()
    body.write(local + b"a" + data)
    start = body.tell()
    body.write(central + b"a")
    body.write(struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, body.tell() - start, start, 0))
    path.write_bytes(body.getvalue())
    return path


@pytest.mark.parametrize("pack", [packed, packed_with_zstd])
def test_members_are_read(tmp_path: Path, pack) -> None:
    with open_archive(pack(tmp_path / "a.zip", b"some text" * 1000)) as archive:
        assert archive.names == ("a",)
        assert archive.read("a") == b"some text" * 1000


@pytest.mark.parametrize("pack", [packed, packed_with_zstd])
def test_more_than_the_limit_is_refused(tmp_path: Path, pack) -> None:
    path = pack(tmp_path / "a.zip", bytes(3 << 20))
    with pytest.raises(InputError) as caught, open_archive(path, limit=1 << 20) as archive:
        archive.read("a")
    assert str(caught.value) == (
        f"{path} unpacks to more than 1 MiB. Expected: a smaller log: a higher ratio suggests a "
        "decompression bomb. Fix: log fewer samples in one file, or leave out the parts of them that are "
        "not needed."
    )


def test_a_member_that_lies_about_its_size_is_stopped_too(tmp_path: Path) -> None:
    path = packed_with_zstd(tmp_path / "a.zip", bytes(3 << 20), claimed=10)
    with (
        pytest.raises(InputError, match="unpacks to more than 1 MiB"),
        open_archive(path, limit=1 << 20) as archive,
    ):
        archive.read("a")


def test_the_limit_counts_all_members_together(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for name in "abc":
            file.writestr(name, bytes(400))
    with (
        pytest.raises(InputError, match="unpacks to more"),
        open_archive(tmp_path / "a.zip", limit=1000) as archive,
    ):
        for name in archive.names:
            archive.read(name)


@pytest.mark.parametrize("pack", [packed, packed_with_zstd])
def test_damage_is_named(tmp_path: Path, pack) -> None:
    path = pack(tmp_path / "a.zip", b"some text" * 1000)
    content = bytearray(path.read_bytes())
    content[32:40] = b"\xff" * 8
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match="cannot be read"), open_archive(path) as archive:
        archive.read("a")
