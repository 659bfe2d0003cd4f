"""``agreement``: how far people agree, who differs from the others and where, and one label a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from evenhand.annotate.agreement_tables import ConsensusRule, agreement_tables, build_rule, check_overlap
from evenhand.annotate.label_set import LabelSet, read_label_set
from evenhand.annotate.options import AgreementOptions, Consensus, RatingColumns, RatingSource
from evenhand.annotate.rating_files import RatingFileColumns
from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan
from evenhand.core.digests import Json
from evenhand.core.options import checks_options, split_names
from evenhand.core.protocols import Progress
from evenhand.report.render_run import render
from evenhand.store.run import Run
from evenhand.store.run_folder import RunFolder, default_folder, run_stage, utc_timestamp

COMMAND = "agreement"


@dataclass(frozen=True, slots=True)
class AgreementJob:
    """Ratings that are read and checked."""

    labels: LabelSet
    rule: ConsensusRule
    seed: int
    level: float
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        return RunPlan(
            f"agreement of {self.labels.name}",
            (
                *describe_questions(self.labels),
                f"label    {describe_rule(self.rule)}",
                f"folder   {self.folder}",
            ),
            self.folder,
        )

    def run(self, progress: Progress = SILENT_PROGRESS) -> Run:
        """Write the tables and the report."""
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            write_people_manifest(folder, self.command, self.labels)
            with run_stage(folder, COMMAND) as record, progress.step("comparing annotators", None):
                found = agreement_tables(self.labels, self.rule, seed=self.seed, level=self.level)
                for name, table in found.items():
                    folder.write(name, table)
                    record[name] = table.height
                record["items"] = found["items"].height
            return finish_people_run(folder)


@checks_options
def agreement(
    source: Path | str, *, progress: Progress = SILENT_PROGRESS, **options: Unpack[AgreementOptions]
) -> Run:
    """The finished run on how far people agree; arguments are those of ``evenhand annotate agreement``.

    ``source`` is a study folder, an export, or a table of ratings. Tables: ``agreement`` (Fleiss' kappa,
    Krippendorff's alpha, Spearman's rho), ``annotators``, ``annotator_pairs``, ``items``, ``dissents``,
    ``errors``; intervals resample texts.
    """
    return prepare(source, **options).run(progress)


@checks_options
def prepare(source: Path | str, **options: Unpack[AgreementOptions]) -> AgreementJob:
    """The ratings read and checked, so that ``plan`` can be shown before ``run``."""
    rule, collected = rule_of(options), read_source(source, options)
    check_overlap(collected)
    level, seed = options["level"], options["seed"]
    identity = people_identity(COMMAND, collected, rule) | {"seed": seed, "level": level}
    out = options["out"]
    return AgreementJob(
        labels=collected,
        rule=rule,
        seed=seed,
        level=level,
        identity=identity,
        folder=Path(out) if out else default_folder(COMMAND, collected.name, identity),
        command=options["command"] or f"evenhand annotate agreement {source}",
        fresh=options["fresh"],
    )


def read_source(source: Path | str, options: RatingSource, *, cluster: str | None = None) -> LabelSet:
    """The ratings of a study or file."""
    collected = read_label_set(source, columns_of(options, cluster), database=options["database"])
    return collected.select_questions(split_names(options["question"]))


def columns_of(options: RatingColumns, cluster: str | None = None) -> RatingFileColumns:
    """Which column of a file holds what."""
    return RatingFileColumns(
        item=options["item"],
        text=options["text"],
        annotator=options["annotator"],
        labels=split_names(options["label"]) or (),
        cluster=cluster,
        scale=split_names(options["scale"]) or (),
    )


def rule_of(options: Consensus) -> ConsensusRule:
    """The rule that makes one label of several."""
    return build_rule(options["consensus"], options["agreement"], options["least"])


def people_identity(command: str, collected: LabelSet, rule: ConsensusRule) -> dict[str, Json]:
    """What a run over people's labels depends on."""
    return {
        "command": command,
        "inputs": {"file": collected.source.name, "digest": collected.digest},
        "questions": [question.name for question in collected.questions],
        "scales": {question.name: dict(question.scale.places) for question in collected.questions},
        "consensus": {"method": rule.method, "agreement": rule.agreement, "least": rule.least},
    }


def write_people_manifest(folder: RunFolder, command: str, collected: LabelSet) -> None:
    """Write down what is about to be done."""
    folder.manifest.update(
        command=command, name=collected.name, execution={}, warnings=list(collected.notes), ended=None
    )


def finish_people_run(folder: RunFolder) -> Run:
    """The finished run with its reports."""
    folder.manifest["ended"] = utc_timestamp()
    folder.save_manifest()
    render(folder.run(), ("html", "json", "md"))
    return folder.run()


def describe_questions(collected: LabelSet) -> list[str]:
    """A line for every question: ratings, texts, people, and the scale."""
    lines = []
    for question in collected.questions:
        rows = collected.of(question.name)
        labels = ", ".join(question.scale.labels)
        lines.append(
            f"{question.name:<8} {rows.height:,} ratings of {rows['item_id'].n_unique():,} texts by "
            f"{rows['annotator'].n_unique():,} people: {labels}"
        )
    return [*lines, *(f"note     {note}" for note in collected.notes)]


def describe_rule(rule: ConsensusRule) -> str:
    """The rule in words."""
    least = f", from {rule.least} ratings on" if rule.least > 1 else ""
    if rule.method == "dawid-skene":
        return f"Dawid and Skene's, where its probability is above {rule.agreement:g}{least}"
    share = f" and at least {rule.agreement:.0%}" if rule.agreement > 0.5 else ""
    return f"what more than half{share} of the annotators say{least}"
