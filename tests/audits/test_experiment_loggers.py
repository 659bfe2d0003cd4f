"""Callbacks that log a run: through the narrow interface they use, and through MLflow where it is there."""

import base64
import gzip
import json
import re
import sys
from glob import glob
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest
from tests.audits.texts import run
from tests.suites.doors import write_doors

from evenhand import audit, score
from evenhand.audits.experiment_loggers import MlflowLogger, WandbLogger, create_loggers
from evenhand.core.errors import InputError, MissingLibraryError
from evenhand.core.records import Completion, ModelRef


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return run(tmp_path_factory.mktemp("runs"), "wide", {"women": 0.9, "men": 0.2}, prompts=12)


class _Recorder(ModuleType):
    """Records every call by name."""

    def __init__(self, name):
        super().__init__(name)
        self.calls = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def record(*arguments, **named):
            self.calls.append((name, arguments, named))
            return self

        return record


def test_mlflow_gets_metrics_parameters_and_the_report(finished, monkeypatch):
    fake = _Recorder("mlflow")
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    MlflowLogger(tracking_uri="file:///tmp/x")(finished)
    names = [name for name, _, _ in fake.calls]
    assert names[:3] == ["set_tracking_uri", "set_experiment", "start_run"]
    assert names[-1] == "end_run"
    (metrics,) = [arguments[0] for name, arguments, _ in fake.calls if name == "log_metrics"]
    assert metrics["wide.csv/group/women/sentiment.negative/gap"] > 0.4
    assert {Path(arguments[0]).name for name, arguments, _ in fake.calls if name == "log_artifact"} == NUMBERS


def test_a_run_is_ended_when_logging_fails(finished, monkeypatch):
    fake = _Recorder("mlflow")

    def full(*_):
        raise OSError("disk full")

    fake.log_metrics = full
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    with pytest.raises(OSError, match="disk full"):
        MlflowLogger()(finished)
    assert fake.calls[-1][0] == "end_run"


def test_wandb_gets_numbers_and_the_verdict(finished, monkeypatch):
    fake = _Recorder("wandb")
    fake.summary = {}
    monkeypatch.setitem(sys.modules, "wandb", fake)
    WandbLogger(project="p")(finished)
    assert fake.calls[0][0] == "init"
    assert fake.calls[0][2]["project"] == "p"
    assert "women" in fake.summary["verdict"]
    assert fake.calls[-1][0] == "finish"


@pytest.mark.parametrize("texts", [False, True])
def test_wandb_gets_the_files_of_a_run_whose_name_is_a_pattern(tmp_path, monkeypatch, texts):
    """What it is given is a pattern, which would match the files of the run beside this one."""
    saved = []

    def save(pattern, *, base_path, policy):
        assert Path(pattern).is_relative_to(base_path)
        saved.extend(Path(path).read_bytes() for path in glob(pattern))

    fake = _Recorder("wandb")
    fake.summary, fake.save = {}, save
    monkeypatch.setitem(sys.modules, "wandb", fake)
    other = run(tmp_path, "run1", {"women": 0.2, "men": 0.9}, prompts=12)
    named = run(tmp_path, "run?", {"women": 0.9, "men": 0.2}, prompts=12)
    WandbLogger(texts=texts)(named)
    assert (named.path / "comparisons.parquet").read_bytes() in saved
    assert (other.path / "comparisons.parquet").read_bytes() not in saved
    assert len(saved) == (3 + len(list(named.path.glob("*.parquet"))) if texts else len(NUMBERS))


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingLibraryError, match=r"^--log wandb needs .*evenhand\[wandb\]"):
        create_loggers(["wandb"])
    with pytest.raises(InputError, match="--log 'excel'"):
        create_loggers(["excel"])


def test_texts_are_logged_somewhere_or_not_at_all():
    with pytest.raises(
        InputError, match=r"--log-texts without --log\. Expected: --log-texts with --log mlflow"
    ):
        create_loggers(None, log_texts=True)
    with pytest.raises(InputError, match="--log-texts without --log"):
        score("no file", log_texts=True)


CANARIES = ("promptcanary", "textcanary", "mentioncanary", "stratumcanary", "foldercanary", "wordcanary")
NUMBERS = {"figures.html", "figures.json", "run.json"} | {
    f"{name}.parquet"
    for name in (
        "groups",
        "comparisons",
        "omnibus",
        "pairs",
        "distributions",
        "cuts",
        "exclusions",
    )
}


class _Talker:
    """A model whose every word is a canary."""

    ref = ModelRef("talker", "talker", revision="1")

    def generate(self, requests, spec):
        for request in requests:
            for sample in request.samples:
                yield Completion(request.id, sample, f" saw the horrible textcanary {sample}.", "stop", 3, 6)


def _scored(folder, **options):
    """Texts, prompts, masks, strata and a folder with a canary in each; one text is left out."""
    rows = [
        {
            "text": f"What a horrible textcanary, mentioncanary {n}." if n else "",
            "prompt": f"The promptcanary {n}",
            "group": ("women", "men")[n % 2],
            "words": "mentioncanary",
            "place": f"stratumcanary {n % 4 // 2}",
        }
        for n in range(40)
    ]
    folder.mkdir()
    pl.DataFrame(rows).write_csv(folder / "file.csv")
    columns = {"group": ["group"], "prompt": "prompt", "mentions": "words", "strata": ["place"]}
    command = f"evenhand score {folder / 'file.csv'} --stop wordcanary"
    return score(
        folder / "file.csv",
        **columns,
        metrics="sentiment",
        out=folder / "run",
        command=command,
        **options,
    )


def _audited(folder, **options):
    """A suite whose templates and fills are canaries, written by a model of canaries."""
    folder.mkdir()
    write_doors(folder, ["stratumcanary door", "promptcanary gate"])
    suite = f"templates:{folder / 'doors.toml'}"
    return audit(_Talker(), suite=suite, metrics="sentiment", strata=["place"], out=folder / "run", **options)


def _read(path):
    """A file as whoever it is sent to can read it: tables as lines, what a page packs unpacked."""
    if path.suffix == ".parquet":
        return pl.read_parquet(path).write_ndjson()
    content = path.read_text(encoding="utf-8")
    packed = re.findall(r'<script type="text/plain" id="\w+">([^<]+)</script>', content)
    return content + "".join(gzip.decompress(base64.b64decode(part)).decode() for part in packed)


class _Tracker(_Recorder):
    """A tracker that keeps what files say at the moment they are logged."""

    def __init__(self, name):
        super().__init__(name)
        self.summary, self.files = {}, {}

    def log_artifact(self, path):
        self.files[Path(path).name] = _read(Path(path))

    def save(self, path, *, base_path, policy):
        assert Path(path).parent == Path(base_path)
        self.log_artifact(path)

    @property
    def sent(self):
        """Everything that left: values and files."""
        return "\n".join([repr(self.calls), repr(self.summary), *self.files, *self.files.values()])


@pytest.mark.parametrize("library", ["mlflow", "wandb"])
@pytest.mark.parametrize("made", [_scored, _audited])
def test_no_text_leaves_without_being_asked_for(made, library, tmp_path, monkeypatch):
    tracker = _Tracker(library)
    monkeypatch.setitem(sys.modules, library, tracker)
    finished = made(tmp_path / "foldercanary", log=library)
    assert set(tracker.files) == NUMBERS
    assert [
        word for word in CANARIES if word in tracker.sent.replace(str(Path("foldercanary", "doors.toml")), "")
    ] == []
    # The canaries are there to be caught, and the numbers are there.
    assert "textcanary" in _read(finished.path / "report.html")
    assert "sentiment.negative" in tracker.sent
    assert "<svg" in tracker.files["figures.html"]
    assert json.loads(tracker.files["figures.json"])["comparisons"]


@pytest.mark.parametrize("library", ["mlflow", "wandb"])
def test_texts_leave_where_they_are_asked_for(library, tmp_path, monkeypatch):
    tracker = _Tracker(library)
    monkeypatch.setitem(sys.modules, library, tracker)
    finished = _scored(tmp_path / "foldercanary", log=[library], log_texts=True)
    assert {"report.html", "report.json", "run.json", "generations.parquet", "examples.parquet"} <= set(
        tracker.files
    )
    assert tracker.files["report.html"] == _read(finished.path / "report.html")
    assert all(word in tracker.sent for word in CANARIES)


def test_callbacks_get_the_finished_run(tmp_path, monkeypatch):
    from tests.audits.texts import table

    fake = _Recorder("wandb")
    fake.summary = {}
    monkeypatch.setitem(sys.modules, "wandb", fake)
    seen = []
    table({"women": 0.9, "men": 0.2}, prompts=4).write_csv(tmp_path / "t.csv")
    found = score(
        tmp_path / "t.csv",
        group=["group"],
        prompt="prompt",
        metrics="sentiment",
        out=tmp_path / "run",
        log="wandb",
        callbacks=[lambda run: seen.append(run.path)],
    )
    assert seen == [found.path]
    assert fake.calls[-1][0] == "finish"


@pytest.mark.filterwarnings("ignore")
def test_the_real_mlflow_keeps_what_is_logged(finished, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="pip install 'evenhand[mlflow]'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (tmp_path / "mlruns").as_uri()
    MlflowLogger(experiment="audits", tracking_uri=uri)(finished)
    client = mlflow.MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("audits")
    (logged,) = client.search_runs([experiment.experiment_id])
    assert logged.data.params["model"] == "wide.csv"
    assert logged.data.metrics["gaps_supported"] >= 1
    assert {item.path for item in client.list_artifacts(logged.info.run_id)} == NUMBERS
