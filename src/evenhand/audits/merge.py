"""``merge``: the parts of an audit, made with ``--shard I/N``, as one run."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import polars as pl

from evenhand.audits.generator import STAGE
from evenhand.audits.loaded_run import check_has_comparisons, parse_metric_info
from evenhand.audits.measurement import build_analysis, finish_run, write_findings
from evenhand.audits.result_options import MergeOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, RunJob, RunPlan, find_metrics
from evenhand.config import settings_of
from evenhand.core.digests import Json, canonical_json
from evenhand.core.errors import EvenhandError, InputError, RunFolderError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Metric, Progress
from evenhand.store.prompt_rows import read_prompt_rows
from evenhand.store.run import Run, run_errors
from evenhand.store.run_folder import RunFolder, default_folder, run_stage

_KEY = re.compile(r"[A-Za-z0-9][\w.-]*")
_ALIKE = ("growth", "metrics")
"""What must be the same in every part, beside its identity."""


@dataclass(frozen=True, slots=True)
class MergeJob:
    """The parts of one audit, all there and alike."""

    runs: tuple[Run, ...]
    """In the order of their numbers."""
    identity: Mapping[str, Json]
    folder: Path
    fresh: bool

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        names = ", ".join(str(run.path) for run in self.runs)
        return RunPlan(
            title=f"merge {len(self.runs)} parts of {self.runs[0].manifest['name']}",
            lines=(f"parts   {names}", f"folder  {self.folder}"),
            folder=self.folder,
        )

    def run(self, progress: Progress = SILENT_PROGRESS) -> Run:
        """Join texts and scores, then compare and report as one run."""
        with (
            run_errors(*self.runs),
            RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder,
        ):
            self._begin(folder)
            with run_stage(folder, STAGE) as record, progress.step("merging", None):
                keys = self._copy_shards(folder)
                folder.join_shards("generations", STAGE, keys)
                record.update(self._sum_counts(STAGE))
            with run_stage(folder, "score") as record:
                folder.write("scores", self._scores(folder.run().table("generations")))
                record.update(self._sum_counts("score"))
            prompts = self._prompts(folder.run().table("generations"))
            folder.write("prompts", prompts)
            self._compare(folder, prompts, progress)
            return finish_run(folder)

    def _begin(self, folder: RunFolder) -> None:
        first = self.runs[0].manifest
        kept = ("name", "config", "execution", "suites", "growth", "metrics")
        folder.manifest.update({key: first[key] for key in kept})
        parts: list[Json] = [str(run.path) for run in self.runs]
        warnings = dict.fromkeys(
            warning for run in self.runs for warning in run.manifest["warnings"] if "texts" in warning
        )
        folder.manifest.update(
            command=f"evenhand merge {' '.join(str(part) for part in parts)}",
            parts=parts,
            warnings=[f"part of the run: {warning}" for warning in warnings],
            ended=None,
        )
        folder.save_manifest()

    def _copy_shards(self, folder: RunFolder) -> list[str]:
        """The keys of all shards in the order of the whole run; files are copied, so that it can grow."""
        keys: list[str] = []
        for suite in self.runs[0].manifest["suites"]:
            held = [(place, key, run) for run in self.runs for place, key in _list_shards(run, suite)]
            for _, key, run in sorted(held, key=lambda item: item[0]):
                source = run.path / "shards" / STAGE / f"{key}.parquet"
                target = folder.path / "shards" / STAGE / source.name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
                keys.append(key)
        return keys

    def _scores(self, generations: pl.DataFrame) -> pl.DataFrame:
        """The scores of all parts in the order of one run: by metric, then by text."""
        rank = generations.select(text_id="id").with_row_index("rank")
        order = {spec: number for number, spec in enumerate(self.runs[0].manifest["metrics"])}
        joined = pl.concat([run.table("scores") for run in self.runs]).join(
            rank, on="text_id", how="left", maintain_order="left"
        )
        numbered = joined.with_columns(place=pl.col("metric").replace_strict(order, return_dtype=pl.Int64))
        return numbered.sort("place", "rank", maintain_order=True).drop("place", "rank")

    def _prompts(self, generations: pl.DataFrame) -> pl.DataFrame:
        """The prompts of all parts in the order of their first text."""
        rank = generations.select(id="prompt_id").unique(maintain_order=True).with_row_index("rank")
        tables = pl.concat([run.table("prompts") for run in self.runs]).unique("id", maintain_order=True)
        return tables.join(rank, on="id", how="left").sort("rank").drop("rank")

    def _sum_counts(self, name: str) -> dict[str, Json]:
        records = [run.manifest["stages"][name] for run in self.runs]
        keys = [key for key in ("items", "failed", "new_tokens") if key in records[0]]
        return {key: sum(int(record[key] or 0) for record in records) for key in keys}

    def _compare(self, folder: RunFolder, prompts: pl.DataFrame, progress: Progress) -> None:
        settings = settings_of(folder.manifest["config"])
        given = settings.options["baseline"]
        baselines = {
            (suite, axis): given.get(axis, baseline)
            for suite, info in folder.manifest["suites"].items()
            for axis, baseline in info["baselines"].items()
        }
        infos = {spec: parse_metric_info(card) for spec, card in folder.manifest["metrics"].items()}
        explaining: dict[str, Metric] = {}
        for spec, info in infos.items():
            # As far as the metrics can still be loaded.
            with suppress(EvenhandError):
                explaining |= find_metrics([spec], settings) if info.word_scores else {}
        write_findings(
            folder,
            build_analysis(folder, settings, baselines),
            infos,
            read_prompt_rows(prompts),
            explaining=explaining,
            texts_stage=STAGE,
            progress=progress,
        )


@checks_options
def merge(
    *runs: Run | Path | str, progress: Progress = SILENT_PROGRESS, **options: Unpack[MergeOptions]
) -> Run:
    """The parts of an audit made with ``shard``, as the one run they are parts of."""
    return prepare(*runs, **options).run(progress)


@checks_options
def prepare(*runs: Run | Path | str, **options: Unpack[MergeOptions]) -> RunJob:
    """A merge with every part checked: all there, finished, and of one configuration."""
    with run_errors(*runs):
        return _build_job([run if isinstance(run, Run) else Run.open(run) for run in runs], options)


def _build_job(opened: Sequence[Run], options: MergeOptions) -> RunJob:
    for run in opened:
        check_has_comparisons(run)
        if "slice" not in run.manifest["identity"]:
            raise InputError(
                f"{run.path} is not a part of a run",
                expected="runs made with `evenhand audit --shard I/N`",
                fix="name the folders of the parts",
            )
    _check_complete(opened)
    identity = _without_slice(opened[0])
    for run in opened[1:]:
        _check_alike(opened[0], run)
    out = options["out"]
    name = str(opened[0].manifest["name"])
    return MergeJob(
        runs=tuple(sorted(opened, key=lambda run: int(run.manifest["identity"]["slice"][0]))),
        identity=identity,
        folder=Path(out) if out else default_folder("audit", name, identity),
        fresh=options["fresh"],
    )


def _check_complete(runs: Sequence[Run]) -> None:
    numbers = sorted(tuple(run.manifest["identity"]["slice"]) for run in runs)
    of = {of for _, of in numbers}
    last = max(of, default=0)
    if numbers != [(index, last) for index in range(1, len(numbers) + 1)] or last != len(numbers):
        raise InputError(
            f"the parts are {', '.join(f'{index}/{of}' for index, of in numbers) or 'none'}",
            expected=f"each of {_format_parts(last)} once",
            fix="name every part of one run",
        )


def _format_parts(last: int) -> str:
    """The parts of a run in words; a damaged manifest may say that there are a billion."""
    named = [f"{index}/{last}" for index in range(1, min(last, 20) + 1)]
    return ", ".join([*named, *([f".. {last}/{last}"] if last > len(named) else [])]) or "1/N to N/N"


def _check_alike(first: Run, other: Run) -> None:
    same = canonical_json(_without_slice(first)) == canonical_json(_without_slice(other))
    differing = [] if same else ["identity"]
    differing += [key for key in _ALIKE if _plain(first.manifest[key]) != _plain(other.manifest[key])]
    if differing:
        raise InputError(
            f"{other.path} is a part of another run than {first.path}: they differ in {', '.join(differing)}",
            expected="parts made by one command but for --shard",
            fix="make that part again",
        )


def _without_slice(run: Run) -> dict[str, Json]:
    return {key: value for key, value in run.manifest["identity"].items() if key != "slice"}


def _list_shards(run: Run, suite: str) -> list[tuple[int, str]]:
    """The places and keys of a part's shards; a hostile manifest could name files elsewhere."""
    held = [(int(place), str(key)) for place, key in run.manifest["slice"]["shards"][suite]]
    strange = next((key for _, key in held if not _KEY.fullmatch(key)), None)
    if strange is not None:
        raise RunFolderError(
            f"the manifest of {run.path} names the shard {strange[:80]!r}",
            expected="the names that evenhand gives: letters, digits, dots and dashes",
            fix="make that part again",
        )
    return held


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
