"""What a run cannot tell, in sentences, from its manifest and tables."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from evenhand.report.findings import Findings, could_be_seen
from evenhand.report.gaps import ALPHA
from evenhand.report.provenance import asked_for, is_hosted
from evenhand.report.reading import mapping_at, number_at, text_at, texts_at
from evenhand.report.wording import name, visible
from evenhand.store.run import Run

FEW_CLUSTERS = 20
"""Below this many clusters a cluster-robust interval is itself unsure."""


def caveats(run: Run, found: Findings) -> list[str]:
    """What a reader must know before repeating a number, most general first."""
    return [
        *_always(found),
        *_of_sizes(run, found),
        *_of_manifest(run),
        *suite_notes(run),
        *(visible(warning) for warning in texts_at(run.manifest, "warnings")),
    ]


def _always(found: Findings) -> Iterator[str]:
    yield (
        "A gap that was not found is not a gap that is absent. This run speaks of these prompts, these "
        "settings and these metrics, and of nothing else a model may write."
    )
    if found.judged:
        yield f"Over all comparisons, {could_be_seen(found.judged)}."
    yield (
        "Every metric is an instrument with errors of its own, which may differ between groups; its card "
        "below says which are known. Read the texts before repeating a number."
    )
    if found.exploratory and found.primary:
        supported = sum(gap.standing == "supported" for gap in found.exploratory)
        yield (
            f"{len(found.exploratory):,} more comparisons are exploratory: outside the corrected family, "
            f"each family corrected for itself. {supported:,} of them have an adjusted p of at most {ALPHA}; "
            "they suggest what to test next and prove nothing."
        )


def _of_sizes(run: Run, found: Findings) -> Iterator[str]:
    rows = [gap.comparison for gap in found.judged]
    few = {(row.axis, row.group) for row in rows if 0 < row.n_clusters < FEW_CLUSTERS}
    if few:
        yield (
            f"{len(few):,} {'group rests' if len(few) == 1 else 'groups rest'} on fewer than {FEW_CLUSTERS} "
            "clusters, where a few odd prompts can move a number."
        )
    lost = run.table("exclusions").select(pl.col("count").sum()).item()
    if lost:
        yield (
            "What was left out is counted by reason. If texts of one group are left out more often, its "
            "numbers describe the texts that stayed."
        )


def _of_manifest(run: Run) -> Iterator[str]:
    model = mapping_at(run.manifest, "identity", "model")
    if is_hosted(model):
        served = mapping_at(run.manifest, "served_by")
        mark = text_at(served, "fingerprint") or text_at(served, "model")
        yield (
            "The model is hosted: its answers are not repeatable. They are what it gave on "
            f"{text_at(run.manifest, 'created')[:10] or 'the day of the run'}"
            f"{f', as {visible(mark)}' if mark else ''}."
        )
    limit = number_at(asked_for(run), "limit")
    if limit:
        yield f"The run was limited to {limit:,.0f} prompts; the suite holds more."
    stages = mapping_at(run.manifest, "stages")
    for stage in ("read", "generate", "score", "compare"):
        state = text_at(stages, stage, "state")
        if state not in ("", "done"):
            yield f"The stage {stage} is not finished ({name(state)}): the numbers cover what was there."


def suite_notes(run: Run) -> Iterator[str]:
    """What a reader must know of the suites before reading a gap, a sentence each."""
    suites = mapping_at(run.manifest, "suites")
    for suite in suites:
        for note in texts_at(suites, suite, "notes"):
            yield f"{name(suite)}: {visible(note)}"
