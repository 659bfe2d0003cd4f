"""``create_study``: from runs and files of texts to a study people can answer.

Texts are drawn evenly over groups and over the whole range of scores.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple, Unpack
from uuid import uuid4

import polars as pl

from evenhand._version import __version__
from evenhand.annotate.options import StudyOptions
from evenhand.annotate.study import (
    ITEM_COLUMNS,
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
from evenhand.audits.loaded_run import COMMANDS, read_command
from evenhand.audits.run_setup import RunPlan
from evenhand.core import registry
from evenhand.core.digests import canonical_json, digest
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Metric
from evenhand.core.records import Prompt, Text
from evenhand.core.seeds import make_generator
from evenhand.store.ingest import ColumnLayout, check_layout, read_texts
from evenhand.store.prompt_rows import read_prompt_rows
from evenhand.store.run import MANIFEST, Run, run_errors
from evenhand.store.table_files import read_table
from evenhand.text.rendering import render_text
from evenhand.text.sentences import cut_first_sentence

BINS: Final = 5
"""Parts of the range of scores, of equal width."""


@dataclass(frozen=True, slots=True)
class ItemCandidate:
    """A text that could be asked about."""

    text_id: str
    text: str
    """As people will see it, masked."""
    prompt: str
    """The prompt as people will see it."""
    pair: str
    """The prompt's id: joins texts across methods."""
    group: str
    method: str
    score: float | None
    score_label: str | None


@dataclass(frozen=True, slots=True)
class StudyTexts:
    """The texts of all sources, as people will see them."""

    candidates: tuple[ItemCandidate, ...]
    masked: int
    """Texts with a mask in them."""
    left_out: int
    """Empty texts."""


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Which column of a file holds what."""

    layout: ColumnLayout
    method: str | None = None
    score: str | None = None


@dataclass(frozen=True, slots=True)
class StudyCreationJob:
    """A study that is read, drawn and ready to be written."""

    folder: Path
    task: AnnotationTask
    task_text: str
    mask: MaskChoice
    settings: StudyConfig
    texts: StudyTexts
    items: tuple[ItemCandidate, ...]
    item_count: int

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        terms, annotators, share = self.task.task, self.settings.annotators, self._share()
        groups, methods = len({one.group for one in self.items}), self._methods()
        questions = ", ".join(question.name for question in self.task.questions)
        spread = f"{groups:,} groups" if groups > 1 else "one group"
        spread += f" and the range of {terms.metric}" if terms.metric else ""
        of_methods = f", {methods} methods" if methods > 1 else ""
        pages = "one at a time" if terms.page == 1 else f"pages of {terms.page}"
        if terms.layout == "side-by-side":
            pages = "side by side"
        elif share:
            pages += f", {share} a person"
        people = f", by {_people(self.people)} or more" if share else ""
        lines = (
            f"texts   {len(self.texts.candidates):,} found, {len(self.items):,} drawn evenly over {spread}"
            f"{of_methods}; seed {self.settings.seed}",
            f"ask     {questions} ({terms.name}), {_people(annotators)} a text, {pages}, "
            f"{len(self.task.checks)} checks of attention",
            f"answers {len(self.items) * annotators:,} wanted{people}",
            f"folder  {self.folder}",
        )
        return RunPlan(f"study {self.folder.name}", lines, self.folder)

    def notes(self) -> list[str]:
        """What is odd: too few texts, none masked, texts left out."""
        notes = []
        methods = self._methods() if self.task.task.per_method else 1
        # Every method is asked about for each prompt: a remainder cannot be drawn.
        if len(self.items) < self.item_count - self.item_count % methods:
            notes.append(f"{len(self.items)} different texts were there, {self.item_count} were wanted")
        if self.mask != "none" and not self.texts.masked:
            notes.append(
                "no text has a mask: readers may see its group (in files, --mentions names the words)"
            )
        if self.texts.left_out:
            notes.append(f"{self.texts.left_out} empty texts left out")
        return notes

    def run(self) -> Study:
        """Write the study."""
        items = items_table(self.items, self.task)
        return write_study(self.folder, task=self.task_text, settings=self.settings, items=items)

    @property
    def people(self) -> int:
        """The fewest people who can answer everything."""
        share, annotators = self._share(), self.settings.annotators
        return max(annotators, -(-len(self.items) * annotators // share)) if share else annotators

    def _share(self) -> int:
        """Texts a person gets; 0 for no limit."""
        terms, methods = self.task.task, self._methods()
        if terms.layout == "side-by-side" and terms.per_person:
            return max(1, terms.per_person // methods) * methods
        return terms.per_method * methods or terms.per_person

    def _methods(self) -> int:
        return len({one.method for one in self.items})


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
    text, layout = task_text(options["task"]), options["layout"]
    task = with_layout(parse_task(text, where=str(options["task"])), layout)
    mask = options["mask"] or task.task.mask
    texts = read_sources(sources, task=task, mask=mask, columns=_columns(options))
    settings = StudyConfig(
        id=uuid4().hex,
        seed=options["seed"],
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
    chosen = _draw_texts(texts, task, options["items"], options["seed"])
    return StudyCreationJob(path, task, text, mask, settings, texts, tuple(chosen), options["items"])


def _draw_texts(texts: StudyTexts, task: AnnotationTask, count: int, seed: int) -> list[ItemCandidate]:
    if not task.task.per_method:
        return sample_items(texts.candidates, count=count, seed=seed)
    chosen, methods = sample_across_methods(texts.candidates, count=count, seed=seed)
    if not chosen:
        counts = Counter(one.method for one in texts.candidates)
        raise InputError(
            f"no prompt has a text by each of {len(methods)} methods "
            f"({', '.join(f'{name}: {number} texts' for name, number in sorted(counts.items()))})",
            expected="runs over the same prompts, or a file with --prompt and --method",
            fix="check that the runs have one suite, or lower their number",
        )
    return chosen


def _columns(options: StudyOptions) -> FileColumns:
    groups = options["group"]
    if not isinstance(groups, Mapping):
        # ``AXIS=COLUMN``, or ``COLUMN`` for both.
        parts = (item.partition("=") for item in groups)
        groups = {axis: column or axis for axis, _, column in parts}
    layout = ColumnLayout(
        text=options["text"],
        groups=dict(groups),
        prompt=options["prompt"],
        id=options["id"],
        mentions=options["mentions"],
    )
    return FileColumns(layout, options["method"], options["score"])


def _people(number: int) -> str:
    return "1 person" if number == 1 else f"{number:,} people"


class _SourceText(NamedTuple):
    """A text of a source."""

    text_id: str
    prompt: Prompt
    text: str
    method: str
    score: tuple[float | None, str | None] | None
    """The metric's value and label; None where nothing scored the text."""


def read_sources(
    sources: Sequence[Path], *, task: AnnotationTask, mask: MaskChoice, columns: FileColumns
) -> StudyTexts:
    """The texts of runs and files, rendered for people; the task's metric scores them where nothing has."""
    every = [
        one
        for path, method in _name_methods(sources)
        for one in (_of_run(path, method, task) if _is_run(path) else _of_file(path, method, columns))
    ]
    texts = [one for one in every if one.text.strip()]
    if not texts:
        raise InputError(
            f"{', '.join(map(str, sources))}: no text to ask about",
            expected="runs of `evenhand audit` or `evenhand score`, or files with a column of texts",
            fix="check the source, and --text for a file",
        )
    terms = task.task
    shown = [
        _render(one.prompt, cut_first_sentence(one.text) if terms.one_sentence else one.text, mask)
        for one in texts
    ]
    scores = [one.score for one in texts]
    if terms.metric and all(score is None for score in scores):
        scores = _score_texts(shown, task)
    candidates = tuple(
        ItemCandidate(
            text_id=one.text_id,
            text=text.text,
            prompt=_render(one.prompt, "", mask).text,
            pair=one.prompt.id,
            group="; ".join(f"{group.axis}={group.name}" for group in one.prompt.groups),
            method=one.method,
            score=score[0] if score else None,
            score_label=score[1] if score else None,
        )
        for one, text, score in zip(texts, shown, scores, strict=True)
    )
    return StudyTexts(candidates, sum(bool(text.masks) for text in shown), len(every) - len(texts))


def _is_run(path: Path) -> bool:
    return (path / MANIFEST).is_file()


def _name_methods(sources: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Each source with the name of its method; the folders distinguish two of one name."""
    names = [
        str(Run.open(path).manifest.get("name", path.name)) if _is_run(path) else path.stem
        for path in sources
    ]
    for path, name in zip(sources, names, strict=True):
        yield path, name if names.count(name) == 1 else f"{name} ({path.name})"


def _of_run(path: Path, method: str, task: AnnotationTask) -> list[_SourceText]:
    with run_errors(path):
        run = Run.open(path)
        if read_command(run) not in COMMANDS:
            raise InputError(
                f"{path} is a run of `evenhand {read_command(run)}`",
                expected="runs of `evenhand audit` or `evenhand score`, or a file of texts",
                fix="name the folder of such a run",
            )
        wanted = pl.col("metric").str.split("=").list.first() == task.task.metric
        rows = run.scan("scores").filter(wanted, pl.col("output") == task.task.output)
        scored = rows.select("text_id", "value", "label").collect().iter_rows()
        scores = {text_id: (value, label) for text_id, value, label in scored}
        return [
            _SourceText(text_id, prompt, text, method, scores.get(text_id))
            for text_id, prompt, text in read_run_texts(run)
        ]


def read_run_texts(run: Run) -> Iterator[tuple[str, Prompt, str]]:
    """The id, prompt and text of every completion of a run."""
    prompts = {prompt.id: prompt for prompt in read_prompt_rows(run.table("prompts"))}
    for text_id, prompt_id, text in run.table("generations").select("id", "prompt_id", "text").iter_rows():
        yield text_id, prompts[prompt_id], text or ""


def _of_file(path: Path, name: str, columns: FileColumns) -> Iterator[_SourceText]:
    named = {"--method": columns.method, "--score": columns.score}
    table = read_table(path, {**columns.layout.columns(), **named})
    check_layout(table, columns.layout, path)
    read = read_texts(table, columns.layout, path.name)
    methods = table[columns.method].to_list() if columns.method else [name] * table.height
    scores = [None] * table.height if columns.score is None else _numbers(table[columns.score], path)
    for row, method, score in zip(read.rows, methods, scores, strict=True):
        text, prompt = row["text"], read.prompts[str(row["prompt_id"])]
        known = None if columns.score is None else (score, None)
        yield _SourceText(str(row["id"]), prompt, text if isinstance(text, str) else "", method or "", known)


def _numbers(column: pl.Series, path: Path) -> list[float | None]:
    numbers = column.cast(pl.Float64(), strict=False)
    bad = column.filter(numbers.is_null() & column.is_not_null())
    if bad.len():
        raise InputError(
            f"{path} has {bad[0]!r} in the column {column.name!r} (--score)",
            expected="numbers, or nothing",
            fix="name a column of numbers",
        )
    return numbers.to_list()


def _render(prompt: Prompt, text: str, mask: MaskChoice) -> Text:
    shown = render_text(
        prompt.text,
        text,
        scope="full",
        masking="xyz" if mask == "xyz" else "none",
        mentions=prompt.mentions,
        mask_option="none" if mask == "none" else "paper",
    )
    return shown._replace(text=shown.text.rstrip())


def _score_texts(shown: Sequence[Text], task: AnnotationTask) -> list[tuple[float | None, str | None] | None]:
    metric = registry.create_metric(task.task.metric)
    if not isinstance(metric, Metric):
        raise InputError(
            f"the metric {task.task.metric!r} scores no single texts", fix="name another in the task file"
        )
    rows = (row.get(task.task.output) for row in metric.score(shown))
    return [(row.value, row.label) if row else None for row in rows]


def sample_items(candidates: Iterable[ItemCandidate], *, count: int, seed: int) -> list[ItemCandidate]:
    """``count`` texts, spread evenly over groups and, inside each, over the range of scores.

    Text after text goes to the group that has fewest, there to the fifth of the score range that has fewest,
    there to the next in an order drawn by seed; a group or a part that has no more is passed over. A text
    that occurs twice in a group counts once. The order of the candidates changes nothing.
    """
    cells = _cells(candidates, seed)
    taken: dict[str, int] = dict.fromkeys(sorted({group for group, _ in cells}), 0)
    in_cell: dict[tuple[str, int], int] = dict.fromkeys(sorted(cells), 0)
    chosen: list[ItemCandidate] = []
    while len(chosen) < count:
        open_cells = [cell for cell in in_cell if in_cell[cell] < len(cells[cell])]
        if not open_cells:
            break
        cell = min(open_cells, key=lambda cell: (taken[cell[0]], cell[0], in_cell[cell], cell[1]))
        chosen.append(cells[cell][in_cell[cell]])
        in_cell[cell] += 1
        taken[cell[0]] += 1
    return chosen


def sample_across_methods(
    candidates: Iterable[ItemCandidate], *, count: int, seed: int
) -> tuple[list[ItemCandidate], tuple[str, ...]]:
    """Texts of the same prompts by every method, ``count`` in all, and the methods.

    Prompts are spread over groups as in `sample_items`; of each prompt and method one text is drawn.
    """
    by_pair: dict[str, dict[str, list[ItemCandidate]]] = defaultdict(lambda: defaultdict(list))
    for candidate in candidates:
        by_pair[candidate.pair][candidate.method].append(candidate)
    methods = tuple(sorted({method for texts in by_pair.values() for method in texts}))
    whole = {pair: texts for pair, texts in by_pair.items() if len(texts) == len(methods)}
    firsts = [_draw_one(texts[methods[0]], seed, pair, methods[0]) for pair, texts in whole.items()]
    prompts = sample_items(firsts, count=count // max(1, len(methods)), seed=seed)
    return [
        _draw_one(whole[prompt.pair][method], seed, prompt.pair, method)
        for prompt in prompts
        for method in methods
    ], methods


def items_table(chosen: Sequence[ItemCandidate], task: AnnotationTask) -> pl.DataFrame:
    """The table of items: the chosen texts and the task's checks.

    An item's id is a digest, so that it reveals nothing of group, score or method, and a check looks like any
    other.
    """
    rows: list[dict[str, object]] = [
        {
            "item_id": digest([one.method, one.pair, one.text_id, one.text], size=8),
            "is_check": False,
            **asdict(one),
        }
        for one in chosen
    ]
    rows += [
        {
            "item_id": digest(["check", check.text], size=8),
            "text": check.text,
            "is_check": True,
            "expected": canonical_json(check.answers),
        }
        for check in task.checks
    ]
    return pl.DataFrame(rows, schema=dict(ITEM_COLUMNS)).sort("item_id")


def _cells(candidates: Iterable[ItemCandidate], seed: int) -> dict[tuple[str, int], list[ItemCandidate]]:
    """(group, part of the range) to its different texts in drawn order."""
    different: dict[tuple[str, str, str], ItemCandidate] = {}
    for candidate in sorted(candidates, key=lambda one: (one.group, one.text, one.method, one.text_id)):
        different.setdefault((candidate.group, candidate.method, candidate.text), candidate)
    scores = [one.score for one in different.values() if one.score is not None]
    low, high = (min(scores), max(scores)) if scores else (0.0, 0.0)
    cells: dict[tuple[str, int], list[ItemCandidate]] = defaultdict(list)
    for candidate in different.values():
        cells[candidate.group, _part(candidate.score, low, high)].append(candidate)
    return {cell: _shuffle(texts, seed, *map(str, cell)) for cell, texts in cells.items()}


def _part(score: float | None, low: float, high: float) -> int:
    if score is None or high <= low:
        return 0
    return min(BINS - 1, int((score - low) / (high - low) * BINS))


def _shuffle(texts: Sequence[ItemCandidate], seed: int, *key: str) -> list[ItemCandidate]:
    order = make_generator(seed, "study", *key).permutation(len(texts))
    return [texts[place] for place in order.tolist()]


def _draw_one(texts: Sequence[ItemCandidate], seed: int, *key: str) -> ItemCandidate:
    ordered = sorted(texts, key=lambda one: one.text_id)
    return _shuffle(ordered, seed, *key)[0]
