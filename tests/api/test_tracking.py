"""Callbacks that log a run: through the narrow interface they use, and through MLflow where it is there."""

import sys
from types import ModuleType

import pytest
from tests.api.texts import run

from evenhand import score
from evenhand.api.tracking import MlflowLogger, WandbLogger, loggers
from evenhand.core.errors import InputError, MissingLibraryError


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
    assert sum(name == "log_artifact" for name in names) == 4


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


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingLibraryError, match=r"pip install 'evenhand\[wandb\]'"):
        loggers(["wandb"])
    with pytest.raises(InputError, match="--log 'excel'"):
        loggers(["excel"])


def test_callbacks_get_the_finished_run(tmp_path, monkeypatch):
    from tests.api.texts import table

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
    assert {item.path for item in client.list_artifacts(logged.info.run_id)} >= {"report.html", "run.json"}
