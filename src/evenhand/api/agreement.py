"""``agreement``: how far people agree, who differs from the others and where, and one label a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack

from evenhand.annotate.agreement import Rule, check_several, checked_rule, tables
from evenhand.annotate.collected import Collected, collect
from evenhand.annotate.rating_tables import Columns
from evenhand.api.choices import checked_level
from evenhand.api.parts import SILENT, Plan, split_names
from evenhand.api.render import render
from evenhand.core.digests import Json
from evenhand.core.keywords import checks_keywords
from evenhand.core.protocols import Progress
from evenhand.store.folder import RunFolder, default_folder, now, stage
from evenhand.store.run import Run

COMMAND = "agreement"


class RatingOptions(TypedDict, total=False):
    """How ratings are read from a study or a file; None is the default."""

    question: str | Sequence[str] | None
    item: str | None
    text: str | None
    annotator: str | None
    label: str | Sequence[str] | None
    scale: str | Sequence[str] | None
    database: str | None


class SourceOptions(RatingOptions, total=False):
    """How ratings are read and made one label; None is the default."""

    cluster: str | None
    consensus: str
    agreement: float
    least: int


class AgreementOptions(SourceOptions, total=False):
    """The options of ``agreement``."""

    seed: int
    level: float
    out: Path | str | None
    fresh: bool
    command: str


@dataclass(frozen=True, slots=True)
class Agreeing:
    """Ratings that are read and checked."""

    collected: Collected
    rule: Rule
    seed: int
    level: float
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool

    def plan(self) -> Plan:
        """What will be done, before it is done."""
        return Plan(
            f"agreement of {self.collected.name}",
            (*described(self.collected), f"label    {said(self.rule)}", f"folder   {self.folder}"),
            self.folder,
        )

    def run(self, progress: Progress = SILENT) -> Run:
        """Write the tables and the report."""
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            begin_people(folder, self.command, self.collected)
            with stage(folder, COMMAND) as record, progress.step("comparing annotators", None):
                found = tables(self.collected, self.rule, seed=self.seed, level=self.level)
                for name, table in found.items():
                    folder.write(name, table)
                    record[name] = table.height
                record["items"] = found["items"].height
            return end_people(folder)


@checks_keywords
def agreement(source: Path | str, *, progress: Progress = SILENT, **options: Unpack[AgreementOptions]) -> Run:
    """The finished run on how far people agree; arguments are those of ``evenhand annotate agreement``.

    ``source`` is a study folder, an export, or a table of ratings. Tables: ``agreement`` (Fleiss' kappa,
    Krippendorff's alpha, Spearman's rho), ``annotators``, ``annotator_pairs``, ``items``, ``dissents``,
    ``errors``; intervals resample texts.
    """
    return prepare(source, **options).run(progress)


@checks_keywords
def prepare(source: Path | str, **options: Unpack[AgreementOptions]) -> Agreeing:
    """The ratings read and checked, so that ``plan`` can be shown before ``run``."""
    collected, rule = read_source(source, options)
    check_several(collected)
    level, seed = checked_level(options.get("level")), options.get("seed", 0)
    identity = people_identity(COMMAND, collected, rule) | {"seed": seed, "level": level}
    out = options.get("out")
    return Agreeing(
        collected=collected,
        rule=rule,
        seed=seed,
        level=level,
        identity=identity,
        folder=Path(out) if out else default_folder(COMMAND, collected.name, identity),
        command=options.get("command") or f"evenhand annotate agreement {source}",
        fresh=options.get("fresh", False),
    )


def read_source(source: Path | str, options: SourceOptions) -> tuple[Collected, Rule]:
    """The ratings of a study or file, and the rule that makes one label of several."""
    rule = checked_rule(
        options.get("consensus", "majority"), options.get("agreement", 0.5), options.get("least", 1)
    )
    columns = Columns(
        item=options.get("item"),
        text=options.get("text"),
        annotator=options.get("annotator"),
        labels=split_names(options.get("label")) or (),
        cluster=options.get("cluster"),
        scale=split_names(options.get("scale")) or (),
    )
    collected = collect(source, columns, database=options.get("database"))
    return collected.asked(split_names(options.get("question"))), rule


def people_identity(command: str, collected: Collected, rule: Rule) -> dict[str, Json]:
    """What a run over people's labels depends on."""
    return {
        "command": command,
        "inputs": {"file": collected.source.name, "digest": collected.digest},
        "questions": [question.name for question in collected.questions],
        "scales": {question.name: dict(question.scale.places) for question in collected.questions},
        "consensus": {"method": rule.method, "agreement": rule.agreement, "least": rule.least},
    }


def begin_people(folder: RunFolder, command: str, collected: Collected) -> None:
    """Write down what is about to be done."""
    folder.manifest.update(
        command=command, name=collected.name, execution={}, warnings=list(collected.notes), ended=None
    )


def end_people(folder: RunFolder) -> Run:
    """The finished run with its reports."""
    folder.manifest["ended"] = now()
    folder.save_manifest()
    render(folder.run(), ("html", "json", "md"))
    return folder.run()


def described(collected: Collected) -> list[str]:
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


def said(rule: Rule) -> str:
    """The rule in words."""
    least = f", from {rule.least} ratings on" if rule.least > 1 else ""
    if rule.method == "dawid-skene":
        return f"Dawid and Skene's, where its probability is above {rule.agreement:g}{least}"
    share = f" and at least {rule.agreement:.0%}" if rule.agreement > 0.5 else ""
    return f"what more than half{share} of the annotators say{least}"
