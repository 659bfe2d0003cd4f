"""``compare``: runs side by side, paired by prompt; or a corpus run and a probe run, joined by group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Unpack

import polars as pl

from evenhand.audits.analysis.run_changes import pair_runs
from evenhand.audits.loaded_run import (
    COMMANDS,
    PROBE,
    check_finished,
    comparable_name,
    load_run,
    read_command,
)
from evenhand.audits.options import CompareOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, RunJob
from evenhand.config import resolve_config
from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Progress
from evenhand.core.seeds import derive_seed
from evenhand.stats.agreement_coefficients import spearman
from evenhand.stats.bootstrap import cluster_bootstrap_mean
from evenhand.stats.corrections import Correction
from evenhand.store.run import Run, run_errors
from evenhand.store.run_folder import RunFolder, default_folder, run_stage
from evenhand.store.schemas import AGREEMENTS, ASSOCIATIONS

STAGE, ASSOCIATE = "compare", "associate"
"""What the manifest's identity calls each kind, so that the report knows its page."""
ALIASES: Final[Mapping[str, str]] = {
    "nb": "non-binary",
    "nonbinary": "non-binary",
    "ea": "european american",
    "white": "european american",
    "aa": "african american",
    "black": "african american",
    "ch": "christian",
    "mu": "muslim",
    "jw": "jewish",
    "jew": "jewish",
}
"""Short names of published lists, lower-case, to those of pairs."""
_CLEAR: Final = 0.05


@checks_options
def compare(
    *runs: Run | Path | str, progress: Progress = SILENT_PROGRESS, **options: Unpack[CompareOptions]
) -> Run:
    """The finished comparison of two or more runs; the first one is the reference.

    Runs of ``audit`` and ``score`` are paired by prompt, runs of ``probe`` by sentence: gaps of gaps, changes
    of values, and a leaderboard on which runs without a significant difference are tied. A run of ``corpus``
    and one of ``probe`` show where the corpus and the classifier lean to the same group.
    """
    return prepare(*runs, **options).run(progress)


@checks_options
def prepare(*runs: Run | Path | str, **options: Unpack[CompareOptions]) -> RunJob:
    """A comparison with everything checked, so that ``plan`` can be shown before ``run``."""
    opened = tuple(run if isinstance(run, Run) else Run.open(run) for run in runs)
    with run_errors(*runs):
        if len(opened) < 2:
            raise InputError(
                f"{len(opened)} run was given", expected="two runs or more", fix="name the runs to compare"
            )
        commands = [read_command(run) for run in opened]
        kinds = frozenset("texts" if command in COMMANDS else command for command in commands)
        if kinds not in _COMPARABLE:
            raise InputError(
                f"runs of {' and '.join(sorted(kinds))} cannot be compared with each other",
                expected="; ".join(" and ".join(sorted(known)) for known in _COMPARABLE),
                fix="name runs of one kind",
            )
        if kinds == {"corpus", PROBE} and len(opened) > 2:
            raise InputError(
                f"runs of {', '.join(commands)}",
                expected="one corpus run and one probe run",
                fix="compare several corpora by scanning them in one run",
            )
        settings = resolve_config(options).options
        level, correction = settings["level"], settings["correction"]
        identity: dict[str, Json]
        formats: tuple[str, ...] = ("html", "json")
        work: Callable[[], _Comparison]
        if kinds == {"corpus", PROBE}:
            corpus, probe = sorted(opened, key=read_command)
            title, formats = "compare a corpus and a classifier", (*formats, "md")
            lines = {"corpus": str(corpus.manifest["name"]), "classifier": str(probe.manifest["name"])}
            identity = {
                "command": ASSOCIATE,
                "corpus": digest(corpus.manifest["identity"]),
                "probe": digest([probe.manifest["identity"], probe.manifest["view"]]),
                "level": level,
            }
            work = partial(_compare_corpus, corpus, probe, level)
        else:
            for run in opened:
                check_finished(run)
            title = f"compare {len(opened)} runs"
            first, *others = (f"{run.manifest['name']} ({run.path})" for run in opened)
            lines = {"reference": first, "against": ", ".join(others)}
            identity = {
                "command": STAGE,
                "runs": [_identity(run) for run in opened],
                "compare": {"level": level, "correction": correction},
            }
            work = partial(_compare_texts, opened, level, correction)
    names = "-".join(str(run.manifest["name"]) for run in opened)
    folder = Path(options["out"] or default_folder("compare", names, identity))
    command = options["command"] or f"evenhand compare {' '.join(str(run.path) for run in opened)}"
    width = max(map(len, lines)) + 1
    return RunJob(
        title=title,
        lines=tuple(f"{label:<{width}}{text}" for label, text in {**lines, "folder": folder}.items()),
        identity=identity,
        folder=folder,
        fresh=options["fresh"],
        work=partial(_write, str(identity["command"]), command, work),
        sources=opened,
        formats=formats,
    )


_COMPARABLE = (frozenset({"texts"}), frozenset({PROBE}), frozenset({"corpus", PROBE}))
"""What the runs of a comparison are made of: texts, or the command that made them."""
_Comparison = tuple[dict[str, Any], dict[str, pl.DataFrame]]
"""What a comparison adds to the manifest, and its tables."""


def _write(
    stage: str, command: str, work: Callable[[], _Comparison], folder: RunFolder, progress: Progress
) -> None:
    """Compare, and fill the folder."""
    with run_stage(folder, stage) as record, progress.step("comparing", None):
        manifest, tables = work()
        folder.manifest.update(command=command, execution={}, **manifest, ended=None)
        for name, table in tables.items():
            folder.write(name, table)
        counted = {"comparisons": "changes"} if stage == STAGE else dict(zip(tables, tables, strict=True))
        record.update({key: tables[name].height for key, name in counted.items()})


def _describe_runs(runs: Sequence[Run], names: Sequence[str]) -> list[Json]:
    """The runs that were read, for the manifest, with what they are called."""
    return [
        {"name": name, "path": str(run.path), "command": run.manifest["command"]}
        for name, run in zip(names, runs, strict=True)
    ]


def _compare_texts(runs: tuple[Run, ...], level: float, correction: Correction) -> _Comparison:
    """Pair the runs; the first one is the reference."""
    joined = pair_runs([load_run(run) for run in runs], level=level, correction=correction)
    metrics, suites = runs[0].manifest["metrics"], runs[0].manifest["suites"]
    named = {comparable_name(runs[0], spec): card for spec, card in metrics.items()}
    used = {quantity.metric for quantity in joined.quantities}
    manifest = {
        "runs": _describe_runs(runs, joined.names),
        "name": " vs ".join(joined.names),
        "metrics": {name: card for name, card in named.items() if name in used},
        "suites": {suite: suites.get(suite) or next(iter(suites.values())) for suite in joined.paired},
        "paired": dict(joined.paired),
        "warnings": list(joined.warnings),
    }
    return manifest, joined.tables()


def _compare_corpus(corpus: Run, probe: Run, level: float) -> _Comparison:
    """Join the tables and correlate."""
    names = [str(run.manifest["name"]) for run in (corpus, probe)]
    runs, view = _describe_runs((corpus, probe), names), probe.manifest["view"]
    manifest = {"runs": runs, "name": " and ".join(names), "view": view, "warnings": []}
    return manifest, associate(corpus, probe, level=level)


def _identity(run: Run) -> Json:
    """Which run it is: its identity, how far it has grown, and what was measured."""
    manifest = run.manifest
    metrics: dict[str, Json] = {
        spec: [card["version"], card["weights"], card["options"]]
        for spec, card in manifest["metrics"].items()
    }
    measured = digest([manifest["identity"], manifest["growth"], metrics])
    return {"name": manifest["name"], "digest": measured}


def associate(corpus: Run, probe: Run, *, level: float = 0.95) -> dict[str, pl.DataFrame]:
    """``associations``, a row per cell, and ``agreements``, a row per corpus and set of pairs."""
    view = probe.manifest["view"]
    measures = probe.table("measures").filter(pairs=view["pairs"], score=view["score"])
    cooccurrence = corpus.table("cooccurrence")
    corpora = cooccurrence["corpus"].unique(maintain_order=True).to_frame()
    cells = corpora.join(measures.rename({"corpus": "pair_corpus"}), how="cross", maintain_order="left_right")
    keys = ["corpus", "axis", "emotion", "key"]
    to_key = partial(pl.Expr.map_elements, function=normalise_group, return_dtype=pl.String)
    named = cooccurrence.with_columns(key=to_key(pl.col("group"))).unique(keys, keep="last")
    for side in ("_a", "_b"):
        of_side = named.select(*keys, pl.col("percent", "odds_ratio").name.suffix(side))
        cells = cells.with_columns(key=to_key(pl.col(f"group{side}")))
        cells = cells.join(of_side, on=keys, maintain_order="left")
    if cells.is_empty():
        raise InputError(
            "the two runs share no pair of groups with an emotion",
            expected="a corpus run and a probe run with groups and emotions of the same names",
            fix="compare the `group` column of cooccurrence.parquet with that of measures.parquet",
        )
    gap, acs = pl.col("corpus_difference"), pl.col("acs")
    is_tested = pl.col("p_adjusted", "difference_low", "difference_high").is_not_null()
    is_away = ~pl.lit(0.0).is_between("difference_low", "difference_high")
    associations = (
        cells.with_columns(corpus_difference=pl.col("percent_b") - pl.col("percent_a"))
        .with_columns(
            is_clear=pl.all_horizontal(is_tested) & (pl.col("p_adjusted") <= _CLEAR) & is_away,
            same_direction=pl.when(gap != 0, acs != 0).then((gap > 0) == (acs > 0)),
            null_reason=pl.when((gap == 0).fill_null(True))
            .then(pl.lit("no association in the corpus"))
            .when((acs == 0).fill_null(True))
            .then(pl.lit("no ACS")),
        )
        .select(list(ASSOCIATIONS))
        .cast(pl.Schema(ASSOCIATIONS))
    )
    parts = associations.group_by("corpus", "pair_corpus", "model", maintain_order=True)
    rows = [_agreement(part, level) for _, part in parts]
    return {"associations": associations, "agreements": pl.DataFrame(rows, schema=dict(AGREEMENTS))}


def _agreement(part: pl.DataFrame, level: float) -> dict[str, object]:
    """How far both lean the same way; the emotions of one pair of groups belong together."""
    known = part.drop_nulls("same_direction")
    names = {name: str(part[name][0]) for name in ("corpus", "pair_corpus", "model")}
    ids = known.select(pl.concat_str("axis", "group_a", "group_b", separator="/")).to_series().to_list()
    rng = derive_seed(0, "association", *names.values())
    corpus, classifier = (known[name].to_numpy() for name in ("corpus_difference", "acs"))
    rho = spearman(corpus, classifier, ids, rng=rng, level=level)
    same = known["same_direction"].cast(pl.Float64).to_numpy()
    share = cluster_bootstrap_mean(same, ids, rng=rng, resamples=2_000, level=level)
    direction = {"rho": rho.value, "rho_low": rho.low, "rho_high": rho.high}
    agreeing = {"share": share.value, "share_low": share.low, "share_high": share.high, "level": level}
    counts = {"same": int(same.sum()), "n": known.height, "n_clusters": len(set(ids))}
    reason = {"null_reason": rho.null_reason or share.null_reason}
    return {**names, **direction, **agreeing, **counts, **reason}


def normalise_group(group: str) -> str:
    """A group's name as it is compared: lower-case, in the spelling of pairs.

    >>> normalise_group("AA"), normalise_group("African_American")
    ('african american', 'african american')
    """
    name = " ".join(group.lower().replace("_", " ").split())
    return ALIASES.get(name, name)
