"""Callbacks that log a finished run: ``audit(..., callbacks=[MlflowLogger()])``.

Each loads its library when it is made, so that a missing one is said before anything is generated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Protocol, cast

from evenhand.api.parts import split_names
from evenhand.core.errors import InputError, MissingLibraryError
from evenhand.report.exchange import facts, numbers
from evenhand.report.findings import verdict
from evenhand.store.run import Run

Callback = Callable[[Run], None]
_FILES = ("report.html", "report.json", "comparisons.parquet", "run.json")


class _Mlflow(Protocol):
    """What is used of ``mlflow``."""

    def set_tracking_uri(self, uri: str) -> None: ...
    def set_experiment(self, experiment_name: str) -> object: ...
    def start_run(self, *, run_name: str) -> object: ...
    def log_metrics(self, metrics: Mapping[str, float]) -> object: ...
    def log_params(self, params: Mapping[str, str]) -> object: ...
    def set_tag(self, key: str, value: str) -> None: ...
    def log_artifact(self, local_path: str) -> None: ...
    def end_run(self) -> None: ...


class MlflowLogger:
    """Logs a run to MLflow: numbers as metrics, what identifies it as parameters, its report as artifacts."""

    def __init__(self, *, experiment: str = "evenhand", tracking_uri: str | None = None) -> None:
        self._mlflow = cast(_Mlflow, _library("mlflow", "mlflow"))
        self._experiment, self._uri = experiment, tracking_uri

    def __call__(self, run: Run) -> None:
        """Log a finished run."""
        if self._uri:
            self._mlflow.set_tracking_uri(self._uri)
        self._mlflow.set_experiment(self._experiment)
        self._mlflow.start_run(run_name=run.path.name)
        try:
            self._mlflow.log_params({key: value[:500] for key, value in facts(run).items()})
            self._mlflow.log_metrics(numbers(run))
            self._mlflow.set_tag("verdict", verdict(run))
            for name in _FILES:
                if (run.path / name).exists():
                    self._mlflow.log_artifact(str(run.path / name))
        finally:
            self._mlflow.end_run()


class _WandbRun(Protocol):
    """What is used of a run of ``wandb``."""

    summary: dict[str, object]

    def log(self, data: Mapping[str, float]) -> None: ...
    def save(self, glob_str: str, *, base_path: str, policy: str) -> object: ...
    def finish(self) -> None: ...


class _Wandb(Protocol):
    """What is used of ``wandb``."""

    def init(self, *, project: str, name: str, config: Mapping[str, str]) -> _WandbRun: ...


class WandbLogger:
    """Logs a run to Weights & Biases: numbers, what identifies it as configuration, its report as files."""

    def __init__(self, *, project: str = "evenhand") -> None:
        self._wandb = cast(_Wandb, _library("wandb", "wandb"))
        self._project = project

    def __call__(self, run: Run) -> None:
        """Log a finished run."""
        logged = self._wandb.init(project=self._project, name=run.path.name, config=facts(run))
        try:
            logged.log(numbers(run))
            logged.summary["verdict"] = verdict(run)
            for name in _FILES:
                if (run.path / name).exists():
                    logged.save(str(run.path / name), base_path=str(run.path), policy="now")
        finally:
            logged.finish()


LOGGERS: Mapping[str, Callable[[], Callback]] = {"mlflow": MlflowLogger, "wandb": WandbLogger}


def loggers(names: str | Sequence[str] | None) -> list[Callback]:
    """The callbacks of these names, their libraries loaded."""
    chosen = split_names(names) or ()
    for name in chosen:
        if name not in LOGGERS:
            raise InputError(f"--log {name!r}", accepted=", ".join(LOGGERS), todo="name one of these")
    return [LOGGERS[name]() for name in chosen]


def _library(name: str, extra: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingLibraryError(
            f"the library {name} is not installed",
            accepted=f"an installation with the extra {extra}",
            todo=f"pip install 'evenhand[{extra}]'",
        ) from error
