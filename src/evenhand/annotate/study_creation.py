"""``create_study``: from runs and files of texts to a study people can answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack
from uuid import uuid4

from evenhand._version import __version__
from evenhand.annotate.item_sampling import ItemCandidate, items_table, sample_across_methods, sample_items
from evenhand.annotate.options import StudyOptions
from evenhand.annotate.study import (
    AnnotationTask,
    MaskChoice,
    Study,
    StudyConfig,
    check_no_study,
    parse_task,
    task_text,
    with_layout,
    write_study,
)
from evenhand.annotate.study_texts import FileColumns, StudyTexts, read_sources
from evenhand.audits.run_setup import RunPlan
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.store import ingest


@dataclass(frozen=True, slots=True)
class StudyCreationJob:
    """A study that is read, drawn and ready to be written."""

    folder: Path
    sources: tuple[Path, ...]
    task: AnnotationTask
    task_text: str
    mask: MaskChoice
    settings: StudyConfig
    texts: StudyTexts
    items: tuple[ItemCandidate, ...]
    item_count: int

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        groups = len({one.group for one in self.items})
        methods = len({one.method for one in self.items})
        asked = ", ".join(question.name for question in self.task.questions)
        spread = f"{groups:,} groups" if groups > 1 else "one group"
        if self.task.task.metric:
            spread += f" and the range of {self.task.task.metric}"
        lines = (
            f"texts   {len(self.texts.candidates):,} found, {len(self.items):,} drawn evenly over {spread}"
            + (f", {methods} methods" if methods > 1 else "")
            + f"; seed {self.settings.seed}",
            f"ask     {asked} ({self.task.task.name}), {_people(self.settings.annotators)} a text, "
            f"{self._pages()}, {len(self.task.checks)} checks of attention",
            self._answers(),
            f"folder  {self.folder}",
        )
        return RunPlan(f"study {self.folder.name}", lines, self.folder)

    def notes(self) -> list[str]:
        """What is odd: too few texts, none masked, texts left out."""
        found = []
        methods = len({one.method for one in self.items}) if self.task.task.per_method else 1
        # Of each prompt every method is asked about: what is over cannot be drawn.
        if len(self.items) < self.item_count - self.item_count % methods:
            found.append(f"{len(self.items)} different texts were there, {self.item_count} were wanted")
        if self.mask != "none" and not self.texts.masked:
            found.append(
                "no text has a mask: readers may see its group (in files, --mentions names the words)"
            )
        if self.texts.left_out:
            found.append(f"{self.texts.left_out} empty texts left out")
        return found

    def run(self) -> Study:
        """Write the study."""
        return write_study(
            self.folder,
            task=self.task_text,
            settings=self.settings,
            items=items_table(self.items, self.task),
        )

    @property
    def people(self) -> int:
        """The fewest people who can answer everything."""
        share = self._share()
        wanted = len(self.items) * self.settings.annotators
        return max(self.settings.annotators, -(-wanted // share)) if share else self.settings.annotators

    def _share(self) -> int:
        """Texts a person gets; 0 for no limit."""
        terms = self.task.task
        methods = len({one.method for one in self.items})
        if terms.layout == "side-by-side" and terms.per_person:
            return max(1, terms.per_person // methods) * methods
        return terms.per_method * methods or terms.per_person

    def _answers(self) -> str:
        wanted = len(self.items) * self.settings.annotators
        people = f", by {_people(self.people)} or more" if self._share() else ""
        return f"answers {wanted:,} wanted{people}"

    def _pages(self) -> str:
        terms = self.task.task
        if terms.layout == "side-by-side":
            return "side by side"
        share = f", {self._share()} a person" if self._share() else ""
        return ("one at a time" if terms.page == 1 else f"pages of {terms.page}") + share


@checks_options
def create_study(
    folder: Path | str, source: Path | str | Sequence[Path | str], **options: Unpack[StudyOptions]
) -> Study:
    """The study written to a new folder, from one or several runs or files.

    Texts are drawn evenly over groups and over the range of the task's metric, masked as the task says;
    arguments are those of ``annotate init``.
    """
    return prepare(folder, source, **options).run()


@checks_options
def prepare(
    folder: Path | str, source: Path | str | Sequence[Path | str], **options: Unpack[StudyOptions]
) -> StudyCreationJob:
    """The texts read, scored and drawn, so that ``plan`` can be shown before ``run``."""
    path = Path(folder)
    check_no_study(path)
    sources = tuple(Path(one) for one in ([source] if isinstance(source, str | Path) else source))
    text = task_text(options["task"])
    layout = options["layout"]
    task = with_layout(parse_task(text, where=str(options["task"])), layout)
    mask = options["mask"] or task.task.mask
    texts = read_sources(sources, task=task, mask=mask, columns=_columns(options))
    wanted, seed = options["items"], options["seed"]
    settings = StudyConfig(
        id=uuid4().hex,
        seed=seed,
        annotators=options["annotators"],
        layout=layout,
        provenance={
            "evenhand": __version__,
            "sources": ", ".join(str(one) for one in sources),
            "mask": mask,
            "metric": task.task.metric,
            "texts": str(len(texts.candidates)),
        },
    )
    chosen = _draw_texts(texts, task, wanted, seed)
    return StudyCreationJob(path, sources, task, text, mask, settings, texts, tuple(chosen), wanted)


def _draw_texts(texts: StudyTexts, task: AnnotationTask, wanted: int, seed: int) -> list[ItemCandidate]:
    if not task.task.per_method:
        return sample_items(texts.candidates, count=wanted, seed=seed)
    chosen, methods = sample_across_methods(texts.candidates, count=wanted, seed=seed)
    if not chosen:
        counts = Counter(one.method for one in texts.candidates)
        raise InputError(
            f"no prompt has a text by each of {len(methods)} methods "
            f"({', '.join(f'{name}: {count} texts' for name, count in sorted(counts.items()))})",
            expected="runs over the same prompts, or a file with --prompt and --method",
            fix="check that the runs have one suite, or lower their number",
        )
    return chosen


def _columns(options: StudyOptions) -> FileColumns:
    layout = ingest.ColumnLayout(
        text=options["text"],
        groups=_groups(options["group"]),
        prompt=options["prompt"],
        id=options["id"],
        mentions=options["mentions"],
    )
    return FileColumns(layout, options["method"], options["score"])


def _groups(given: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    """Axis to its column, from a mapping or from ``AXIS=COLUMN`` and ``COLUMN``."""
    if isinstance(given, Mapping):
        return dict(given)
    parts = (item.partition("=") for item in given)
    return {axis: column or axis for axis, _, column in parts}


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number:,} people"
