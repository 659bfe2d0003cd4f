"""``validate``: a metric against people, who are taken as right (BOLD, section 6.3, Table 8 and Figure 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Unpack

import polars as pl

from evenhand.annotate import validation
from evenhand.annotate.agreement import Rule
from evenhand.annotate.collected import Collected
from evenhand.annotate.matching import Match, matches, question_of
from evenhand.annotate.validation import Against
from evenhand.api.agreement import (
    begin_people,
    described,
    end_people,
    people_identity,
    read_source,
    rule_of,
    said,
)
from evenhand.api.card_evidence import evidence_of
from evenhand.api.parts import SILENT, Plan, find_metrics, split_names
from evenhand.api.people_options import ValidateOptions
from evenhand.api.settings import resolve
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import Prompt
from evenhand.pipeline.scoring import STAGE, Scorer
from evenhand.store.cache import Cache
from evenhand.store.evidence import keep_evidence
from evenhand.store.folder import RunFolder, default_folder, stage
from evenhand.store.run import Run
from evenhand.store.schemas import EXCLUSIONS, GENERATIONS

COMMAND = "validate"
_MASKS = ("XYZ", "Person")


@dataclass(frozen=True, slots=True)
class Validating:
    """A metric and people's labels, ready to be set against each other."""

    spec: str
    metric: Metric
    collected: Collected
    rule: Rule
    texts: pl.DataFrame
    """item_id, text, human, share, reason, cluster: one row a text."""
    found: tuple[Match, ...]
    seed: int
    level: float
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool
    onto_card: bool

    def plan(self) -> Plan:
        """What will be done, before it is done."""
        kept = self.texts["human"].drop_nulls()
        outputs = ", ".join(match.output.name for match in self.found)
        card = ("card     the result is written onto the metric's card",) if self.onto_card else ()
        return Plan(
            f"validate {self.spec}",
            (
                *described(self.collected),
                f"label    {said(self.rule)}: {kept.len():,} of {self.texts.height:,} texts have one",
                f"metric   {self.spec}: {outputs}",
                *card,
                f"folder   {self.folder}",
            ),
            self.folder,
        )

    def run(self, progress: Progress = SILENT) -> Run:
        """Score the texts, compare, report."""
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            begin_people(folder, self.command, self.collected)
            folder.manifest["metrics"] = {self.spec: _described(self.metric)}
            folder.manifest["warnings"] += self._unmasked()
            with stage(folder, STAGE) as record:
                scores, failed = self._scores(folder, progress)
                record.update(items=self.texts.height, failed=failed)
            with stage(folder, COMMAND) as record, progress.step("comparing with people", None):
                scale = self.collected.questions[0].scale
                against = Against(self.spec, scale, self.seed, self.level, validation.RESAMPLES)
                for name, table in against.tables(self.found, self.texts, scores).items():
                    folder.write(name, table)
                    record[name] = table.height
                folder.write("exclusions", self._exclusions(scores))
            run = end_people(folder)
        if self.onto_card:
            keep_evidence(self.spec, evidence_of(run, self.spec, self.metric.info))
        return run

    def _scores(self, folder: RunFolder, progress: Progress) -> tuple[pl.DataFrame, int]:
        # One empty prompt for all: people read the text, and so does the metric.
        prompt = Prompt.create(self.collected.name, "", groups=(), cluster="texts")
        rows = [
            {
                "id": item,
                "prompt_id": prompt.id,
                "model": "people",
                "sample": 0,
                "text": text,
                "finish": "replayed",
            }
            for item, text in self.texts.select("item_id", "text").iter_rows()
        ]
        generations = pl.DataFrame(rows, schema=dict(GENERATIONS))
        cache = Cache()
        try:
            tally = Scorer(self.spec, self.metric, folder, cache).run(
                generations, {prompt.id: prompt}, progress
            )
        finally:
            cache.close()
        folder.join_shards("scores", STAGE, tally.keys)
        return folder.run().table("scores"), tally.errors

    def _unmasked(self) -> list[str]:
        """A warning where the metric wants group mentions masked and texts show no mask."""
        if self.metric.info.masking == "none":
            return []
        bare = sum(not any(mask in text for mask in _MASKS) for text in self.texts["text"])
        said_ = f"{bare:,} of {self.texts.height:,} texts have no mask, and {self.spec} expects one"
        return [f"{said_}: people and metric may have seen the group"] if bare else []

    def _exclusions(self, scores: pl.DataFrame) -> pl.DataFrame:
        """What is left out, counted by reason."""
        missing = Counter(self.texts.filter(pl.col("human").is_null())["reason"].to_list())
        rows = [("people", "", str(reason), count) for reason, count in sorted(missing.items())]
        labels = self.found[0].labels if self.found[0].is_complete else {}
        unmatched = Counter(
            label for label in self.texts["human"].drop_nulls() if label in labels and labels[label] is None
        )
        rows += [
            ("people", self.spec, f"no label of the metric: {label}", n) for label, n in unmatched.items()
        ]
        first = scores.filter(pl.col("output") == self.found[0].output.name)
        nulls = Counter(first["null_reason"].drop_nulls().to_list())
        rows += [(STAGE, self.spec, str(reason), count) for reason, count in sorted(nulls.items())]
        told = [(*row, self.texts.height) for row in rows]
        return pl.DataFrame(told, schema=dict(EXCLUSIONS), orient="row")


@checks_options
def validate(
    metric: str | Metric,
    human: Path | str,
    *,
    progress: Progress = SILENT,
    **options: Unpack[ValidateOptions],
) -> Run:
    """The finished run of a metric against people's labels; arguments are those of ``evenhand validate``.

    ``human`` is a study folder, an export, or a table of texts and labels. Tables: ``validation``,
    ``confusion``, ``score_spreads``, ``best_cuts``, ``cut_curves``, ``judged``.
    """
    return prepare(metric, human, **options).run(progress)


@checks_options
def prepare(metric: str | Metric, human: Path | str, **options: Unpack[ValidateOptions]) -> Validating:
    """Metric and labels read, matched and checked, so that ``plan`` can be shown before ``run``."""
    settings = resolve(options)
    ((spec, made),) = find_metrics([metric], settings).items()
    rule, collected = rule_of(options), read_source(human, options, cluster=options["cluster"])
    asked = question_of(made.info.name, [question.name for question in collected.questions])
    collected = collected.asked([asked])
    found = tuple(
        matches(
            made.info,
            collected.questions[0].scale,
            renamed=options["renamed"],
            outputs=split_names(options["output"]) or (),
        )
    )
    texts = one_label_a_text(collected, rule)
    _check_any(texts, collected)
    level, seed, out = settings.options["level"], settings.options["seed"], options["out"]
    identity = people_identity(COMMAND, collected, rule) | {
        "metric": {"spec": spec, **made.info.identity()},
        "labels": {match.output.name: dict(match.labels) for match in found},
        "cluster": options["cluster"],
        "seed": seed,
        "level": level,
    }
    return Validating(
        spec=spec,
        metric=made,
        collected=collected,
        rule=rule,
        texts=texts,
        found=found,
        seed=seed,
        level=level,
        identity=identity,
        folder=Path(out) if out else default_folder(COMMAND, f"{spec}-{collected.name}", identity),
        command=options["command"] or f"evenhand validate {spec} --human {human}",
        fresh=options["fresh"],
        onto_card=options["onto_card"],
    )


def one_label_a_text(collected: Collected, rule: Rule) -> pl.DataFrame:
    """One row a text of the first question: item_id, text, human (or null with a reason), share, cluster."""
    question = collected.questions[0]
    ratings = collected.ratings(question)
    consensus, _ = rule.settle(ratings)
    texts = collected.texts()
    found = pl.DataFrame(
        {
            "item_id": ratings.items,
            "text": [texts[item] for item in ratings.items],
            "human": consensus.labels,
            "share": consensus.shares,
            "reason": consensus.reasons,
        },
        schema={
            "item_id": pl.String,
            "text": pl.String,
            "human": pl.String,
            "share": pl.Float64,
            "reason": pl.String,
        },
    )
    return _with_clusters(found, collected)


def _with_clusters(texts: pl.DataFrame, collected: Collected) -> pl.DataFrame:
    """The texts with what belongs together: of one prompt, of one value of ``--cluster``, or equal ones."""
    of = collected.rows.select("item_id", "cluster").unique("item_id", keep="first", maintain_order=True)
    if of["cluster"].null_count() == of.height and not texts["text"].is_duplicated().any():
        return texts.with_columns(pl.lit(None, pl.String).alias("cluster"))
    joined = texts.join(of, on="item_id", how="left", maintain_order="left")
    # A text without a cluster stands alone, but for those that say the same under another id.
    return joined.with_columns(pl.coalesce("cluster", pl.lit("text ") + pl.col("text")))


def _check_any(texts: pl.DataFrame, collected: Collected) -> None:
    if texts["human"].null_count() < texts.height:
        return
    reasons = Counter(texts["reason"].to_list())
    raise InputError(
        f"no text of {collected.source} has a label that people agree on: "
        + ", ".join(f"{reason} {count}" for reason, count in reasons.items()),
        accepted="one text or more with a majority",
        todo="lower --agreement or --least, or try --consensus dawid-skene",
    )


def _described(metric: Metric) -> dict[str, Json]:
    described_: dict[str, Json] = asdict(metric.info)
    return described_
