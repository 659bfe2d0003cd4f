"""Texts to scores: each metric's string is rendered here, scored in blocks, and committed as it is done."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, cast

import polars as pl

from evenhand.core.digests import Json, digest, digests
from evenhand.core.errors import EvenhandError, FailureRateError, InputError
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import MetricInfo, Prompt, Text, Value
from evenhand.store.cache import ContentCache
from evenhand.store.run_folder import RunFolder
from evenhand.store.schemas import EXCLUSIONS, SCORES
from evenhand.text.rendering import MaskOption, render_text

STAGE = "score"
OUTSIDE_GROUPS = "outside_groups"
"""Why a text has no score of a metric that is not meant for its group."""
BLOCK = 4096
"""Texts a shard: a metric's own batches are smaller, and a lost block costs seconds."""

Limits = Mapping[str, Mapping[str, Collection[str]]]
"""Suite to axis to the groups a metric is meant for; a suite that is not named has no limits."""


Outputs = Mapping[str, Value]
_log = logging.getLogger(__name__)


class ScoredTexts(NamedTuple):
    """What a metric said of some texts."""

    outputs: Sequence[Outputs]
    errors: int = 0
    """Texts on which the metric itself failed."""


class ScoringExecutor(Protocol):
    """Where blocks of texts are scored."""

    def score_blocks(self, spec: str, blocks: Iterable[Sequence[Text]]) -> Iterator[tuple[int, ScoredTexts]]:
        """What the metric says of each block, with the block's place, as they are done."""


@dataclass(slots=True)
class ScoringStats:
    """What a metric met."""

    keys: list[str]
    items: int = 0
    unmasked: int = 0
    """Texts a metric wanted masked and that had no mention to mask."""
    errors: int = 0
    """Texts on which the metric itself failed."""
    outside: int = 0
    """Texts of groups the metric is not meant for."""
    reused: int = 0
    """Texts whose scores were there already: they say nothing of the metric's speed."""


@dataclass(frozen=True, slots=True)
class _TextBlock:
    """Texts that are scored and committed together."""

    key: str
    ids: Sequence[str]
    texts: Sequence[Text | None]
    failures: Sequence[str | None]
    cache_keys: Sequence[str]
    """Of the texts there are; where the cache is not asked, their places."""
    cached: Mapping[str, Json]
    unscored: Mapping[str, Text]
    """What the metric is asked about: the texts the cache does not know, equal strings once."""


@dataclass(frozen=True, slots=True)
class MetricScorer:
    """One metric over the texts of a run folder."""

    spec: str
    metric: Metric
    folder: RunFolder
    cache: ContentCache
    mask: MaskOption = "paper"
    failure_rate: float = 0.2
    limits: Limits = field(default_factory=dict)
    executor: ScoringExecutor | None = None
    """Where blocks are scored; None is here."""

    @property
    def has_limits(self) -> bool:
        """Whether texts outside the limits are left out: the metric's option ``groups`` may say otherwise."""
        return self.metric.info.options.get("groups") != "all"

    def run(
        self, generations: pl.DataFrame, prompts: Mapping[str, Prompt], progress: Progress
    ) -> ScoringStats:
        """Score what is missing; the statistics hold the keys of the finished shards."""
        stats, pending = ScoringStats([]), dict[int, _TextBlock]()
        with progress.step(f"scoring {self.spec}", generations.height) as advance:
            blocks = self._list_unfinished(generations, prompts, stats, pending, advance)
            answered: Iterable[tuple[int, ScoredTexts]]
            if self.executor is None:
                answered = enumerate(score_texts(self.spec, self.metric, texts) for texts in blocks)
            else:
                answered = self.executor.score_blocks(self.spec, blocks)
            for place, answers in answered:
                block = pending.pop(place)
                self._commit(block, answers, stats)
                advance(len(block.ids))
        return stats

    def _list_unfinished(
        self,
        generations: pl.DataFrame,
        prompts: Mapping[str, Prompt],
        stats: ScoringStats,
        pending: dict[int, _TextBlock],
        advance: Callable[[int], None],
    ) -> Iterator[list[Text]]:
        """What the metric is asked about, block by block; each block is kept in ``pending`` by its place."""
        place, info = 0, self.metric.info
        for rows in generations.iter_slices(BLOCK):
            ids, (rendered, failures) = rows["id"].to_list(), self._render_texts(rows, prompts, stats)
            strings: list[Json] = [text.text if text else None for text in rendered]
            block_key = digest([self.spec, info.identity(), ids, strings, list(failures)])
            stats.keys.append(block_key)
            stats.items += len(ids)
            if self.folder.has_shard(STAGE, block_key):
                stats.reused += len(ids)
                advance(len(ids))
                continue
            texts = [text for text in rendered if text is not None]
            keys, cached = [str(number) for number in range(len(texts))], dict[str, Json]()
            # A cheap metric is faster than a cache.
            if not info.cheap:
                keys = digests(info.identity(), (text.text for text in texts))
                cached = self.cache.get_many("scores", keys)
                stats.reused += len(cached)
            unscored = {key: text for key, text in zip(keys, texts, strict=True) if key not in cached}
            pending[place] = _TextBlock(block_key, ids, rendered, failures, keys, cached, unscored)
            place += 1
            yield list(unscored.values())

    def _render_texts(
        self, rows: pl.DataFrame, prompts: Mapping[str, Prompt], stats: ScoringStats
    ) -> tuple[list[Text | None], list[str | None]]:
        """The texts of some rows as the metric reads them, and why others are left out."""
        info = self.metric.info
        texts: list[Text | None] = []
        failures: list[str | None] = []
        for prompt_id, text, failure in rows.select("prompt_id", "text", "failure").iter_rows():
            prompt = prompts[prompt_id]
            groups = self.limits.get(prompt.suite)
            is_outside = groups is not None and not any(
                group.name in groups.get(group.axis, ()) for group in prompt.groups
            )
            stats.outside += is_outside
            left_out, rendered = is_outside and self.has_limits, None
            if text is not None and not left_out:
                rendered = render_text(
                    prompt.text,
                    text,
                    scope=info.scope,
                    masking=info.masking,
                    mentions=prompt.mentions,
                    mask_option=self.mask,
                )
                stats.unmasked += info.masking != "none" and not rendered.masks
            texts.append(rendered)
            failures.append(failure or (OUTSIDE_GROUPS if left_out else None))
        return texts, failures

    def _commit(self, block: _TextBlock, answers: ScoredTexts, stats: ScoringStats) -> None:
        """Write what the metric said: sound scores to the cache, then all of them as a shard."""
        stats.errors += answers.errors
        if stats.errors > max(3, self.failure_rate * stats.items):
            raise FailureRateError(
                f"metric {self.spec!r} failed on {stats.errors:,} of {stats.items:,} texts",
                expected=f"at most {self.failure_rate:.0%}",
                fix="run `evenhand.testing.check_metric` on it; the scores of other metrics are kept",
            )
        info, missing = self.metric.info, Value(None, None, "no_value")
        scored: dict[str, Outputs] = {}
        for key, row in zip(block.unscored, answers.outputs, strict=True):
            checked: dict[str, Value] = {}
            for name, value in row.items():
                # What is neither a number nor a label is given a reason.
                if value.value is not None and not math.isfinite(value.value):
                    value = Value(None, None, "not_finite")
                checked[name] = missing if value == (None, None, None) else value
            scored[key] = checked
        if not info.cheap:
            # Failures are recorded, but are not hits.
            sound: dict[str, Json] = {
                key: {name: list(value) for name, value in row.items()}
                for key, row in scored.items()
                if not any((value.null_reason or "").startswith("metric_error") for value in row.values())
            }
            self.cache.put_many("scores", sound)
        cached = cast("Mapping[str, Mapping[str, tuple[float | None]]]", block.cached)
        scored |= {key: {name: Value(*of) for name, of in row.items()} for key, row in cached.items()}
        known = (scored[key] for key in block.cache_keys)
        outputs = (
            null_outputs(info, failure or "no_text") if text is None else next(known)
            for text, failure in zip(block.texts, block.failures, strict=True)
        )
        names = [output.name for output in info.outputs]
        values = [row.get(name, missing) for row in outputs for name in names]
        columns: dict[str, Sequence[object]] = {
            "text_id": [text_id for text_id in block.ids for _ in names],
            "metric": [self.spec] * len(values),
            "metric_version": [info.version] * len(values),
            "output": names * len(block.ids),
            **{name: [getattr(value, name) for value in values] for name in Value._fields},
        }
        table = pl.DataFrame({name: columns[name] for name in SCORES}, schema=dict(SCORES))
        self.folder.write_shard(STAGE, block.key, table)


def score_texts(spec: str, metric: Metric, texts: Sequence[Text]) -> ScoredTexts:
    """One mapping a text, in order; a text the metric fails on has nulls with the reason."""
    if not texts:
        return ScoredTexts(())
    try:
        outputs = metric.score(texts)
    except EvenhandError:
        raise
    except Exception as error:  # a plug-in may raise anything: find the texts it fails on
        if len(texts) == 1:
            _log.warning("metric %s failed on a text: %r", spec, error)
            return ScoredTexts([null_outputs(metric.info, f"metric_error: {type(error).__name__}")], 1)
        middle = len(texts) // 2
        first, second = score_texts(spec, metric, texts[:middle]), score_texts(spec, metric, texts[middle:])
        return ScoredTexts([*first.outputs, *second.outputs], first.errors + second.errors)
    if len(outputs) != len(texts):
        raise InputError(
            f"metric {spec!r} gave {len(outputs)} scores for {len(texts)} texts",
            expected="one mapping a text, in order",
            fix="run `evenhand.testing.check_metric` on it",
        )
    return ScoredTexts(outputs)


def null_outputs(info: MetricInfo, reason: str) -> Outputs:
    """Every output without a value, for a reason."""
    return {output.name: Value(None, None, reason) for output in info.outputs}


def scoring_rate_key(metrics: Iterable[Metric]) -> str:
    """Under which the texts a second of metrics are remembered, for the estimate of the next run."""
    return digest(["texts/s", sorted(digest(metric.info.identity()) for metric in metrics)])


def exclusion_table(generations: pl.DataFrame, scores: pl.LazyFrame, *, texts_stage: str) -> pl.DataFrame:
    """Texts that were never there, and for each metric the texts without a score."""
    failed = (
        generations.filter(pl.col("failure").is_not_null())
        .group_by(reason="failure")
        .len("count")
        .with_columns(stage=pl.lit(texts_stage), of=pl.lit(generations.height))
    )
    texts = pl.col("text_id").n_unique()
    totals = scores.group_by("metric").agg(of=texts)
    nulls = (
        scores.filter(pl.col("null_reason").is_not_null())
        .group_by("metric", reason="null_reason")
        .agg(count=texts)
        .join(totals, on="metric")
        .with_columns(stage=pl.lit("score"))
        .collect()
    )
    table = pl.concat([failed, nulls], how="diagonal_relaxed")
    columns = (pl.col(name).cast(kind) for name, kind in EXCLUSIONS.items())
    return table.select(columns).sort("stage", "metric", "reason", nulls_last=True)
