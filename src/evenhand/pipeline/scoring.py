"""Texts to scores: each metric's string is rendered here, scored in blocks, and committed as it is done."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import polars as pl

from evenhand.core.digests import Json, digest
from evenhand.core.errors import EvenhandError, FailureRateError, InputError
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import Prompt, Text, Value
from evenhand.store.cache import Cache
from evenhand.store.folder import RunFolder
from evenhand.store.schemas import SCORES
from evenhand.text.rendering import MaskOption, render

STAGE = "score"
OUTSIDE = "outside_groups"
"""Why a text has no score of a metric that is not meant for its group."""
BLOCK = 4096
"""Texts a shard: a metric's own batches are smaller, and a lost block costs seconds."""

Outputs = Mapping[str, Value]
Limits = Mapping[str, Mapping[str, Collection[str]]]
"""Suite to axis to the groups a metric is meant for; a suite that is not named has no limits."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Tally:
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
class Scorer:
    """One metric over the texts of a run folder."""

    spec: str
    metric: Metric
    folder: RunFolder
    cache: Cache
    mask: MaskOption = "paper"
    failure_rate: float = 0.2
    limits: Limits = field(default_factory=dict)

    @property
    def limited(self) -> bool:
        """Whether texts outside the limits are left out: the metric's option ``groups`` may say otherwise."""
        return self.metric.info.options.get("groups") != "all"

    def run(self, generations: pl.DataFrame, prompts: Mapping[str, Prompt], progress: Progress) -> Tally:
        """Score what is missing; the tally holds the keys of the finished shards."""
        tally = Tally([])
        with progress.step(f"scoring {self.spec}", generations.height) as advance:
            for block in generations.iter_slices(BLOCK):
                self._block(block, prompts, tally)
                advance(block.height)
        return tally

    def _block(self, block: pl.DataFrame, prompts: Mapping[str, Prompt], tally: Tally) -> None:
        ids = block["id"].to_list()
        texts: list[Text | None] = []
        failures: list[str | None] = []
        for prompt_id, text, failure in block.select("prompt_id", "text", "failure").iter_rows():
            left_out = self._is_outside(prompts[prompt_id], tally) and self.limited
            texts.append(self._render(prompts[prompt_id], None if left_out else text, tally))
            failures.append(failure or (OUTSIDE if left_out else None))
        key = self._block_key(ids, texts, failures)
        tally.keys.append(key)
        tally.items += len(ids)
        if self.folder.has_shard(STAGE, key):
            tally.reused += len(ids)
            return
        outputs = self._outputs(texts, failures, tally)
        if tally.errors > max(3, self.failure_rate * tally.items):
            raise FailureRateError(
                f"metric {self.spec!r} failed on {tally.errors:,} of {tally.items:,} texts",
                accepted=f"at most {self.failure_rate:.0%}",
                todo="run `evenhand.testing.check_metric` on it; the scores of other metrics are kept",
            )
        self.folder.write_shard(STAGE, key, self._table(ids, outputs))

    def _is_outside(self, prompt: Prompt, tally: Tally) -> bool:
        groups = self.limits.get(prompt.suite)
        found = groups is not None and not any(
            group.name in groups.get(group.axis, ()) for group in prompt.groups
        )
        tally.outside += found
        return found

    def _render(self, prompt: Prompt, text: str | None, tally: Tally) -> Text | None:
        if text is None:
            return None
        info = self.metric.info
        rendered = render(
            prompt.text,
            text,
            scope=info.scope,
            masking=info.masking,
            mentions=prompt.mentions,
            mask_option=self.mask,
        )
        tally.unmasked += info.masking != "none" and not rendered.masks
        return rendered

    def _outputs(
        self, texts: Sequence[Text | None], failures: Sequence[str | None], tally: Tally
    ) -> Iterator[Outputs]:
        scored = iter(self._scored([text for text in texts if text is not None], tally))
        for text, failure in zip(texts, failures, strict=True):
            yield self._nulls(failure or "no_text") if text is None else next(scored)

    def _scored(self, texts: Sequence[Text], tally: Tally) -> Sequence[Outputs]:
        if self.metric.info.cheap:
            return self._ask(texts, tally)
        identity = self.metric.info.identity()
        keys = [digest([identity, text.text]) for text in texts]
        found = self.cache.get_many("scores", keys)
        tally.reused += len(found)
        # Equal strings are scored once.
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        fresh = dict(zip(missing, self._ask(list(missing.values()), tally), strict=True))
        self.cache.put_many(
            "scores", {key: _to_json(value) for key, value in fresh.items() if _is_sound(value)}
        )
        return [fresh[key] if key in fresh else _from_json(found[key]) for key in keys]

    def _ask(self, texts: Sequence[Text], tally: Tally) -> Sequence[Outputs]:
        if not texts:
            return []
        try:
            answers = self.metric.score(texts)
        except EvenhandError:
            raise
        except Exception as error:  # a plug-in may raise anything: find the texts it fails on
            if len(texts) == 1:
                _log.warning("metric %s failed on a text: %r", self.spec, error)
                tally.errors += 1
                return [self._nulls(f"metric_error: {type(error).__name__}")]
            middle = len(texts) // 2
            return [*self._ask(texts[:middle], tally), *self._ask(texts[middle:], tally)]
        if len(answers) != len(texts):
            raise InputError(
                f"metric {self.spec!r} gave {len(answers)} scores for {len(texts)} texts",
                accepted="one mapping a text, in order",
                todo="run `evenhand.testing.check_metric` on it",
            )
        return answers

    def _nulls(self, reason: str) -> Outputs:
        return {output.name: Value(None, None, reason) for output in self.metric.info.outputs}

    def _block_key(
        self, ids: Sequence[str], texts: Sequence[Text | None], failures: Sequence[str | None]
    ) -> str:
        strings: list[Json] = [text.text if text else None for text in texts]
        return digest([self.spec, self.metric.info.identity(), list(ids), strings, list(failures)])

    def _table(self, ids: Sequence[str], outputs: Iterator[Outputs]) -> pl.DataFrame:
        names = [output.name for output in self.metric.info.outputs]
        missing = Value(None, None, "no_value")
        values = [_checked(row.get(name, missing)) for row in outputs for name in names]
        columns: dict[str, list[str] | list[str | None] | list[float | None]] = {
            "text_id": [text_id for text_id in ids for _ in names],
            "output": names * len(ids),
            "value": [value.value for value in values],
            "label": [value.label for value in values],
            "null_reason": [value.null_reason for value in values],
        }
        table = pl.DataFrame(columns, schema={name: SCORES[name] for name in columns})
        info = self.metric.info
        return table.with_columns(
            metric=pl.lit(self.spec, pl.String), metric_version=pl.lit(info.version, pl.String)
        ).select(list(SCORES))


def pace_key(metrics: Iterable[Metric]) -> str:
    """Under which the texts a second of metrics are remembered, for the estimate of the next run."""
    return digest(["texts/s", sorted(digest(metric.info.identity()) for metric in metrics)])


def _checked(value: Value) -> Value:
    """The value, with what is neither a number nor a label given a reason."""
    if value.value is not None and not math.isfinite(value.value):
        return Value(None, None, "not_finite")
    if value.value is None and value.label is None and value.null_reason is None:
        return Value(None, None, "no_value")
    return value


def _is_sound(outputs: Outputs) -> bool:
    """Failures are recorded, but are not hits."""
    return not any((value.null_reason or "").startswith("metric_error") for value in outputs.values())


def _to_json(outputs: Outputs) -> Json:
    return {name: list(_checked(value)) for name, value in outputs.items()}


def _from_json(value: Json) -> Outputs:
    rows = cast("Mapping[str, tuple[float | None, str | None, str | None]]", value)
    return {name: Value(*row) for name, row in rows.items()}
