"""A corpus run compared with a probe run: what ``compare`` does with one of each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, Unpack

import polars as pl

from evenhand.audits.options import CompareOptions
from evenhand.audits.run_setup import RunJob
from evenhand.config import resolve_config
from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Progress
from evenhand.core.seeds import derive_seed
from evenhand.stats.agreement_coefficients import spearman
from evenhand.stats.bootstrap import cluster_bootstrap_mean
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, default_folder, run_stage
from evenhand.store.schemas import AGREEMENTS, ASSOCIATIONS

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


def associate(corpus: Run, probe: Run, *, level: float = 0.95) -> dict[str, pl.DataFrame]:
    """``associations``, a row per cell, and ``agreements``, a row per corpus and set of pairs."""
    view = probe.manifest["view"]
    measures = probe.table("measures").filter(pairs=view["pairs"], score=view["score"])
    cooccurrence = corpus.table("cooccurrence")
    corpora = cooccurrence["corpus"].unique(maintain_order=True).to_frame()
    cells = corpora.join(measures.rename({"corpus": "pair_corpus"}), how="cross", maintain_order="left_right")
    keys = ["corpus", "axis", "emotion", "key"]
    named = cooccurrence.with_columns(_normalised("group")).unique(keys, keep="last")
    for side in ("a", "b"):
        of_side = named.select(
            *keys,
            pl.col("percent").alias(f"percent_{side}"),
            pl.col("odds_ratio").alias(f"odds_ratio_{side}"),
        )
        cells = cells.with_columns(_normalised(f"group_{side}"))
        cells = cells.join(of_side, on=keys, maintain_order="left")
    if cells.is_empty():
        raise InputError(
            "the two runs share no pair of groups with an emotion",
            expected="a corpus run and a probe run with groups and emotions of the same names",
            fix="compare the `group` column of cooccurrence.parquet with that of measures.parquet",
        )
    gap, acs = pl.col("corpus_difference"), pl.col("acs")
    is_away = ~pl.lit(0.0).is_between("difference_low", "difference_high")
    associations = (
        cells.with_columns(corpus_difference=pl.col("percent_b") - pl.col("percent_a"))
        .with_columns(
            is_clear=((pl.col("p_adjusted") <= _CLEAR) & is_away).fill_null(False),
            same_direction=pl.when(gap != 0, acs != 0).then((gap > 0) == (acs > 0)),
            null_reason=pl.when((gap == 0).fill_null(True))
            .then(pl.lit("no association in the corpus"))
            .when((acs == 0).fill_null(True))
            .then(pl.lit("no ACS")),
        )
        .select(list(ASSOCIATIONS))
        .cast(dict(ASSOCIATIONS))
    )
    parts = associations.group_by("corpus", "pair_corpus", "model", maintain_order=True)
    rows = [_agreement(part, level) for _, part in parts]
    return {"associations": associations, "agreements": pl.DataFrame(rows, schema=dict(AGREEMENTS))}


def _normalised(column: str) -> pl.Expr:
    """The names of groups as they are compared."""
    return pl.col(column).map_elements(normalise_group, return_dtype=pl.String).alias("key")


def _agreement(part: pl.DataFrame, level: float) -> dict[str, object]:
    """How far both lean the same way; the emotions of one pair of groups belong together."""
    known = part.drop_nulls("same_direction")
    names = {name: str(part[name][0]) for name in ("corpus", "pair_corpus", "model")}
    ids = known.select(pl.concat_str("axis", "group_a", "group_b", separator="/")).to_series().to_list()
    rng = derive_seed(0, "association", *names.values())
    sides = (known[name].to_numpy() for name in ("corpus_difference", "acs"))
    rho = spearman(*sides, ids, rng=rng, level=level)
    same = known["same_direction"].cast(pl.Float64).to_numpy()
    share = cluster_bootstrap_mean(same, ids, rng=rng, resamples=2_000, level=level)
    return {
        **names,
        "rho": rho.value,
        "rho_low": rho.low,
        "rho_high": rho.high,
        "same": int(same.sum()),
        "n": known.height,
        "n_clusters": len(set(ids)),
        "share": share.value,
        "share_low": share.low,
        "share_high": share.high,
        "level": level,
        "null_reason": rho.null_reason or share.null_reason,
    }


def normalise_group(group: str) -> str:
    """A group's name as it is compared: lower-case, in the spelling of pairs.

    >>> normalise_group("AA"), normalise_group("African_American")
    ('african american', 'african american')
    """
    name = " ".join(group.lower().replace("_", " ").split())
    return ALIASES.get(name, name)


COMMAND = "associate"
"""What the manifest's identity calls it, so that the report knows its page."""


@checks_options
def prepare(*runs: Run, **options: Unpack[CompareOptions]) -> RunJob:
    """The comparison of one corpus run and one probe run, in whatever order."""
    kinds = [str(run.manifest["identity"].get("command")) for run in runs]
    if sorted(kinds) != ["corpus", "probe"]:
        raise InputError(
            f"runs of {', '.join(kinds)}",
            expected="one corpus run and one probe run",
            fix="compare several corpora by scanning them in one run",
        )
    corpus, probe = runs if kinds[0] == "corpus" else runs[::-1]
    level, view = resolve_config(options).options["level"], probe.manifest["view"]
    identity: dict[str, Json] = {
        "command": COMMAND,
        "corpus": digest(corpus.manifest["identity"]),
        "probe": digest([probe.manifest["identity"], view]),
        "level": level,
    }
    names = "-".join(str(run.manifest["name"]) for run in runs)
    folder = Path(options["out"] or default_folder("compare", names, identity))
    command = options["command"] or f"evenhand compare {' '.join(str(run.path) for run in runs)}"
    return RunJob(
        title="compare a corpus and a classifier",
        lines=(
            f"corpus     {corpus.manifest['name']}",
            f"classifier {probe.manifest['name']}",
            f"folder     {folder}",
        ),
        identity=identity,
        folder=folder,
        fresh=options["fresh"],
        work=partial(_associate, corpus, probe, level, command),
        formats=("html", "json", "md"),
    )


def _associate(
    corpus: Run, probe: Run, level: float, command: str, folder: RunFolder, progress: Progress
) -> None:
    """Join the tables and correlate."""
    with run_stage(folder, COMMAND) as record, progress.step("comparing", None):
        folder.manifest.update(
            command=command,
            name=f"{corpus.manifest['name']} and {probe.manifest['name']}",
            execution={},
            runs=[
                {"name": run.manifest["name"], "path": str(run.path), "command": run.manifest["command"]}
                for run in (corpus, probe)
            ],
            view=probe.manifest["view"],
            warnings=[],
            ended=None,
        )
        for name, table in associate(corpus, probe, level=level).items():
            folder.write(name, table)
            record[name] = table.height
