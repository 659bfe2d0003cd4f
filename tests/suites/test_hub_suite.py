"""Datasets as suites: local files and folders, and the Hub's cache as it lies on a disk."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import polars as pl
import pytest

import evenhand
from evenhand.core import registry
from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError
from evenhand.core.records import Execution, Group, Mention, Prompt
from evenhand.suites.hub_datasets import (
    DatasetName,
    HubSuite,
    PromptColumns,
    choose_files,
    parse_dataset_name,
)

OFFLINE = Execution(offline=True)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
ROWS = [
    {"prompt": {"text": "The nurse said"}, "who": "nurse", "kind": "said"},
    {"prompt": {"text": "The pilot said"}, "who": "pilot", "kind": "said"},
    {"prompt": {"text": "The nurse ran"}, "who": "nurse", "kind": "ran"},
    {"prompt": {"text": " "}, "who": "nurse", "kind": "ran"},
]
QUERY = "?prompt=prompt.text&group.job=who"


def lines(path: Path, rows: list[dict[str, object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def prompts(name: str) -> list[Prompt]:
    return list(HubSuite(name=name, execution=OFFLINE).prompts())


def cached(root: Path, files: dict[str, pl.DataFrame | str], *, ref: str = "main") -> Path:
    """A dataset in the Hub's cache, as huggingface_hub lays it out."""
    folder = root / "datasets--org--jobs"
    snapshot = folder / "snapshots" / COMMIT
    for name, content in files.items():
        path = snapshot / name
        path.parent.mkdir(parents=True, exist_ok=True)
        content.write_parquet(path) if isinstance(content, pl.DataFrame) else path.write_text(content)
    (folder / "refs").mkdir(exist_ok=True)
    (folder / "refs" / ref).write_text(COMMIT)
    return snapshot


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    constants = pytest.importorskip("huggingface_hub.constants", reason="needs the extra models")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def test_a_file_is_a_suite_and_its_fields_are_columns(tmp_path: Path) -> None:
    path = lines(tmp_path / "jobs.jsonl", ROWS)
    suite = HubSuite(name=f"{path}{QUERY}&cluster=kind&baseline.job=nurse&stratum=kind&mentions=who")
    first, second, third = suite.prompts()
    assert (first.text, first.groups, first.cluster) == ("The nurse said", (Group("job", "nurse"),), "said")
    assert first.mentions == (Mention("nurse"),)
    assert (second.cluster, third.cluster, third.meta) == ("said", "ran", {"kind": "ran"})
    assert suite.info.baselines == {"job": "nurse"}
    assert suite.info.version == file_digest(path)
    assert suite.info.notes == ("1 rows have no prompt and are left out.",)


def test_without_a_cluster_every_row_is_its_own_and_a_list_gives_all_its_prompts(tmp_path: Path) -> None:
    rows = [{"prompts": ["One", "Two"], "who": "a"}, {"prompts": ["Three"], "who": "b"}]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(rows))
    found = prompts(f"{path}?prompt=prompts&group.job=who")
    assert [(one.text, one.cluster) for one in found] == [
        ("One", "row 0"),
        ("Two", "row 0"),
        ("Three", "row 1"),
    ]


def test_templates_pair_groups_and_copies_are_taken_once(tmp_path: Path) -> None:
    rows = [{"p": "Hi", "g": "a", "t": "1"}, {"p": "Hi", "g": "b", "t": "1"}]
    found = prompts(f"{lines(tmp_path / 'x.jsonl', rows)}?prompt=p&group.g=g&template=t")
    assert [(one.template_id, one.cluster) for one in found] == [("1", "1")] * 2
    doubled = [{"p": ["Hi", "Hi"], "g": "a"}, {"p": ["Ho"], "g": "b"}]
    suite = HubSuite(name=f"{lines(tmp_path / 'y.jsonl', doubled)}?prompt=p&group.g=g")
    assert len(list(suite.prompts())) == 2
    assert suite.info.notes == ("1 prompts are copies and are used once.",)


def test_a_revision_in_the_hubs_cache_is_pinned_and_stands_in_the_manifest(hub: Path, tmp_path: Path) -> None:
    table = pl.DataFrame(
        {"text": ["The nurse", "The pilot"] * 4, "who": ["nurse", "pilot"] * 4, "n": range(8)}
    )
    cached(hub, {"data/test-00000-of-00001.parquet": table, "data/train-00000-of-00001.parquet": table[:2]})
    name = "hub:org/jobs#test?prompt=text&group.job=who&cluster=n"
    run = evenhand.audit(
        "stub", suite=name, samples=1, metrics="sentiment", offline=True, out=tmp_path / "run"
    )
    suite = run.manifest["suites"]["org/jobs#test"]
    assert suite["version"] == COMMIT
    assert suite["summary"] == f"prompts of the dataset org/jobs, revision {COMMIT}"
    assert run.manifest["identity"]["suites"]["org/jobs#test"]["version"] == COMMIT
    assert run.table("prompts").height == 8


def test_a_revision_can_be_named(hub: Path) -> None:
    table = pl.DataFrame({"text": ["The nurse"], "who": ["nurse"]})
    cached(hub, {"train.parquet": table}, ref="v1")
    query = "?prompt=text&group.job=who"
    assert HubSuite(name=f"org/jobs@v1{query}", execution=OFFLINE).info.version == COMMIT
    assert HubSuite(name=f"org/jobs@{COMMIT}{query}", execution=OFFLINE).info.version == COMMIT
    with pytest.raises(InputError) as caught:
        HubSuite(name=f"org/jobs@v2{query}", execution=OFFLINE)
    assert str(caught.value).startswith(
        "the dataset 'org/jobs' at 'v2' is not on this machine, and the run is offline. Expected: hub:"
    )


def test_the_card_of_a_data_set_says_its_configurations(hub: Path) -> None:
    pytest.importorskip("yaml", reason="needs PyYAML")
    card = (
        "---\nconfigs:\n- config_name: first\n  data_files:\n  - split: test\n    path: a/*.parquet\n"
        "- config_name: second\n  data_files: b/**/*.parquet\n---\n# Jobs\n"
    )
    one = pl.DataFrame({"text": ["One"], "who": ["a"]})
    two = pl.DataFrame({"text": ["Two"], "who": ["a"]})
    cached(hub, {"README.md": card, "a/x.parquet": one, "b/y.parquet": two})
    query = "?prompt=text&group.job=who"
    assert [prompt.text for prompt in prompts(f"org/jobs#first/test{query}")] == ["One"]
    assert [prompt.text for prompt in prompts(f"org/jobs#second/train{query}")] == ["Two"]
    with pytest.raises(InputError) as caught:
        prompts(f"org/jobs{query}")
    assert str(caught.value) == (
        "org/jobs has 2 configurations. Expected: first, second. Fix: name it with #CONFIG/SPLIT, or "
        "#SPLIT where there is one configuration."
    )


COLUMNS = PromptColumns("p", {"g": "g"}, {})


@pytest.mark.parametrize(
    ("files", "config", "split", "chosen"),
    [
        (["train.csv", "test.csv", "README.md"], "", "test", ["test.csv"]),
        (["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"], "", "", 2),
        (["anything.jsonl"], "", "", ["anything.jsonl"]),
        (["my_dev.jsonl.gz", "my_train.jsonl.gz"], "", "validation", ["my_dev.jsonl.gz"]),
        (["en/test/0000.parquet", "fr/test/0000.parquet"], "fr", "test", ["fr/test/0000.parquet"]),
        ([".cache/train.csv", "_old/train.csv", "train.csv"], "", "", ["train.csv"]),
        (["attrain.csv", "contest.csv"], "", "train", 2),  # parts of longer words say nothing
    ],
)
def test_splits_are_told_by_the_names_of_files(files, config: str, split: str, chosen) -> None:
    found = choose_files(files, "", DatasetName("org/x", "", config, split, COLUMNS))
    assert (len(found) if isinstance(chosen, int) else found) == chosen


def test_a_card_that_is_made_to_harm_does_none() -> None:
    pytest.importorskip("yaml", reason="needs PyYAML")
    nested = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    card = (
        f"---\n{nested}configs:\n- config_name: *a59\n  data_files:\n  - split: *a59\n    path: x.csv\n---\n"
    )
    assert choose_files(["x.csv"], card, DatasetName("org/x", "", "", "", COLUMNS)) == ["x.csv"]
    assert choose_files(["x.csv"], "---\n: [\n---\n", DatasetName("org/x", "", "", "", COLUMNS)) == ["x.csv"]


def test_datasets_finds_the_same_files(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="needs the datasets library")
    for name, rows in {"train": ROWS[:1], "test": ROWS[1:3]}.items():
        lines(tmp_path / "set" / "data" / f"{name}.jsonl", rows)
    theirs = datasets.load_dataset(str(tmp_path / "set"), cache_dir=str(tmp_path / "cache"))
    for split in theirs:
        ours = prompts(f"{tmp_path / 'set'}#{split}{QUERY}")
        assert [one.text for one in ours] == [row["prompt"]["text"] for row in theirs[split]]


@pytest.mark.parametrize(
    ("name", "came"),
    [
        ("?prompt=a&group.x=b", "the name of the dataset is empty"),
        ("org/x", "'nothing' names no prompt column"),
        ("org/x?prompt=a", "'prompt=a' names no group column"),
        ("org/x?prompt=a&group.x=b&prompt=c", "prompt=c is given twice"),
        ("org/x?prompt=a&group.x=b&color=c", "color=c is not known"),
        ("org/x?prompt=a&group.x=b&.y=c", ".y=c is not known"),
        ("org/x?prompt=a&group.x=b&=c", "=c is not known"),
        ("org/x?prompt=&group.x=b", "prompt names no column"),
        ("org/x?prompt=a&group.x=b&baseline.y=c", "baseline.y names an axis without a group column"),
        ("org/x#a/?prompt=a&group.x=b", "#a/ is not a part of a dataset"),
    ],
)
def test_a_name_that_says_too_little_is_explained(name: str, came: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_dataset_name(name)
    assert str(caught.value).startswith(
        f"{came}. Expected: hub:ORG/NAME[@REVISION][#CONFIG/SPLIT]?prompt=COLUMN"
    )
    assert str(caught.value).endswith("Fix: quote the whole name: a shell interprets ? and &.")


@pytest.mark.parametrize("place", ["a?b", "a#b", "a@b", "set[1]", "~", "%20"])
def test_a_folder_is_named_whatever_marks_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    lines(tmp_path / place / f"{place}.jsonl", [{"p": "Hi", "g": "a"}])
    for name in (place, f"{place}/{place}.jsonl", f"{place}#train"):
        assert parse_dataset_name(f"{name}?prompt=p&group.g=g").place == name.removesuffix("#train")
        assert [one.text for one in prompts(f"{name}?prompt=p&group.g=g")] == ["Hi"]


def test_a_file_on_a_card_is_no_pattern() -> None:
    pytest.importorskip("yaml", reason="needs PyYAML")
    card = "---\nconfigs:\n- config_name: only\n  data_files: a[1].csv\n---\n"
    asked = DatasetName("org/x", "", "", "", COLUMNS)
    assert choose_files(["a1.csv", "a[1].csv"], card, asked) == ["a[1].csv"]
    assert choose_files(["a1.csv"], card, asked) == ["a1.csv"]


def test_wrong_columns_groups_and_places_are_named(tmp_path: Path) -> None:
    path = lines(tmp_path / "x.jsonl", [{"p": "Hi", "g": "(rest)"}, {"p": "Ho", "g": "b"}])
    for query, came in {
        "?prompt=q&group.g=g": f"{path} has no column 'q' (prompt). Expected: p, g.",
        "?prompt=p.text&group.g=g": f"{path} has nothing in the column 'p.text' (prompt). Expected: p, g.",
        "?prompt=p&group.g=g": f"column 'g' of {path} has a group named '(rest)', a reserved name.",
    }.items():
        with pytest.raises(InputError) as caught:
            prompts(f"{path}{query}")
        assert str(caught.value).startswith(came)
    other = lines(tmp_path / "y.jsonl", [{"p": "Hi", "g": "a"}])
    with pytest.raises(InputError, match="the baseline 'z' of axis 'g' has no prompts"):
        prompts(f"{other}?prompt=p&group.g=g&baseline.g=z")
    with pytest.raises(InputError, match="is not there"):
        prompts("./absent?prompt=p&group.g=g")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no tables"):
        prompts(f"{tmp_path / 'empty'}?prompt=p&group.g=g")


def test_the_suite_is_registered() -> None:
    assert any(entry.name == "hub" for entry in registry.list_entries("suites"))


@contextmanager
def hub_server(files: dict[str, bytes]) -> Iterator[tuple[str, list[str]]]:
    """The Hub's wire form for one dataset, and the files it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(self.command == "GET")

        do_HEAD = do_GET

        def _answer(self, with_body: bool) -> None:
            path = unquote(self.path.partition("?")[0])
            name = path.partition(f"/resolve/{COMMIT}/")[2]
            if path.startswith("/api/datasets/org/jobs/tree/"):
                listed = [
                    {"type": "file", "path": one, "size": len(content), "oid": str(len(one))}
                    for one, content in files.items()
                ]
                self._send(json.dumps(listed).encode(), with_body)
            elif path.startswith("/api/datasets/org/jobs"):
                siblings = [{"rfilename": one} for one in files]
                known = {"id": "org/jobs", "sha": COMMIT, "private": False, "tags": [], "downloads": 0}
                self._send(json.dumps({**known, "likes": 0, "siblings": siblings}).encode(), with_body)
            elif name in files:
                asked.append(name)
                self._send(files[name], with_body, ETag=f'"{name}"', **{"X-Repo-Commit": COMMIT})
            else:
                self.send_error(404)

        def _send(self, body: bytes, with_body: bool, **headers: str) -> None:
            self.send_response(200)
            for key, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_only_the_files_of_the_split_are_downloaded(
    hub: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    row = json.dumps({"p": "Hi", "g": "a"}).encode()
    files = {"README.md": b"# Jobs", "train.jsonl": row, "test[1].jsonl": row, "model.py": b"raise"}
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with hub_server(files) as (url, asked):
        monkeypatch.setattr(constants, "ENDPOINT", url)
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace("https://huggingface.co", url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        suite = HubSuite(name="org/jobs#test?prompt=p&group.g=g")
    assert suite.info.version == COMMIT
    assert [one.text for one in suite.prompts()] == ["Hi"]
    assert set(asked) == {"README.md", "test[1].jsonl"}
    # What was downloaded is there when the Hub is not.
    again = HubSuite(name=f"org/jobs@{COMMIT}#test?prompt=p&group.g=g", execution=OFFLINE)
    assert list(again.prompts()) == list(suite.prompts())


def test_a_hub_that_cannot_be_reached_is_explained(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(InputError, match="the dataset 'org/jobs' is not available from the Hub: "):
        HubSuite(name="org/jobs?prompt=p&group.g=g")
