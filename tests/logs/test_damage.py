"""A log that is cut or changed anywhere is read or refused, and nothing else happens."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from evenhand.core.errors import EvenhandError
from evenhand.logs import read_log

FILES = Path(__file__).parent / "files"
NAMES = sorted(path.name for path in FILES.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_damage_is_refused_or_read(name: str, tmp_path: Path) -> None:
    whole = (FILES / name).read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / name
    for _ in range(12):
        content = bytearray(whole[: int(rng.integers(len(whole))) if rng.random() < 0.3 else None])
        for place in rng.integers(max(len(content), 1), size=int(rng.integers(1, 40))):
            if len(content):
                content[place] = int(rng.integers(256))
        path.write_bytes(bytes(content))
        try:
            log = read_log(path)
        except EvenhandError as error:
            assert error.expected
            assert error.fix
        else:
            assert log is None or log.table.height > 0


def test_a_password_is_not_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", "{}")
    content = bytearray(path.read_bytes())
    for mark in (b"PK\3\4", b"PK\1\2"):
        at = content.index(mark) + (6 if mark == b"PK\3\4" else 8)
        content[at] |= 1  # the flag of encryption
    path.write_bytes(bytes(content))
    with pytest.raises(EvenhandError, match="cannot be read"):
        read_log(path)
