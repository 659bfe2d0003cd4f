"""A corpus run and a probe run side by side: what ``compare`` does with one of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Unpack

import polars as pl

from evenhand.audits.result_options import CompareOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan
from evenhand.config import resolve_config
from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Progress
from evenhand.core.seeds import derive_seed
from evenhand.report.render_run import render
from evenhand.stats.agreement_coefficients import spearman
from evenhand.stats.bootstrap import cluster_bootstrap_mean
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, default_folder, run_stage, utc_timestamp
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

Row = dict[str, object]
_Corpus = Mapping[tuple[str, str, str], Mapping[str, float | None]]
"""Axis, group (lower-case) and emotion to the row of co-occurrence."""


@dataclass(frozen=True, slots=True)
class CorpusAssociation:
    """How a corpus run and a probe run are set side by side."""

    level: float = 0.95
    seed: int = 0

    def build(self, corpus: Run, probe: Run) -> dict[str, pl.DataFrame]:
        """``associations``, a row a cell, and ``agreements``, a row a corpus and set of pairs."""
        cells = list(_cells(corpus, probe))
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
        whole = part.filter(pl.col("same_direction").is_not_null())
        names = {name: str(part[name][0]) for name in ("corpus", "pair_corpus", "model")}
        clusters = whole.select(pl.concat_str("axis", "group_a", "group_b", separator="/")).to_series()
        ids = clusters.to_list()
        rng = derive_seed(self.seed, "association", *names.values())
        rho = spearman(
            whole["corpus_difference"].to_numpy(), whole["acs"].to_numpy(), ids, rng=rng, level=self.level
        )
        same = whole["same_direction"].cast(pl.Float64).to_numpy()
        share = cluster_bootstrap_mean(same, ids, rng=rng, resamples=2_000, level=self.level)
        return {
            **names,
            "rho": rho.value,
            "rho_low": rho.low,
            "rho_high": rho.high,
            "same": int(same.sum()),
            "n": whole.height,
            "n_clusters": len(set(ids)),
            "share": share.value,
            "share_low": share.low,
            "share_high": share.high,
            "level": self.level,
            "null_reason": rho.null_reason or share.null_reason,
        }


def _cells(corpus: Run, probe: Run) -> Iterator[Row]:
    view = probe.manifest["view"]
    measures = probe.table("measures").filter(
        pl.col("pairs") == view["pairs"], pl.col("score") == view["score"]
    )
    for name, part in corpus.table("cooccurrence").group_by("corpus", maintain_order=True):
        found: _Corpus = {
            (row["axis"], normalise_group(row["group"]), row["emotion"]): row
            for row in part.iter_rows(named=True)
        }
        for row in measures.iter_rows(named=True):
            sides = [
                found.get((row["axis"], normalise_group(row[side]), row["emotion"]))
                for side in ("group_a", "group_b")
            ]
            if sides[0] is not None and sides[1] is not None:
                yield _cell(str(name[0]), row, sides[0], sides[1])


def _cell(
    corpus: str,
    row: Mapping[str, object],
    first: Mapping[str, float | None],
    second: Mapping[str, float | None],
) -> Row:
    percents = first["percent"], second["percent"]
    gap = None if percents[0] is None or percents[1] is None else percents[1] - percents[0]
    acs = row["acs"] if isinstance(row["acs"], float) else None
    adjusted, low, high = (row[name] for name in ("p_adjusted", "difference_low", "difference_high"))
    tested = isinstance(adjusted, float) and isinstance(low, float) and isinstance(high, float)
    told = gap not in (None, 0) and acs not in (None, 0)
    return {
        "corpus": corpus,
        "pair_corpus": row["corpus"],
        "model": row["model"],
        "axis": row["axis"],
        "group_a": row["group_a"],
        "group_b": row["group_b"],
        "emotion": row["emotion"],
        "percent_a": percents[0],
        "percent_b": percents[1],
        "corpus_difference": gap,
        "odds_ratio_a": first["odds_ratio"],
        "odds_ratio_b": second["odds_ratio"],
        "acs": acs,
        "difference": row["difference"],
        "p_adjusted": adjusted,
        "is_clear": bool(tested and adjusted <= _CLEAR and not low <= 0 <= high),  # type: ignore[operator]
        "same_direction": (gap > 0) == (acs > 0) if told and gap is not None and acs is not None else None,
        "null_reason": None if told else "no association in the corpus" if not gap else "no ACS",
    }


def normalise_group(group: str) -> str:
    """A group's name as it is compared: lower-case, in the spelling of pairs.

    >>> plain("AA"), plain("African_American")
    ('african american', 'african american')
    """
    said = " ".join(group.lower().replace("_", " ").split())
    return ALIASES.get(said, said)


COMMAND = "associate"
"""What the manifest's identity calls it, so that the report knows its page."""


@dataclass(frozen=True, slots=True)
class AssociationJob:
    """A corpus run and a probe run that are ready to be set side by side."""

    corpus: Run
    probe: Run
    level: float
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        return RunPlan(
            title="compare a corpus and a classifier",
            lines=(
                f"corpus     {self.corpus.manifest['name']}",
                f"classifier {self.probe.manifest['name']}",
                f"folder     {self.folder}",
            ),
            folder=self.folder,
        )

    def run(self, progress: Progress = SILENT_PROGRESS) -> Run:
        """Join the tables, correlate, report."""
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            with run_stage(folder, COMMAND) as record, progress.step("comparing", None):
                folder.manifest.update(
                    command=self.command,
                    name=f"{self.corpus.manifest['name']} and {self.probe.manifest['name']}",
                    execution={},
                    runs=[
                        {
                            "name": run.manifest["name"],
                            "path": str(run.path),
                            "command": run.manifest["command"],
                        }
                        for run in (self.corpus, self.probe)
                    ],
                    view=self.probe.manifest["view"],
                    warnings=[],
                    ended=None,
                )
                for name, table in CorpusAssociation(level=self.level).build(self.corpus, self.probe).items():
                    folder.write(name, table)
                    record[name] = table.height
            folder.manifest["ended"] = utc_timestamp()
            folder.save_manifest()
            render(folder.run(), ("html", "json", "md"))
            return folder.run()


@checks_options
def prepare(*runs: Run, **options: Unpack[CompareOptions]) -> AssociationJob:
    """The comparison of one corpus run and one probe run, in whatever order."""
    by_kind = {str(run.manifest["identity"].get("command")): run for run in runs}
    if len(runs) != 2 or set(by_kind) != {"corpus", "probe"}:
        kinds = [str(run.manifest["identity"].get("command")) for run in runs]
        raise InputError(
            f"runs of {', '.join(kinds)}",
            expected="one corpus run and one probe run",
            fix="compare several corpora by scanning them in one run",
        )
    level, out = resolve_config(options).options["level"], options["out"]
    identity: dict[str, Json] = {
        "command": COMMAND,
        "corpus": digest(by_kind["corpus"].manifest["identity"]),
        "probe": digest([by_kind["probe"].manifest["identity"], by_kind["probe"].manifest["view"]]),
        "level": level,
    }
    names = "-".join(str(run.manifest["name"]) for run in by_kind.values())
    return AssociationJob(
        corpus=by_kind["corpus"],
        probe=by_kind["probe"],
        level=level,
        identity=identity,
        folder=Path(out) if out else default_folder("compare", names, identity),
        command=options["command"] or f"evenhand compare {' '.join(str(run.path) for run in runs)}",
        fresh=options["fresh"],
    )
