"""A corpus run compared with a probe run: what ``compare`` does with one of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Unpack

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

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CorpusAssociation:
    """How a corpus run and a probe run are compared."""

    level: float = 0.95
    seed: int = 0

    def build(self, corpus: Run, probe: Run) -> dict[str, pl.DataFrame]:
        """``associations``, a row per cell, and ``agreements``, a row per corpus and set of pairs."""
        view = probe.manifest["view"]
        measures = probe.table("measures").filter(
            pl.col("pairs") == view["pairs"], pl.col("score") == view["score"]
        )
        cells: list[Row] = []
        for name, part in corpus.table("cooccurrence").group_by("corpus", maintain_order=True):
            of_group = {
                (row["axis"], normalise_group(row["group"]), row["emotion"]): row
                for row in part.iter_rows(named=True)
            }
            for row in measures.iter_rows(named=True):
                axis, emotion = row["axis"], row["emotion"]
                first, second = (
                    of_group.get((axis, normalise_group(row[side]), emotion))
                    for side in ("group_a", "group_b")
                )
                if first is not None and second is not None:
                    cells.append(_cell(str(name[0]), row, first, second))
        if not cells:
            raise InputError(
                "the two runs share no pair of groups with an emotion",
                expected="a corpus run and a probe run with groups and emotions of the same names",
                fix="compare the `group` column of cooccurrence.parquet with that of measures.parquet",
            )
        associations = pl.DataFrame(cells, schema=dict(ASSOCIATIONS))
        parts = associations.group_by("corpus", "pair_corpus", "model", maintain_order=True)
        rows = [self._agreement(part) for _, part in parts]
        return {"associations": associations, "agreements": pl.DataFrame(rows, schema=dict(AGREEMENTS))}

    def _agreement(self, part: pl.DataFrame) -> Row:
        """How far both lean the same way; the emotions of one pair of groups belong together."""
        known = part.filter(pl.col("same_direction").is_not_null())
        names = {name: str(part[name][0]) for name in ("corpus", "pair_corpus", "model")}
        clusters = known.select(pl.concat_str("axis", "group_a", "group_b", separator="/")).to_series()
        ids = clusters.to_list()
        rng = derive_seed(self.seed, "association", *names.values())
        rho = spearman(
            known["corpus_difference"].to_numpy(), known["acs"].to_numpy(), ids, rng=rng, level=self.level
        )
        same = known["same_direction"].cast(pl.Float64).to_numpy()
        share = cluster_bootstrap_mean(same, ids, rng=rng, resamples=2_000, level=self.level)
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
            "level": self.level,
            "null_reason": rho.null_reason or share.null_reason,
        }


def _cell(corpus: str, row: Row, first: Row, second: Row) -> Row:
    a, b = first["percent"], second["percent"]
    gap, acs = None if a is None or b is None else b - a, row["acs"]
    adjusted, low, high = (row[name] for name in ("p_adjusted", "difference_low", "difference_high"))
    is_tested = None not in (adjusted, low, high)
    names = ("model", "axis", "group_a", "group_b", "emotion", "acs", "difference", "p_adjusted")
    return {
        "corpus": corpus,
        "pair_corpus": row["corpus"],
        **{name: row[name] for name in names},
        "percent_a": a,
        "percent_b": b,
        "corpus_difference": gap,
        "odds_ratio_a": first["odds_ratio"],
        "odds_ratio_b": second["odds_ratio"],
        "is_clear": is_tested and adjusted <= _CLEAR and not low <= 0 <= high,
        "same_direction": (gap > 0) == (acs > 0) if gap and acs else None,
        "null_reason": "no association in the corpus" if not gap else None if acs else "no ACS",
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
    folder = Path(options["out"]) if options["out"] else default_folder("compare", names, identity)
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
        for name, table in CorpusAssociation(level=level).build(corpus, probe).items():
            folder.write(name, table)
            record[name] = table.height
