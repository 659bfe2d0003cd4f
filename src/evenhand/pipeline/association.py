"""A corpus and a classifier together: where both lean towards the same group (affective paper, section 5.2).

For an emotion and a pair of groups the corpus leans towards the group with the larger share of the emotion
in its co-occurrences (Table 4), the classifier towards the group with the higher intensities (ACS). Both are
told as second minus first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from evenhand.core.errors import InputError
from evenhand.core.seeds import derived_seed
from evenhand.stats.agreement import spearman
from evenhand.stats.bootstrap import cluster_bootstrap_mean
from evenhand.store.probe_tables import AGREEMENTS, ASSOCIATIONS
from evenhand.store.run import Run

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
class Associator:
    """How a corpus run and a probe run are set side by side."""

    level: float = 0.95
    seed: int = 0

    def tables(self, corpus: Run, probe: Run) -> dict[str, pl.DataFrame]:
        """``associations``, a row a cell, and ``agreements``, a row a corpus and set of pairs."""
        cells = list(_cells(corpus, probe))
        if not cells:
            raise InputError(
                "the two runs share no pair of groups with an emotion",
                accepted="a corpus run and a probe run with groups and emotions of the same names",
                todo="compare the `group` column of cooccurrence.parquet with that of measures.parquet",
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
        rng = derived_seed(self.seed, "association", *names.values())
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
            (row["axis"], plain(row["group"]), row["emotion"]): row for row in part.iter_rows(named=True)
        }
        for row in measures.iter_rows(named=True):
            sides = [
                found.get((row["axis"], plain(row[side]), row["emotion"])) for side in ("group_a", "group_b")
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


def plain(group: str) -> str:
    """A group's name as it is compared: lower-case, in the spelling of pairs.

    >>> plain("AA"), plain("African_American")
    ('african american', 'african american')
    """
    said = " ".join(group.lower().replace("_", " ").split())
    return ALIASES.get(said, said)
