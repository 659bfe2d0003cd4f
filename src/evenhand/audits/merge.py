"""``merge``: the parts of an audit, made with ``--shard I/N``, as one run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Unpack

import polars as pl

from evenhand.audits.generator import STAGE
from evenhand.audits.loaded_run import check_has_comparisons, parse_metric_info
from evenhand.audits.options import MergeOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, RunJob, find_metrics, write_findings
from evenhand.config import settings_of
from evenhand.core.digests import Json, canonical_json
from evenhand.core.errors import EvenhandError, InputError, RunFolderError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Metric, Progress
from evenhand.store.prompt_rows import read_prompt_rows
from evenhand.store.run import Run, run_errors
from evenhand.store.run_folder import RunFolder, default_folder, run_stage

_KEY = re.compile(r"[A-Za-z0-9][\w.-]*")


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
        parts = [run if isinstance(run, Run) else Run.open(run) for run in runs]
        for run in parts:
            check_has_comparisons(run)
            if "slice" not in run.manifest["identity"]:
                raise InputError(
                    f"{run.path} is not a part of a run",
                    expected="runs made with `evenhand audit --shard I/N`",
                    fix="name the folders of the parts",
                )
        _check_complete(parts)
        first = _comparable(parts[0])
        for run in parts[1:]:
            other = _comparable(run)
            differing = [key for key in first if canonical_json(first[key]) != canonical_json(other[key])]
            if differing:
                raise InputError(
                    f"{run.path} is a part of another run than {parts[0].path}: they differ in "
                    f"{', '.join(differing)}",
                    expected="parts made by one command but for --shard",
                    fix="make that part again",
                )
        identity, name = _identity(parts[0]), str(parts[0].manifest["name"])
        folder = Path(options["out"] or default_folder("audit", name, identity))
        sources = tuple(sorted(parts, key=lambda run: int(run.manifest["identity"]["slice"][0])))
        return RunJob(
            title=f"merge {len(parts)} parts of {name}",
            lines=(f"parts   {', '.join(str(run.path) for run in sources)}", f"folder  {folder}"),
            identity=identity,
            folder=folder,
            fresh=options["fresh"],
            work=partial(_merge, sources),
            sources=sources,
        )


def _merge(runs: Sequence[Run], folder: RunFolder, progress: Progress) -> None:
    """Join texts and scores, then compare as one run."""
    first = runs[0].manifest
    warnings = dict.fromkeys(
        warning for run in runs for warning in run.manifest["warnings"] if "texts" in warning
    )
    parts: list[Json] = [str(run.path) for run in runs]
    folder.manifest.update(
        {key: first[key] for key in ("name", "config", "execution", "suites", "growth", "metrics")},
        command=f"evenhand merge {' '.join(str(part) for part in parts)}",
        parts=parts,
        warnings=[f"part of the run: {warning}" for warning in warnings],
        ended=None,
    )
    folder.save_manifest()
    with run_stage(folder, STAGE) as record, progress.step("merging", None):
        folder.join_shards("generations", STAGE, _copy_shards(runs, folder))
        record.update(_sum_counts(runs, STAGE))
    generations = folder.run().table("generations")
    with run_stage(folder, "score") as record:
        # In the order of one run: by metric, then by text.
        specs, ids = list(first["metrics"]), generations["id"].unique(maintain_order=True)
        scores = pl.concat([run.table("scores") for run in runs])
        by_metric, by_text = pl.col("metric").cast(pl.Enum(specs)), pl.col("text_id").cast(pl.Enum(ids))
        folder.write("scores", scores.sort(by_metric, by_text, maintain_order=True))
        record.update(_sum_counts(runs, "score"))
    by_prompt = pl.col("id").cast(pl.Enum(generations["prompt_id"].unique(maintain_order=True)))
    prompts = pl.concat([run.table("prompts") for run in runs]).unique("id").sort(by_prompt)
    folder.write("prompts", prompts)
    settings = settings_of(first["config"])
    infos = {spec: parse_metric_info(card) for spec, card in first["metrics"].items()}
    metrics: dict[str, Metric] = {}
    for spec, info in infos.items():
        # As far as the metrics can still be loaded.
        with suppress(EvenhandError):
            metrics |= find_metrics([spec], settings) if info.word_scores else {}
    listed = read_prompt_rows(prompts)
    write_findings(folder, settings, infos, listed, metrics=metrics, stage=STAGE, progress=progress)


def _copy_shards(runs: Sequence[Run], folder: RunFolder) -> list[str]:
    """The keys of all shards in the order of the whole run; files are copied, so that it can grow."""
    keys: list[str] = []
    for suite in runs[0].manifest["suites"]:
        listed = [(place, key, run) for run in runs for place, key in _list_shards(run, suite)]
        for _, key, run in sorted(listed, key=lambda item: item[0]):
            source = run.path / "shards" / STAGE / f"{key}.parquet"
            target = folder.path / "shards" / STAGE / source.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            keys.append(key)
    return keys


def _list_shards(run: Run, suite: str) -> list[tuple[int, str]]:
    """The places and keys of a part's shards; a hostile manifest could name files elsewhere."""
    shards = [(int(place), str(key)) for place, key in run.manifest["slice"]["shards"][suite]]
    for _, key in shards:
        if not _KEY.fullmatch(key):
            raise RunFolderError(
                f"the manifest of {run.path} names the shard {key[:80]!r}",
                expected="the names that evenhand gives: letters, digits, dots and dashes",
                fix="make that part again",
            )
    return shards


def _sum_counts(runs: Sequence[Run], stage: str) -> dict[str, Json]:
    records = [run.manifest["stages"][stage] for run in runs]
    keys = [key for key in ("items", "failed", "new_tokens") if key in records[0]]
    return {key: sum(int(record[key] or 0) for record in records) for key in keys}


def _check_complete(runs: Sequence[Run]) -> None:
    numbers = sorted(tuple(run.manifest["identity"]["slice"]) for run in runs)
    last = max((of for _, of in numbers), default=0)
    if numbers != [(index, last) for index in range(1, len(numbers) + 1)] or last != len(numbers):
        # A damaged manifest may say that there are a billion parts.
        named = [f"{index}/{last}" for index in range(1, min(last, 20) + 1)]
        every = ", ".join([*named, *([f".. {last}/{last}"] if last > len(named) else [])]) or "1/N to N/N"
        raise InputError(
            f"the parts are {', '.join(f'{index}/{of}' for index, of in numbers) or 'none'}",
            expected=f"each of {every} once",
            fix="name every part of one run",
        )


def _comparable(run: Run) -> dict[str, Json]:
    """What all parts share; of metrics what decides their scores, not the words that describe them."""
    names = ("version", "weights", "options")
    cards = run.manifest["metrics"].items()
    metrics: Json = {spec: [card.get(name) for name in names] for spec, card in cards}
    return {"identity": _identity(run), "growth": run.manifest["growth"], "metrics": metrics}


def _identity(run: Run) -> dict[str, Json]:
    """The identity of the whole run."""
    return {key: value for key, value in run.manifest["identity"].items() if key != "slice"}
