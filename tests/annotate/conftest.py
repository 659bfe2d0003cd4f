"""A real PostgreSQL for the tests that must hold on both databases."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.annotate.study_parts import free_port, make_study

from evenhand.annotate.study import Study


def _program(name: str) -> str | None:
    found = shutil.which(name)
    if found:
        return found
    # Debian keeps the server's programs out of the path.
    return next((str(path) for path in sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))), None)


def _unprivileged() -> dict[str, int | list[int]]:
    """What makes a child somebody else, where this is root: PostgreSQL refuses to be started by it."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    pytest.skip("PostgreSQL cannot be started by root, and there is no user postgres or nobody")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL that lives as long as the tests."""
    initdb, server = _program("initdb"), _program("postgres")
    if not initdb or not server:
        pytest.skip("no PostgreSQL found: install the distribution's package `postgresql`")
    somebody = _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="evenhand-pg-"))
    try:
        if somebody:
            os.chown(folder, somebody["user"], somebody["group"])
        data = folder / "data"
        made = subprocess.run(
            [
                initdb,
                "-D",
                data,
                "-U",
                "tester",
                "--auth=trust",
                "--no-sync",
                "--encoding=UTF8",
                "--locale=C",
            ],
            **somebody,
            capture_output=True,
            cwd=folder,
            check=False,
        )
        if made.returncode:
            pytest.skip(f"initdb failed: {made.stderr.decode(errors='replace').strip()[-200:]}")
        port = free_port()
        options = ["-p", str(port), "-c", "listen_addresses=127.0.0.1", "-k", str(folder)]
        process = subprocess.Popen(
            [server, "-D", data, *options],
            **somebody,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            url = f"postgresql://tester@127.0.0.1:{port}/postgres"
            _answers(url, process)
            yield url
        finally:
            process.terminate()
            process.wait(timeout=30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _answers(url: str, process: subprocess.Popen[bytes]) -> None:
    import sqlalchemy as sa

    engine = sa.create_engine(url.replace("postgresql:", "postgresql+pg8000:"), poolclass=sa.pool.NullPool)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(sa.exc.SQLAlchemyError, OSError), engine.connect():
            return
        time.sleep(0.1)
    pytest.skip("PostgreSQL did not start")


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest) -> str | None:
    """Where answers are kept: None for the study's own file, or the URL of a PostgreSQL."""
    return str(request.getfixturevalue("postgres")) if request.param == "postgresql" else None


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """Twenty texts, three people each, no checks."""
    return make_study(tmp_path / uuid.uuid4().hex, checks=False)
