"""Names that come from outside never choose where a file is read or written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenhand
from evenhand.audits.merge import _check_complete, _list_shards
from evenhand.core.errors import EvenhandError, RunFolderError
from evenhand.store.metric_evidence import cards_folder, evidence_file
from evenhand.store.run import Run
from evenhand.store.run_folder import default_folder

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


def _part(path: Path, *, slice_: tuple[int, int] = (1, 2), key: str = "0-ab12") -> Run:
    """A part of a run as far as merging looks at it before it copies anything."""
    manifest = {"identity": {"slice": list(slice_)}, "slice": {"shards": {"starter": [[0, key]]}}}
    return Run(path, manifest)


@pytest.mark.parametrize("key", ["../../../outside", "/etc/passwd", "..", "a/b", "a\\b", "", "-x", "a\nb"])
def test_a_manifest_cannot_name_shards_elsewhere(tmp_path: Path, key: str) -> None:
    assert _list_shards(_part(tmp_path), "starter") == [(0, "0-ab12")]
    with pytest.raises(RunFolderError, match="names the shard"):
        _list_shards(_part(tmp_path, key=key), "starter")


def test_a_manifest_that_says_there_are_a_billion_parts(tmp_path: Path) -> None:
    parts = [_part(tmp_path), _part(tmp_path, slice_=(2, 10**9))]
    with pytest.raises(
        EvenhandError, match=r"each of 1/1000000000, .*20/1000000000, \.\. 1000000000/1000000000"
    ):
        _check_complete(parts)


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
