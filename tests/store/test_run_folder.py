import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from evenhand.core.errors import InputError, RunFolderError, StorageError
from evenhand.store.run import FORMAT, Run
from evenhand.store.run_folder import RunFolder, default_folder, run_stage
from evenhand.store.schemas import SCHEMAS, empty_table

IDENTITY = {"model": {"name": "m", "revision": "1"}, "seed": 0}


def _made(path, identity=IDENTITY, **kwargs):
    folder = RunFolder(path, identity=identity, **kwargs)
    folder.save_manifest()
    return folder


def test_the_same_identity_resumes_and_another_is_refused_with_the_fields(tmp_path):
    with _made(tmp_path / "r"):
        pass
    with RunFolder(tmp_path / "r", identity=IDENTITY) as folder:
        assert folder.manifest["identity"] == IDENTITY
    with pytest.raises(RunFolderError) as caught:
        RunFolder(tmp_path / "r", identity={"model": {"name": "m", "revision": "2"}, "seed": 1})
    assert 'it differs in model.revision: "1" there, "2" now; seed: 0 there, 1 now' in caught.value.problem


def test_a_refused_folder_is_free_again(tmp_path):
    with _made(tmp_path / "r"):
        pass
    with pytest.raises(RunFolderError):
        RunFolder(tmp_path / "r", identity={})
    with RunFolder(tmp_path / "r", identity=IDENTITY):
        pass


def test_fresh_empties_the_folder(tmp_path):
    with _made(tmp_path / "r") as folder:
        folder.write_shard("generate", "k", empty_table("generations"))
    with RunFolder(tmp_path / "r", identity={"other": 1}, fresh=True) as folder:
        assert not folder.has_shard("generate", "k")


def test_a_folder_that_is_not_ours_is_never_touched(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    for fresh in (False, True):
        with pytest.raises(RunFolderError, match="is not empty and is not a run folder"):
            RunFolder(tmp_path, identity=IDENTITY, fresh=fresh)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_one_process_a_folder(tmp_path):
    with _made(tmp_path / "r"):
        code = (
            "import sys\nfrom pathlib import Path\nfrom evenhand.store.run_folder import RunFolder\n"
            "from evenhand.core.errors import RunFolderError\n"
            "try: RunFolder(Path(sys.argv[1]), identity={})\n"
            "except RunFolderError as error: print(error.problem)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "r")], capture_output=True, text=True, check=True
        )
    said = done.stdout.strip()
    assert said.startswith(f"another process is working in {tmp_path / 'r'} (process {os.getpid()} on ")


def test_an_interrupted_stage_says_so(tmp_path):
    with _made(tmp_path / "r") as folder, pytest.raises(KeyboardInterrupt), run_stage(folder, "score"):
        raise KeyboardInterrupt
    assert Run.open(tmp_path / "r").manifest["stages"]["score"]["state"] == "interrupted"


def test_tables_are_checked_when_written(tmp_path):
    with _made(tmp_path / "r") as folder, pytest.raises(RunFolderError, match="value is String"):
        folder.write("scores", empty_table("scores").with_columns(pl.col("value").cast(pl.String)))


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_table_that_was_not_written_is_empty(tmp_path, name):
    with _made(tmp_path / "r") as folder:
        assert folder.run().table(name).equals(empty_table(name))


def test_shards_join_in_the_order_of_their_keys(tmp_path):
    row = dict.fromkeys(SCHEMAS["generations"])
    with _made(tmp_path / "r") as folder:
        for key in ("b", "a"):
            table = pl.DataFrame([{**row, "id": key}], schema=dict(SCHEMAS["generations"]))
            folder.write_shard("generate", key, table)
        folder.join_shards("generations", "generate", ["b", "a"])
        assert folder.run().table("generations")["id"].to_list() == ["b", "a"]


def test_a_foreign_run_json_does_not_make_a_folder_ours(tmp_path):
    (tmp_path / "run.json").write_text('{"runner": "mine"}')
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RunFolderError, match="is not empty and is not a run folder"):
        RunFolder(tmp_path, identity=IDENTITY, fresh=True)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_fresh_leaves_what_the_user_put_beside_a_run(tmp_path):
    with _made(tmp_path / "r") as folder:
        folder.write("scores", empty_table("scores"))
    (tmp_path / "r" / "notes.txt").write_text("mine")
    with RunFolder(tmp_path / "r", identity=IDENTITY, fresh=True):
        assert (tmp_path / "r" / "notes.txt").read_text() == "mine"
        assert not (tmp_path / "r" / "scores.parquet").exists()


def test_a_damaged_shard_is_not_finished(tmp_path):
    with _made(tmp_path / "r") as folder:
        folder.write_shard("generate", "k", empty_table("generations"))
        assert folder.has_shard("generate", "k")
        (tmp_path / "r" / "shards" / "generate" / "k.parquet").write_bytes(b"PAR1 cut")
        assert not folder.has_shard("generate", "k")


def test_a_damaged_table_is_said(tmp_path):
    with _made(tmp_path / "r") as folder:
        (tmp_path / "r" / "groups.parquet").write_bytes(b"PAR1 cut")
        with pytest.raises(RunFolderError, match="is damaged"):
            folder.run().table("groups")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not the manifest of a run"),
        ("[]", "is not the manifest of a run"),
        ('{"format": 1}', "is not the manifest of a run"),
        ('{"format": 99, "identity": {}}', "has run format 99"),
    ],
)
def test_a_damaged_manifest_is_said(tmp_path, content, message):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunFolderError, match=message):
        Run.open(tmp_path)


def test_a_folder_of_an_earlier_format_says_what_to_do(tmp_path):
    (tmp_path / "run.json").write_text('{"format": 1, "identity": {}}')
    with pytest.raises(RunFolderError) as caught:
        Run.open(tmp_path)
    assert caught.value.problem == f"{tmp_path} has run format 1, of an earlier evenhand"
    assert caught.value.fix.startswith("rerun the command that made it with --fresh")


def test_a_table_that_lacks_columns_says_which(tmp_path):
    with _made(tmp_path / "r") as folder:
        empty_table("groups").drop("nulls", "kind").write_parquet(tmp_path / "r" / "groups.parquet")
        for read in (folder.run().table, folder.run().scan):
            with pytest.raises(RunFolderError) as caught:
                read("groups")
            assert "groups.parquet lacks the columns kind, nulls" in caught.value.problem
            assert "--fresh" in caught.value.fix


def test_a_folder_without_a_manifest_is_no_run(tmp_path):
    with pytest.raises(RunFolderError, match="is not a run folder"):
        Run.open(tmp_path)


def test_a_path_that_is_a_file_is_a_storage_error(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="cannot be written"):
        RunFolder(tmp_path / "file", identity=IDENTITY)


def test_folder_names_are_safe_and_depend_on_the_identity():
    first = default_folder("audit", "../../etc/passwd", {"a": 1})
    assert first.parent.name == "runs"
    assert first != default_folder("audit", "../../etc/passwd", {"a": 2})
    assert first.name.startswith("audit-etc-passwd-")


def test_the_manifest_is_plain_json(tmp_path):
    with _made(tmp_path / "r"):
        pass
    manifest = json.loads((tmp_path / "r" / "run.json").read_text())
    assert manifest["format"] == FORMAT
    assert manifest["hardware"]["cores"] >= 1


def test_a_folder_in_which_only_a_kill_left_something_is_taken(tmp_path):
    """A process that dies before its first manifest is in place leaves the lock and half a manifest."""
    gone = subprocess.Popen([sys.executable, "-c", "pass"])
    gone.wait()
    left = tmp_path / "r" / f".run.json-{gone.pid}-{'0' * 8}-{'0' * 32}.part"
    left.parent.mkdir()
    left.write_text("{")
    (tmp_path / "r" / ".lock.holder").write_text("process 1 on nowhere\n")
    with _made(tmp_path / "r"):
        assert not left.exists()
    assert not (tmp_path / "r" / ".lock.holder").exists()


def test_what_another_process_is_writing_is_left_alone(tmp_path):
    """A report is written without the lock: its temporary file belongs to a process that lives."""
    with _made(tmp_path / "r"):
        pass
    alive = tmp_path / "r" / f".report.html-{os.getppid()}-{'0' * 8}-{'0' * 32}.part"
    alive.write_text("<")
    with RunFolder(tmp_path / "r", identity=IDENTITY):
        assert alive.exists()


def test_emptying_leaves_a_manifest_at_every_moment(tmp_path, monkeypatch):
    """Stopped between any two removals, the folder is still a run, and not a finished one."""
    with _made(tmp_path / "r") as folder:
        folder.manifest["ended"] = "then"
        folder.save_manifest()
        for name in ("scores", "groups"):
            folder.write(name, empty_table(name))
    (tmp_path / "r" / "tradeoff.md").write_text("of the run, and not known to the store")
    seen, really = [], Path.unlink

    def unlink(path, **options):
        if path.suffix != ".parquet":
            return really(path, **options)
        seen.append(Run.open(tmp_path / "r").manifest["ended"])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("pathlib.Path.unlink", unlink)
        RunFolder(tmp_path / "r", identity={"other": 1}, fresh=True)
    assert seen == [None]
    with RunFolder(tmp_path / "r", identity={"other": 1}, fresh=True) as folder:
        assert not (tmp_path / "r" / "scores.parquet").exists()
        assert Run.open(tmp_path / "r").manifest["identity"] == {"other": 1}


def test_a_run_is_printed_briefly_and_an_unknown_table_is_an_error(tmp_path: Path) -> None:
    empty_table("groups").write_parquet(tmp_path / "groups.parquet")
    run = Run(tmp_path, {"command": "evenhand audit stub", "name": "stub", "identity": {"long": "x" * 9000}})
    assert repr(run) == f"Run({str(tmp_path)!r}, command='evenhand audit stub', name='stub')"
    with pytest.raises(InputError, match="no table has the name 'group'") as caught:
        run.table("group")
    assert caught.value.expected == "groups"
