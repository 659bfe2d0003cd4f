"""Parts of a run, made apart and merged, are the run."""

import pytest

from evenhand import audit, merge
from evenhand.core.errors import InputError
from evenhand.store.schemas import SCHEMAS

HOW = {"limit": 200, "samples": 2, "metrics": "sentiment"}  # four shards of 64 prompts or fewer


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    return [audit("stub", shard=f"{n}/3", out=folder / str(n), **HOW) for n in (1, 2, 3)]


def test_merged_parts_equal_the_whole_run(parts, tmp_path):
    whole = audit("stub", out=tmp_path / "whole", **HOW)
    merged = merge(parts[2], parts[0].path, parts[1], out=tmp_path / "merged")
    for name in SCHEMAS:
        assert merged.table(name).equals(whole.table(name)), name
    assert merged.manifest["identity"] == whole.manifest["identity"]
    assert merged.manifest["stages"]["generate"]["items"] == 400
    assert (merged.path / "report.html").exists()


def test_a_merged_run_can_grow(parts, tmp_path):
    merged = merge(*parts, out=tmp_path / "merged")
    before = {path.name for path in (merged.path / "shards" / "generate").iterdir()}
    grown = audit("stub", out=merged.path, **{**HOW, "samples": 3})
    assert grown.table("generations").height == 600
    assert before <= {path.name for path in (merged.path / "shards" / "generate").iterdir()}


def test_a_missing_part_is_named(parts, tmp_path):
    with pytest.raises(InputError, match=r"^the parts are 1/3, 3/3\. Expected: each of 1/3, 2/3, 3/3 once\."):
        merge(parts[0], parts[2], out=tmp_path / "m")


def test_a_part_of_another_run_is_refused(parts, tmp_path):
    other = audit("stub", shard="2/3", seed=9, out=tmp_path / "other", **HOW)
    with pytest.raises(InputError, match="they differ in identity"):
        merge(parts[0], other, parts[2], out=tmp_path / "m")


def test_a_whole_run_is_no_part(parts, tmp_path):
    whole = audit("stub", limit=20, samples=1, metrics="sentiment", out=tmp_path / "whole")
    with pytest.raises(InputError, match="is not a part of a run"):
        merge(whole, parts[0])


@pytest.mark.parametrize("shard", ["0/3", "4/3", "x", "1", "1/0", "-1/2"])
def test_shards_that_make_no_sense_are_refused(shard):
    with pytest.raises(InputError, match="--shard"):
        audit("stub", shard=shard, **HOW)


def test_more_parts_than_shards_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"--shard 5/5 has nothing to do.*starter has 4 shards"):
        audit("stub", shard="5/5", out=tmp_path / "r", **HOW)
