"""Callbacks that log a finished run: ``audit(..., callbacks=[MlflowLogger()])``, or ``log="mlflow"``.

Each loads its library when it is made, so that a missing one is reported before anything is generated.
Prompts and texts are logged only on request.
"""

from __future__ import annotations

import glob
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import polars as pl

from evenhand.audits.report.exports import list_identifiers, list_numbers
from evenhand.audits.report.findings import describe_run
from evenhand.audits.run_setup import Callback
from evenhand.core.errors import InputError
from evenhand.core.options import split_names
from evenhand.core.registry import require_library
from evenhand.report.render_run import format_report
from evenhand.store.run import MANIFEST, Run
from evenhand.store.schemas import SCHEMAS, empty_table

_REPORT: Final = ("report.html", "report.json", MANIFEST)
_ONE_BY_ONE: Final = ("prompts", "generations", "scores")
"""Tables with a row for each text, named by the ids of whoever gave it."""
_QUOTED: Final = ("examples", "explanations", "strata", "strata_groups")
"""Tables that the report quotes: texts, and strata, whose names may be what prompts say."""


class MlflowLogger:
    """Logs a run to MLflow: numbers as metrics, its identity as parameters, figures and tables as files.

    ``texts`` adds the report and the tables that hold prompts and texts, and the command line.
    """

    def __init__(
        self, *, experiment: str = "evenhand", tracking_uri: str | None = None, texts: bool = False
    ) -> None:
        self._mlflow = require_library("mlflow", "--log mlflow")
        self._experiment, self._uri, self._texts = experiment, tracking_uri, texts

    def __call__(self, run: Run) -> None:
        """Log a finished run."""
        if self._uri:
            self._mlflow.set_tracking_uri(self._uri)
        self._mlflow.set_experiment(self._experiment)
        self._mlflow.start_run(run_name=run.path.name)
        shown = run if self._texts else _WithoutTexts.of(run)
        try:
            self._mlflow.log_params({key: value[:500] for key, value in list_identifiers(shown).items()})
            self._mlflow.log_metrics(list_numbers(shown))
            self._mlflow.set_tag("verdict", describe_run(shown))
            with TemporaryDirectory() as folder:
                for file in _files(shown, Path(folder)):
                    self._mlflow.log_artifact(str(file))
        finally:
            self._mlflow.end_run()


class WandbLogger:
    """Logs a run to Weights & Biases: numbers, its identity as configuration, figures and tables as files.

    ``texts`` adds the report and the tables that hold prompts and texts, and the command line.
    """

    def __init__(self, *, project: str = "evenhand", texts: bool = False) -> None:
        self._wandb = require_library("wandb", "--log wandb")
        self._project, self._texts = project, texts

    def __call__(self, run: Run) -> None:
        """Log a finished run."""
        shown = run if self._texts else _WithoutTexts.of(run)
        # The library reads the files until it is finished.
        with TemporaryDirectory() as folder:
            logged = self._wandb.init(
                project=self._project, name=run.path.name, config=list_identifiers(shown)
            )
            try:
                logged.log(list_numbers(shown))
                logged.summary["verdict"] = describe_run(shown)
                for file in _files(shown, Path(folder)):
                    if glob.escape(str(file)) != str(file) and file.parent != Path(folder):
                        # wandb would read the name as a pattern, which other files match too.
                        file = Path(shutil.copy(file, folder))
                    logged.save(str(file), base_path=str(file.parent), policy="now")
            finally:
                logged.finish()


LOGGERS: Mapping[str, Callable[..., Callback]] = {"mlflow": MlflowLogger, "wandb": WandbLogger}


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
    return [LOGGERS[name](texts=log_texts) for name in names]


class _WithoutTexts(Run):
    """A run whose report quotes nothing: the tables of its texts are empty."""

    __slots__ = ()

    @classmethod
    def of(cls, run: Run) -> _WithoutTexts:
        """The run without its settings as given, too: they hold any words, and names of folders."""
        return cls(run.path, {**run.manifest, "command": "", "config": {}})

    def scan(self, name: str) -> pl.LazyFrame:
        """A table, empty where the report would quote it."""
        return empty_table(name).lazy() if name in _QUOTED else Run.scan(self, name)


def _files(run: Run, folder: Path) -> list[Path]:
    """The files to log; those that are made for it are written to ``folder``."""
    tables: Sequence[str] = tuple(SCHEMAS)
    report = [run.path / name for name in _REPORT]
    if isinstance(run, _WithoutTexts):
        tables = [name for name in SCHEMAS if name not in (*_ONE_BY_ONE, *_QUOTED)]
        contents = {
            "figures.html": format_report(run, "html"),
            "figures.json": format_report(run, "json"),
            MANIFEST: json.dumps(run.manifest, indent=1, ensure_ascii=False) + "\n",
        }
        report = [folder / name for name in contents]
        for file, content in zip(report, contents.values(), strict=True):
            file.write_text(content, encoding="utf-8", errors="backslashreplace")
    return [*report, *filter(Path.exists, (run.path / f"{name}.parquet" for name in tables))]
