"""Corpora behind URLs: an S3 server of our own, and the path any other store takes."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Iterator

import polars as pl
import pytest

from evenhand.core.errors import InputError
from evenhand.corpus.scan import scan_corpus
from evenhand.store.text_sources import find_sources

fsspec = pytest.importorskip("fsspec")
from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402

LINES = [f"{number} She was happy. He was afraid!" for number in range(50)]


def files() -> dict[str, bytes]:
    """The same fifty texts, three times."""
    table = io.BytesIO()
    pl.DataFrame({"text": LINES}).write_parquet(table)
    return {
        "part/a.txt": "\n".join(LINES).encode(),
        "part/b.txt.gz": gzip.compress("\n".join(LINES).encode()),
        "part/c.parquet": table.getvalue(),
    }


def counts(run: object) -> dict[str, int]:
    table = run.table("occurrence")  # type: ignore[attr-defined]
    return dict(zip(table["emotion"], table["count"], strict=True))


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    server_of = pytest.importorskip("moto.server", reason="moto[server] is not installed")
    server = server_of.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    before = dict(fsspec.config.conf)
    fsspec.config.conf["s3"] = {"endpoint_url": f"http://{host}:{port}", "key": "k", "secret": "s"}
    system = fsspec.filesystem("s3", skip_instance_cache=True)
    system.mkdir("corpora")
    for name, data in files().items():
        with system.open(f"corpora/{name}", "wb") as file:
            file.write(data)
    yield "s3://corpora"
    fsspec.config.conf.clear()
    fsspec.config.conf.update(before)
    server.stop()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("place", ["part", "part/*", "part/a.txt"])
def test_s3(bucket: str, tmp_path, place: str) -> None:
    run = scan_corpus(f"c={bucket}/{place}", out=tmp_path / "run", workers=2)
    times = 1 if place.endswith("txt") else 3
    assert counts(run) == {"anger": 0, "fear": 50 * times, "joy": 50 * times, "sadness": 0}
    assert run.table("problems").is_empty()
    assert run.manifest["shards"][0][1] == "s3://corpora/part/a.txt"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_an_object_that_vanishes_is_reported(bucket: str, tmp_path) -> None:
    from evenhand.corpus.scan import prepare

    system = fsspec.filesystem("s3")
    for name in ("keep", "lost"):
        with system.open(f"corpora/pair/{name}.txt", "wb") as file:
            file.write(b"she is happy")
    prepared = prepare(f"c={bucket}/pair", out=tmp_path / "run")
    system.rm("corpora/pair/lost.txt")
    run = prepared.run()
    assert counts(run)["joy"] == 1
    (problem,) = run.table("problems").iter_rows()
    assert problem[0] == "s3://corpora/pair/lost.txt"


class Elsewhere(MemoryFileSystem):
    """A store of another name, with files of its own."""

    protocol = "hf"
    store: dict[str, object] = {}  # noqa: RUF012
    pseudo_dirs = [""]  # noqa: RUF012


@pytest.mark.parametrize("protocol", ["hf", "gs"])
def test_any_store_fsspec_knows(protocol: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = type("Store", (Elsewhere,), {"protocol": protocol, "store": {}, "pseudo_dirs": [""]})
    monkeypatch.setitem(sys.modules["fsspec.registry"]._registry, protocol, system)
    for name, data in files().items():
        with fsspec.open(f"{protocol}://datasets/{name}", "wb") as file:
            file.write(data)
    run = scan_corpus(f"c={protocol}://datasets/part", out=tmp_path / "run")
    assert counts(run)["joy"] == 150
    assert run.table("samples")["file"].str.starts_with(f"{protocol}://").all()


def test_a_store_without_its_library_names_what_to_install() -> None:
    with pytest.raises(InputError, match="a URL that fsspec supports"):
        find_sources(["nosuchstore://bucket/x.txt"])
