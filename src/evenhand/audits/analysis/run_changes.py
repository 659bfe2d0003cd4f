"""What changes from one run to another: gaps of gaps, the values of groups, and a ranking of the runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from operator import attrgetter

import numpy as np
import polars as pl

from evenhand.audits.analysis.group_comparison import (
    GAP_FIELDS,
    GapSide,
    GroupComparer,
    correct_rows,
    split_sides,
)
from evenhand.audits.analysis.quantities import Axis, Flags, Ints, Quantity, Row, name_columns, read_axes
from evenhand.audits.loaded_run import FILES, FinishedRun, read_command
from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError
from evenhand.core.records import ALL, Prompt
from evenhand.stats.contrasts import clustered_contrast
from evenhand.stats.corrections import Correction
from evenhand.stats.group_spread import rank_spreads
from evenhand.stats.results import Difference
from evenhand.store.schemas import CHANGES, COMPARISONS, LEADERBOARD, STANDINGS

_KEY: Callable[[Prompt], str] = attrgetter("id")
"""By what the prompts of suites are paired."""


@dataclass(frozen=True, slots=True)
class RunComparer:
    """The texts of several runs on the prompts that all have; the first run is the reference."""

    names: tuple[str, ...]
    run: Ints
    """For each text the number of its run."""
    axes: tuple[Axis, ...]
    quantities: tuple[Quantity, ...]
    paired: Mapping[str, bool]
    """For each suite whether its runs share their prompts."""
    comparer: GroupComparer
    """How the groups of each run are compared."""
    warnings: tuple[str, ...]

    def tables(self) -> dict[str, pl.DataFrame]:
        """``groups`` and ``comparisons`` of each run on what all share, then what is between them."""
        leaderboard, standings = self._rank_runs()
        comparers = [replace(self.comparer, model=name) for name in self.names]
        axes = [
            [axis.select(self.run[axis.rows] == run) for axis in self.axes] for run in range(len(self.names))
        ]
        parts = list(zip(comparers, axes, strict=True))
        # The gaps of each run are families of their own.
        gaps = [gap for comparer, own in parts for gap in comparer.comparisons(own, self.quantities)]
        return {
            "groups": pl.concat([comparer.groups(own, self.quantities) for comparer, own in parts]),
            "comparisons": pl.DataFrame(gaps, schema=dict(COMPARISONS)),
            "changes": pl.DataFrame(self.list_changes(), schema=dict(CHANGES)),
            "leaderboard": leaderboard,
            "standings": standings,
        }

    def list_changes(self) -> list[Row]:
        """Gaps of gaps and changes of values against the reference, corrected by run, suite and role.

        ``run_low`` and ``run_high`` are the interval of the run's gap, and no columns of the table.
        """
        others = product(range(1, len(self.names)), self.axes)
        rows = [row for number, axis in others for row in self._compare_axis(number, axis)]
        return correct_rows(rows, self.comparer.correction)

    def _compare_axis(self, number: int, axis: Axis) -> Iterator[Row]:
        parts = [axis.select(self.run[axis.rows] == run) for run in (number, 0)]
        gaps = [self.comparer.compare_outputs(part, self.quantities) for part in parts]
        for quantity, new, old in zip(self.quantities, *gaps, strict=True):
            for both in zip(new, old, strict=True):
                yield self._compare_gap(number, axis, quantity, *both)
            for code, group in enumerate(axis.groups):
                rows = axis.codes == code
                contrast = self._contrast(axis, quantity, [(number, rows, 1.0), (0, rows, -1.0)])
                values = [GapSide.of(quantity, part, part.codes == code).mean for part in parts]
                change = self._change(number, axis, quantity, "value", contrast)
                yield change | {"group": group, "run_value": values[0], "reference_value": values[1]}

    def _compare_gap(self, number: int, axis: Axis, quantity: Quantity, new: Row, old: Row) -> Row:
        group, other = split_sides(axis, new["group"], new["baseline"])
        scale = 1.0
        if new["baseline"] == ALL:
            scale = float(other.sum()) / max(float(group.sum() + other.sum()), 1.0)
        cells = [(number, group, scale), (number, other, -scale), (0, group, -scale), (0, other, scale)]
        contrast = self._contrast(axis, quantity, cells)
        signs = [-1.0 if (gap["estimate"] or 0) < 0 else 1.0 for gap in (new, old)]
        if signs[0] != signs[1]:
            signed = [(run, rows, weight * signs[0 if run else 1]) for run, rows, weight in cells]
            wider = self._contrast(axis, quantity, signed)
        elif signs[0] > 0:
            wider = contrast
        else:
            # The same gap of gaps from the other side.
            ends = (contrast.estimate, contrast.high, contrast.low)
            estimate, low, high = (None if end is None else -end for end in ends)
            wider = replace(contrast, estimate=estimate, low=low, high=high)
        known = {"group": new["group"], "baseline": new["baseline"], "reference_value": old["estimate"]}
        known |= {"run_value": new["estimate"], "run_low": new["low"], "run_high": new["high"]}
        known |= {"widens": wider.estimate, "widens_low": wider.low, "widens_high": wider.high}
        known |= {"n": new["n"] + new["n_baseline"], "n_reference": old["n"] + old["n_baseline"]}
        return self._change(number, axis, quantity, "gap", contrast) | known

    def _contrast(
        self, axis: Axis, quantity: Quantity, cells: Sequence[tuple[int, Flags, float]]
    ) -> Difference:
        """The weighted sum of cell means; a cell is some rows of an axis under one run."""
        values, run = quantity.values[axis.rows], self.run[axis.rows]
        known = ~np.isnan(values)
        chosen = [np.flatnonzero(known & (run == number) & rows) for number, rows, _ in cells]
        rows = np.concatenate(chosen)
        cell = np.repeat(np.arange(len(cells)), [part.size for part in chosen])
        weights, level = [weight for _, _, weight in cells], self.comparer.level
        test = partial(clustered_contrast, weights=weights, is_share=quantity.kind == "share", level=level)
        return test(values[rows], cell, axis.clusters[rows])

    def _change(self, number: int, axis: Axis, quantity: Quantity, effect: str, contrast: Difference) -> Row:
        run, reference = self.names[number], self.names[0]
        exploratory = axis.is_exploratory(quantity)
        role = f"{'exploratory ' if exploratory else ''}{effect}s"
        return {
            **name_columns(axis, quantity),
            "run": run,
            "reference": reference,
            "effect": effect,
            "n": contrast.n_a,
            **{name: getattr(contrast, name) for name in GAP_FIELDS},
            "n_reference": contrast.n_b,
            "paired": self.paired[axis.suite],
            "exploratory": exploratory,
            "family": f"{axis.suite} / {run} against {reference} / {role}",
        }

    def _rank_runs(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The runs ranked on every axis and output, and counted over all primary ones, best first."""
        names = self.names
        rows: list[Row] = []
        # How often each run's groups stand closer together than another run's; its ties; its unknown outputs.
        narrower = np.zeros((len(names), len(names)), dtype=np.int64)
        tied, null = np.zeros((2, len(names)), dtype=np.int64)
        for axis, quantity in product(self.axes, self.quantities):
            values = quantity.values[axis.rows]
            known = ~np.isnan(values)
            columns = (values, self.run[axis.rows], axis.codes, axis.clusters)
            known_rows = (column[known] for column in columns)
            ranking = rank_spreads(*known_rows, n_runs=len(names), level=self.comparer.level)
            exploratory = axis.is_exploratory(quantity)
            rows += [
                {
                    **name_columns(axis, quantity),
                    **asdict(spread),
                    "run": name,
                    "spread": spread.value,
                    "tied_with": [names[other] for other in spread.tied],
                    "groups": ranking.groups,
                    "exploratory": exploratory,
                }
                for name, spread in zip(names, ranking.spreads, strict=True)
            ]
            if exploratory:
                continue
            if not ranking.gaps:
                null += len(names) - 1
            for gap in ranking.gaps:
                if gap.p_adjusted is not None and gap.p_adjusted <= 1 - self.comparer.level + 1e-12:
                    winner, loser = (gap.b, gap.a) if gap.difference > 0 else (gap.a, gap.b)
                    narrower[winner, loser] += 1
                else:
                    tied[[gap.a, gap.b]] += 1
        # A run is behind those that beat it more often than it beats them.
        standings = {"run": list(names), "rank": 1 + (narrower < narrower.T).sum(axis=1)}
        standings |= {"narrower": narrower.sum(axis=1), "wider": narrower.sum(axis=0)}
        standings |= {"tied": tied, "null": null}
        ranked = pl.DataFrame(standings, schema=dict(STANDINGS)).sort("rank", maintain_order=True)
        return pl.DataFrame(rows, schema=dict(LEADERBOARD)), ranked


def pair_runs(
    loaded: Sequence[FinishedRun], *, level: float = 0.95, correction: Correction = "bh"
) -> RunComparer:
    """The runs joined; what they do not share is left out and listed in the warnings."""
    names, key_of = _list_names(loaded), _KEY
    manifest = loaded[0].run.manifest
    if all(read_command(run.run) == "score" for run in loaded):
        key_of = _row_key
        manifest = {**manifest, "suites": {FILES: next(iter(manifest["suites"].values()))}}
        loaded = [
            replace(run, prompts={key: replace(of, suite=FILES) for key, of in run.prompts.items()})
            for run in loaded
        ]
    suites = [{prompt.suite for prompt in run.prompts.values()} for run in loaded]
    common = sorted(set.intersection(*suites))
    if not common:
        listed = "; ".join(
            f"{name}: {', '.join(sorted(own))}" for name, own in zip(names, suites, strict=True)
        )
        raise InputError(
            f"the runs have no suite in common ({listed})",
            expected="runs of the same suite",
            fix="audit the models on one suite",
        )
    texts = pl.concat(
        [_list_texts(run, key_of).with_columns(run=pl.lit(number)) for number, run in enumerate(loaded)]
    )
    known = texts.filter(pl.col("suite").is_in(common)).with_columns(
        is_shared=pl.col("run").n_unique().over("key") == len(loaded)
    )
    known = known.with_columns(is_paired=pl.col("is_shared").any().over("suite"))
    # Prompts of a suite that is not paired are those of their run alone.
    kept = known.filter(pl.col("is_shared") | ~pl.col("is_paired")).with_columns(
        id=pl.when("is_paired").then("key").otherwise(pl.format("{}:{}", "run", "key"))
    )
    prompts: dict[str, Prompt] = {}
    for name, number, prompt_id, is_paired in (
        kept.unique("id", maintain_order=True).select("id", "run", "prompt_id", "is_paired").iter_rows()
    ):
        prompt = loaded[number].prompts[prompt_id]
        prompts[name] = prompt if is_paired else replace(prompt, cluster=f"{number}:{prompt.cluster}")
    paired_suites = set(kept.filter("is_paired")["suite"])
    notes = [
        f"{suite}: the runs share no prompt, so that they are compared as they are, unpaired"
        for suite in common
        if suite not in paired_suites
    ]
    rows = [kept.filter(pl.col("run") == number)["row"].to_numpy() for number in range(len(loaded))]
    for name, run, chosen in zip(names, loaded, rows, strict=True):
        if lost := len(run.prompt_ids) - chosen.size:
            notes.append(
                f"{name}: {lost:,} of {len(run.prompt_ids):,} texts have prompts that not all runs have"
            )
    metrics, doubts = _find_common_metrics(loaded, names)
    outputs = [{(item.metric, item.output): item for item in run.quantities} for run in loaded]
    parts = list(zip(outputs, rows, strict=True))
    baselines = manifest["identity"].get("compare", {}).get("baselines", {})
    return RunComparer(
        names=names,
        run=kept["run"].cast(pl.Int64).to_numpy(),
        axes=tuple(read_axes(kept["id"].to_list(), prompts, manifest["suites"], baselines)),
        quantities=tuple(
            replace(item, values=np.concatenate([of[key].values[at] for of, at in parts]), reasons=None)
            for key, item in outputs[0].items()
            if item.metric in metrics
        ),
        paired={suite: suite in paired_suites for suite in common},
        comparer=GroupComparer(names[0], level, correction),
        warnings=(*notes, *doubts),
    )


def _row_key(prompt: Prompt) -> str:
    """What a prompt of a file says, by which files are paired."""
    groups: Json = [[group.axis, group.name] for group in prompt.groups]
    # A row number pairs nothing: without a prompt column a text has no twin in another file.
    is_row = prompt.cluster.startswith("row ") and not prompt.text and "cue" not in prompt.meta
    own: Json = prompt.id if is_row else None
    return digest([prompt.text, prompt.meta.get("cue"), groups, prompt.cluster, prompt.template_id, own])


def _list_texts(run: FinishedRun, key_of: Callable[[Prompt], str]) -> pl.DataFrame:
    """For each text of a run its row, its prompt, by which it is paired, and its suite."""
    prompts = [run.prompts[prompt_id] for prompt_id in dict.fromkeys(run.prompt_ids)]
    rows = [(prompt.id, key_of(prompt), prompt.suite) for prompt in prompts]
    of_prompt = pl.DataFrame(rows, dict.fromkeys(("prompt_id", "key", "suite"), pl.String), orient="row")
    texts = pl.DataFrame({"prompt_id": run.prompt_ids}, {"prompt_id": pl.String}).with_row_index("row")
    return texts.join(of_prompt, on="prompt_id", how="left", maintain_order="left")


def _find_common_metrics(loaded: Sequence[FinishedRun], names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The metrics that every run has in the same version, and a note on the others."""
    common = [spec for spec in loaded[0].infos if all(spec in run.infos for run in loaded)]
    # Two classifiers are meant to differ; two runs of one metric must not.
    differ = all(run.is_probe for run in loaded)
    same = [
        spec for spec in common if differ or len({digest(run.infos[spec].identity()) for run in loaded}) == 1
    ]
    if not same:
        raise InputError(
            f"no metric is the same in all of {', '.join(names)}",
            expected="runs with at least one metric of the same version in common",
            fix="score them again with the same metrics",
        )
    doubts = [
        f"{spec} is left out: not all runs used the same version of it" for spec in common if spec not in same
    ]
    others = sorted({spec for run in loaded for spec in run.infos} - set(common))
    return same, [*doubts, *(f"{spec} is left out: not all runs have it" for spec in others)]


def _list_names(loaded: Sequence[FinishedRun]) -> tuple[str, ...]:
    """The runs by what they are of; a name that occurs twice is followed by its folder."""
    names = [str(run.run.manifest["name"]) for run in loaded]
    own = [
        f"{name} ({run.run.path.resolve().name})" if names.count(name) > 1 else name
        for name, run in zip(names, loaded, strict=True)
    ]
    doubled = sorted({name for name in own if own.count(name) > 1})
    if doubled:
        raise InputError(
            f"{doubled[0]!r} was given twice", expected="different runs", fix="name each run once"
        )
    return tuple(own)
