"""Names that come from outside never choose where a file is read or written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand
from evenhand.core.errors import EvenhandError, RunFolderError
from evenhand.store.evidence import cards_folder, evidence_file
from evenhand.store.folder import default_folder

CLIMBING = (
    "../../evil",
    "/etc/passwd",
    "..",
    ".",
    "a/../../b",
    "..\\..\\evil",
    "a\0b",
    "~root",
    "con\n",
    "x" * 300,
)
names = st.sampled_from(CLIMBING) | st.text(max_size=60)


@given(names)
def test_a_run_is_named_after_anything_and_stays_in_its_folder(name: str) -> None:
    folder = default_folder("audit", name, {"model": "m"})
    assert folder.parent == Path("runs")
    assert folder.name.startswith("audit-")
    assert not {"/", "\\", "\0", "\n"} & set(folder.name)
    assert len(folder.name.encode("utf-8", "replace")) < 255


@given(names)
def test_the_evidence_of_a_metric_stays_among_the_cards(name: str) -> None:
    file = evidence_file(name)
    assert file.parent == cards_folder()
    assert file.suffix == ".json"
    assert not {"/", "\\", "\0", "\n"} & set(file.name)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("parts")
    how = {"limit": 80, "samples": 1, "metrics": "sentiment"}
    return [evenhand.audit("stub", shard=f"{n}/2", out=folder / str(n), **how).path for n in (1, 2)]


def _copied(parts: list[Path], folder: Path) -> list[Path]:
    return [Path(shutil.copytree(part, folder / part.name)) for part in parts]


@pytest.mark.parametrize("key", ["../../../outside", "/etc/passwd", "..", "a/b"])
def test_a_manifest_cannot_name_shards_elsewhere(parts: list[Path], tmp_path: Path, key: str) -> None:
    copies = _copied(parts, tmp_path)
    manifest = json.loads((copies[0] / "run.json").read_text())
    suite = next(iter(manifest["slice"]["shards"]))
    place, old = manifest["slice"]["shards"][suite][0]
    manifest["slice"]["shards"][suite][0] = [place, key]
    (copies[0] / "run.json").write_text(json.dumps(manifest))
    shutil.copy(copies[0] / "shards" / "generate" / f"{old}.parquet", tmp_path / "outside.parquet")
    with pytest.raises(RunFolderError, match="names the shard"):
        evenhand.merge(*copies, out=tmp_path / "merged")


def test_a_manifest_that_says_there_are_a_billion_parts(parts: list[Path], tmp_path: Path) -> None:
    copies = _copied(parts, tmp_path)
    manifest = json.loads((copies[1] / "run.json").read_text())
    manifest["identity"]["slice"] = [2, 10**9]
    (copies[1] / "run.json").write_text(json.dumps(manifest))
    with pytest.raises(
        EvenhandError, match=r"each of 1/1000000000, .*20/1000000000, \.\. 1000000000/1000000000"
    ):
        evenhand.merge(*copies, out=tmp_path / "merged")


def test_groups_with_names_like_paths_write_nothing_outside(tmp_path: Path) -> None:
    table = tmp_path / "in" / "..%2f..%2fevil.csv"
    table.parent.mkdir()
    rows = "".join(
        f'"{name}",A kind day {n}.\n' for n, name in enumerate(("../../evil", "/etc/x", "..")) for _ in "ab"
    )
    table.write_text(f"group,text\n{rows}")
    before = set(tmp_path.rglob("*"))
    run = evenhand.score(
        table, text="text", group={"../axis": "group"}, metrics="sentiment", out=tmp_path / "run"
    )
    made = set(tmp_path.rglob("*")) - before
    assert run.path == tmp_path / "run"
    assert all(path.is_relative_to(tmp_path / "run") for path in made)
