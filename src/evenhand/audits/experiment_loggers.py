"""Callbacks that log a finished run: ``audit(..., callbacks=[MlflowLogger()])``, or ``log="mlflow"``.

Each loads its library when it is made, so that a missing one is said before anything is generated. Prompts
and texts leave only where they are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Final, Protocol, cast

import polars as pl

from evenhand.audits.report.exports import list_identifiers, list_numbers
from evenhand.audits.report.findings import describe_run
from evenhand.audits.report.formats import html_report, json_report
from evenhand.audits.run_setup import Callback
from evenhand.core.errors import InputError, MissingLibraryError
from evenhand.core.options import split_names
from evenhand.store.run import MANIFEST, Run
from evenhand.store.schemas import SCHEMAS, empty_table

_REPORT: Final = ("report.html", "report.json", MANIFEST)
_ONE_BY_ONE: Final = ("prompts", "generations", "scores")
"""Tables with a row for each text, named by the ids of whoever gave it."""
_QUOTED: Final = ("examples", "explanations", "strata", "strata_groups")
"""Tables that the report quotes: texts, and strata, whose names may be what prompts say."""


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
    """Logs a run to MLflow: numbers as metrics, its identity as parameters, figures and tables as files.

    ``texts`` adds the report and the tables that hold prompts and texts, and the command line.
    """

    def __init__(
        self, *, experiment: str = "evenhand", tracking_uri: str | None = None, texts: bool = False
    ) -> None:
        self._mlflow = cast(_Mlflow, _library("mlflow", "mlflow"))
        self._experiment, self._uri, self._texts = experiment, tracking_uri, texts

    def __call__(self, run: Run) -> None:
        """Log a finished run."""
        if self._uri:
            self._mlflow.set_tracking_uri(self._uri)
        self._mlflow.set_experiment(self._experiment)
        self._mlflow.start_run(run_name=run.path.name)
        shown = run if self._texts else _without_texts(run)
        try:
            self._mlflow.log_params({key: value[:500] for key, value in list_identifiers(shown).items()})
            self._mlflow.log_metrics(list_numbers(shown))
            self._mlflow.set_tag("verdict", describe_run(shown))
            with TemporaryDirectory() as folder:
                for file in _files(shown, Path(folder)):
                    self._mlflow.log_artifact(str(file))
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
    """Logs a run to Weights & Biases: numbers, its identity as configuration, figures and tables as files.

    ``texts`` adds the report and the tables that hold prompts and texts, and the command line.
    """

    def __init__(self, *, project: str = "evenhand", texts: bool = False) -> None:
        self._wandb = cast(_Wandb, _library("wandb", "wandb"))
        self._project, self._texts = project, texts

    def __call__(self, run: Run) -> None:
        """Log a finished run."""
        shown = run if self._texts else _without_texts(run)
        # The library reads the files until it is finished.
        with TemporaryDirectory() as folder:
            logged = self._wandb.init(
                project=self._project, name=run.path.name, config=list_identifiers(shown)
            )
            try:
                logged.log(list_numbers(shown))
                logged.summary["verdict"] = describe_run(shown)
                for file in _files(shown, Path(folder)):
                    logged.save(str(file), base_path=str(file.parent), policy="now")
            finally:
                logged.finish()


LOGGERS: Mapping[str, Callable[[bool], Callback]] = {
    "mlflow": lambda texts: MlflowLogger(texts=texts),
    "wandb": lambda texts: WandbLogger(texts=texts),
}


def create_loggers(log: str | Sequence[str] | None, *, log_texts: bool = False) -> list[Callback]:
    """The callbacks of these names, their libraries loaded."""
    names = split_names(log) or ()
    for name in names:
        if name not in LOGGERS:
            raise InputError(f"--log {name!r}", expected=", ".join(LOGGERS), fix="name one of these")
    if log_texts and not names:
        raise InputError(
            "--log-texts without --log",
            expected=f"--log-texts with --log {' or '.join(LOGGERS)}",
            fix="say where the texts are to be logged",
        )
    return [LOGGERS[name](log_texts) for name in names]


class _WithoutTexts(Run):
    """A run whose report quotes nothing: the tables of its texts are empty."""

    __slots__ = ()

    def scan(self, name: str) -> pl.LazyFrame:
        """A table, empty where the report would quote it."""
        return empty_table(name).lazy() if name in _QUOTED else Run.scan(self, name)


def _without_texts(run: Run) -> _WithoutTexts:
    """The run without texts, and without its settings as given: they hold any words, and names of folders."""
    return _WithoutTexts(run.path, {**run.manifest, "command": "", "config": {}})


def _files(run: Run, folder: Path) -> list[Path]:
    """The files to log; those that are made for it are written to ``folder``."""
    tables: Sequence[str] = tuple(SCHEMAS)
    if isinstance(run, _WithoutTexts):
        tables = [name for name in SCHEMAS if name not in (*_ONE_BY_ONE, *_QUOTED)]
        report = _written(run, folder)
    else:
        report = [run.path / name for name in _REPORT]
    return [*report, *filter(Path.exists, (run.path / f"{name}.parquet" for name in tables))]


def _written(run: _WithoutTexts, folder: Path) -> list[Path]:
    contents = {
        "figures.html": html_report(run),
        "figures.json": json_report(run),
        MANIFEST: json.dumps(run.manifest, indent=1, ensure_ascii=False) + "\n",
    }
    for name, content in contents.items():
        (folder / name).write_text(content, encoding="utf-8", errors="backslashreplace")
    return [folder / name for name in contents]


def _library(name: str, extra: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingLibraryError(
            f"the library {name} is not installed",
            expected=f"an installation with the extra {extra}",
            fix=f"pip install 'evenhand[{extra}]'",
        ) from error
