"""``create_study`` and ``sample_items``: choose texts for annotation from runs and files.

The texts of a study are sampled evenly over groups and over the whole range of scores; ``sample_items`` draws
texts of each polarity for every prompt.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Final, NamedTuple, Unpack
from uuid import uuid4

import polars as pl

from evenhand._version import __version__
from evenhand.annotate.options import ItemOptions, StudyOptions
from evenhand.annotate.study import (
    ITEM_COLUMNS,
    AnnotationTask,
    MaskChoice,
    Study,
    StudyConfig,
    TaskInfo,
    check_no_study,
    parse_task,
    task_text,
    write_study,
)
from evenhand.audits.loaded_run import COMMANDS, read_command
from evenhand.audits.run_setup import SILENT_PROGRESS, PreparedJob
from evenhand.audits.score import name_groups
from evenhand.core import registry
from evenhand.core.digests import canonical_json, digest
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import GenerationSpec, Prompt, Request, Text
from evenhand.core.seeds import make_generator
from evenhand.store.atomic_writes import write_text
from evenhand.store.ingest import ColumnLayout, check_layout, read_texts
from evenhand.store.prompt_rows import read_prompt_rows
from evenhand.store.run import MANIFEST, Run, run_errors
from evenhand.store.table_files import read_table, spreadsheet_csv
from evenhand.text.rendering import render_text
from evenhand.text.sentences import cut_first_sentence

BINS: Final = 5
"""Number of equal-width bins of the score range."""
LABELS: Final = ("positive", "negative")
"""Labels drawn for every prompt (Sheng et al. 2019, section 4): sentiment only diversifies the texts."""
_MOST: Final = 100_000
"""Maximum number of samples per prompt to look for in a file."""


class ItemCandidate(NamedTuple):
    """A text that may become an item."""

    text_id: str
    text: str
    """The text as people will see it, masked."""
    prompt: str
    """The prompt as people will see it."""
    pair: str
    """The prompt's id, which joins texts across methods."""
    group: str
    method: str
    score: float | None
    score_label: str | None


@checks_options
def create_study(
    folder: Path | str, source: Path | str | Sequence[Path | str], **options: Unpack[StudyOptions]
) -> Study:
    """Create a study in a new folder from one or several runs or files.

    Texts are sampled evenly over groups and over the range of the task's metric, and masked as the task
    specifies; arguments are those of ``annotate init``.
    """
    return prepare(folder, source, **options).run()


@checks_options
def prepare(
    folder: Path | str, source: Path | str | Sequence[Path | str], **options: Unpack[StudyOptions]
) -> PreparedJob[Study]:
    """Read, score and sample the texts, so that ``plan`` can be shown before ``run``."""
    path = Path(folder)
    check_no_study(path)
    sources = [Path(one) for one in ([source] if isinstance(source, str | Path) else source)]
    text, layout, seed = task_text(options["task"]), options["layout"], options["seed"]
    task = parse_task(text, where=str(options["task"]), layout=layout)
    mask = options["mask"] or task.task.mask
    groups, prompt, mentions = name_groups(options["group"]), options["prompt"], options["mentions"]
    columns = ColumnLayout(options["text"], groups, prompt=prompt, id=options["id"], mentions=mentions)
    method, score = options["method"], options["score"]
    candidates, notes = read_sources(sources, task, columns, mask=mask, method=method, score=score)
    settings = StudyConfig(
        id=uuid4().hex,
        seed=seed,
        annotators=options["annotators"],
        layout=layout,
        provenance={
            "evenhand": __version__,
            "sources": ", ".join(map(str, sources)),
            "mask": mask,
            "metric": task.task.metric,
            "texts": str(len(candidates)),
        },
    )
    sample = sample_across_methods if task.task.per_method else sample_evenly
    chosen, count = sample(candidates, count=options["items"], seed=seed), options["items"]
    # Each prompt contributes one text per method: a remainder cannot be drawn.
    remainder = count % len({one.method for one in chosen}) if task.task.per_method else 0
    if len(chosen) < count - remainder:
        notes.insert(0, f"{len(chosen)} distinct texts are available, {count} were requested")
    items = items_table(chosen, task)
    return PreparedJob(
        f"new study: {path.name}",
        (*_describe(task, settings, items), f"folder  {path}"),
        lambda _: write_study(path, task=text, settings=settings, items=items),
        notes,
    )


def _describe(task: AnnotationTask, settings: StudyConfig, items: pl.DataFrame) -> list[str]:
    """The lines of the plan."""
    terms, items = task.task, items.filter(~pl.col("is_check"))
    groups, methods = (items[name].n_unique() for name in ("group", "method"))
    share, people = _share(terms, methods), count_people(task, settings.annotators, items)
    spread = f"{groups:,} groups" if groups > 1 else "one group"
    spread += f" and the range of {terms.metric}" if terms.metric else ""
    spread += f", {methods} methods" if methods > 1 else ""
    pages = "one at a time" if terms.page == 1 else f"pages of {terms.page}"
    if terms.layout == "side-by-side":
        pages = "side by side"
    elif share:
        pages += f", {share} per person"
    return [
        f"texts   {int(settings.provenance['texts']):,} read, {items.height:,} sampled evenly over {spread}; "
        f"seed {settings.seed}",
        f"ask     {', '.join(question.name for question in task.questions)} ({terms.name}), "
        f"{_format_people(settings.annotators)} per text, {pages}, {len(task.checks)} attention checks",
        f"answers {items.height * settings.annotators:,} required"
        + (f", by {_format_people(people)} or more" if share else ""),
    ]


def count_people(task: AnnotationTask, annotators: int, items: pl.DataFrame) -> int:
    """The minimum number of people who can answer everything, with so many annotators per text."""
    texts = items.filter(~pl.col("is_check"))
    share = _share(task.task, texts["method"].n_unique())
    return max(annotators, -(-texts.height * annotators // share)) if share else annotators


def _share(terms: TaskInfo, methods: int) -> int:
    """Texts per person; 0 for no limit."""
    if terms.layout == "side-by-side" and terms.per_person:
        return max(1, terms.per_person // methods) * methods
    return terms.per_method * methods or terms.per_person


def _format_people(number: int) -> str:
    return "1 person" if number == 1 else f"{number:,} people"


_SourceText = tuple[str, Prompt, str, str, tuple[float | None, str | None] | None]
"""The id, prompt, text and method of a text, and the metric's value and label if it has a score."""


def read_sources(
    sources: Sequence[Path],
    task: AnnotationTask,
    columns: ColumnLayout,
    *,
    mask: MaskChoice,
    method: str | None = None,
    score: str | None = None,
) -> tuple[list[ItemCandidate], list[str]]:
    """Read the texts of runs and files as people see them, with warnings; the task's metric scores them.

    ``columns``, ``method`` and ``score`` name the columns of files. Texts that have a score keep it.
    """
    terms, left_out, is_scored = task.task, 0, False
    candidates, shown = list[ItemCandidate](), list[Text]()
    for path, name in _name_methods(sources):
        run = is_run(path)
        texts = _read_run(path, name, terms) if run else _read_file(path, name, columns, method, score)
        for text_id, prompt, text, how, scored in texts:
            if not text.strip():
                left_out += 1
                continue
            shown.append(_render(prompt, cut_first_sentence(text) if terms.one_sentence else text, mask))
            before, group = _render(prompt, "", mask).text, describe_groups(prompt)
            own = (text_id, shown[-1].text, before, prompt.id, group, how, *(scored or (None, None)))
            candidates.append(ItemCandidate(*own))
            is_scored |= scored is not None
    if not candidates:
        raise InputError(
            f"{', '.join(map(str, sources))}: no text to annotate",
            expected="runs of `evenhand audit` or `evenhand score`, or files with a text column",
            fix="check the source, and --text for a file",
        )
    if terms.metric and not is_scored:
        metric = create_text_metric(terms.metric, fix="choose another in the task file")
        rows = [row.get(terms.output) for row in metric.score(shown)]
        candidates = [
            one._replace(score=row.value, score_label=row.label) if row else one
            for one, row in zip(candidates, rows, strict=True)
        ]
    notes = []
    if mask != "none" and not any(text.masks for text in shown):
        notes.append(
            f"none of the words in the column {columns.mentions!r} (--mentions) occurs in any text, so "
            "nothing is masked: annotators may see the group"
            if columns.mentions
            else "no text has a mask: annotators may see its group (for files, --mentions names the column "
            "with the words to mask)"
        )
    if left_out:
        notes.append(f"{left_out} empty texts left out")
    return candidates, notes


def is_run(path: Path) -> bool:
    """Whether a source is a run folder rather than a file."""
    return (path / MANIFEST).is_file()


def describe_groups(prompt: Prompt) -> str:
    """The groups of a prompt as ``axis=name; axis=name``."""
    return "; ".join(f"{group.axis}={group.name}" for group in prompt.groups)


def create_text_metric(
    name: str, options: Mapping[str, registry.Option] | None = None, *, fix: str
) -> Metric:
    """Create a metric by name; an error with ``fix`` if it cannot score single texts."""
    metric = registry.create_metric(name, options)
    if not isinstance(metric, Metric):
        raise InputError(f"the metric {name!r} cannot score single texts", fix=fix)
    return metric


def _name_methods(sources: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Each source with its method name; folders distinguish sources with the same name."""
    names = [
        str(Run.open(path).manifest.get("name", path.name)) if is_run(path) else path.stem for path in sources
    ]
    for path, name in zip(sources, names, strict=True):
        yield path, name if names.count(name) == 1 else f"{name} ({path.name})"


def _read_run(path: Path, method: str, terms: TaskInfo) -> Iterator[_SourceText]:
    with run_errors(path):
        run = Run.open(path)
        if read_command(run) not in COMMANDS:
            raise InputError(
                f"{path} is a run of `evenhand {read_command(run)}`",
                expected="runs of `evenhand audit` or `evenhand score`, or a file of texts",
                fix="name the folder of such a run",
            )
        is_metric = pl.col("metric").str.split("=").list.first() == terms.metric
        rows = run.scan("scores").filter(is_metric, pl.col("output") == terms.output).collect()
        scores = dict(zip(rows["text_id"], rows.select("value", "label").iter_rows(), strict=True))
        for text_id, prompt, text in read_run_texts(run):
            yield text_id, prompt, text, method, scores.get(text_id)


def read_run_texts(run: Run) -> Iterator[tuple[str, Prompt, str]]:
    """The id, prompt and text of every completion of a run."""
    prompts = {prompt.id: prompt for prompt in read_prompt_rows(run.table("prompts"))}
    for text_id, prompt_id, text in run.table("generations").select("id", "prompt_id", "text").iter_rows():
        yield text_id, prompts[prompt_id], text or ""


def _read_file(
    path: Path, name: str, columns: ColumnLayout, method: str | None, score: str | None
) -> Iterator[_SourceText]:
    table = read_table(path, {**columns.columns(), "--method": method, "--score": score})
    check_layout(table, columns, path)
    read = read_texts(table, columns, path.name)
    methods = table[method].to_list() if method else [name] * table.height
    scores: list[tuple[float | None, str | None] | None] = [None] * table.height
    if score:
        numbers = table[score].cast(pl.Float64(), strict=False)
        bad = table[score].filter(numbers.is_null() & table[score].is_not_null())
        if bad.len():
            raise InputError(
                f"{path} has {bad[0]!r} in the column {score!r} (--score)",
                expected="numbers or empty cells",
                fix="name a column of numbers",
            )
        scores = [(number, None) for number in numbers]
    for row, how, scored in zip(read.rows, methods, scores, strict=True):
        text = row["text"] if isinstance(row["text"], str) else ""
        yield str(row["id"]), read.prompts[str(row["prompt_id"])], text, how or "", scored


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


def sample_evenly(candidates: Iterable[ItemCandidate], *, count: int, seed: int) -> list[ItemCandidate]:
    """Sample ``count`` texts evenly over groups and, within each group, over the range of scores.

    Each text is drawn from the group with the fewest so far, there from the fifth of the score range with the
    fewest, there in an order drawn by seed; exhausted groups and bins are skipped. A text that occurs twice
    in a group counts once. The order of the candidates does not matter.
    """
    ordered = sorted(candidates, key=attrgetter("group", "text", "method", "text_id"))
    different = [next(same) for _, same in groupby(ordered, key=attrgetter("group", "text", "method"))]
    scores = [one.score for one in different if one.score is not None]
    low = min(scores, default=0.0)
    width = (max(scores, default=0.0) - low) or 1.0
    cells: dict[tuple[str, int], list[ItemCandidate]] = defaultdict(list)
    for one in different:
        part = 0 if one.score is None else min(BINS - 1, int((one.score - low) / width * BINS))
        cells[one.group, part].append(one)
    drawn: dict[str, list[tuple[int, int, ItemCandidate]]] = defaultdict(list)
    for group, part in sorted(cells):
        texts = _shuffle(cells[group, part], seed, group, str(part))
        drawn[group] += [(place, part, one) for place, one in enumerate(texts)]
    # In each round every group contributes one text, in the order of the group names.
    rounds = zip_longest(*(sorted(texts, key=itemgetter(0, 1)) for texts in drawn.values()))
    return [turn[2] for turns in rounds for turn in turns if turn][:count]


def sample_across_methods(
    candidates: Iterable[ItemCandidate], *, count: int, seed: int
) -> list[ItemCandidate]:
    """Sample texts of the same prompts by every method, ``count`` in all; an error if no prompt has all.

    Prompts are spread over groups as in `sample_evenly`; one text is drawn per prompt and method.
    """
    texts: dict[tuple[str, str], list[ItemCandidate]] = defaultdict(list)
    for one in sorted(candidates, key=attrgetter("text_id")):
        texts[one.pair, one.method].append(one)
    counts = Counter(one.method for same in texts.values() for one in same)
    methods = sorted(counts)
    firsts = [
        _shuffle(same, seed, pair, method)[0]
        for (pair, method), same in texts.items()
        if method == methods[0] and all((pair, other) in texts for other in methods)
    ]
    prompts = sample_evenly(firsts, count=count // len(methods), seed=seed)
    if not prompts:
        raise InputError(
            f"no prompt has a text by each of the {len(methods)} methods "
            f"({', '.join(f'{name}: {counts[name]} texts' for name in methods)})",
            expected="runs over the same prompts, or a file with --prompt and --method",
            fix="check that the runs use the same suite, or use fewer runs",
        )
    return [
        _shuffle(texts[one.pair, method], seed, one.pair, method)[0] for one in prompts for method in methods
    ]


def items_table(chosen: Sequence[ItemCandidate], task: AnnotationTask) -> pl.DataFrame:
    """The table of items: the selected texts and the task's attention checks.

    An item's id is a digest, so it reveals neither group, score nor method, and a check looks like any other
    item.
    """
    rows: list[dict[str, object]] = []
    for one in chosen:
        item = digest([one.method, one.pair, one.text_id, one.text], size=8)
        rows.append({**one._asdict(), "item_id": item, "is_check": False})
    for check in task.checks:
        item, expected = digest(["check", check.text], size=8), canonical_json(check.answers)
        rows.append({"item_id": item, "text": check.text, "is_check": True, "expected": expected})
    return pl.DataFrame(rows, schema=dict(ITEM_COLUMNS)).sort("item_id")


def _shuffle(texts: Sequence[ItemCandidate], seed: int, *key: str) -> list[ItemCandidate]:
    order = make_generator(seed, "study", *key).permutation(len(texts))
    return [texts[place] for place in order.tolist()]


class SelectionShortfall(NamedTuple):
    """A prompt with fewer texts of a label than requested."""

    prompt: str
    label: str
    found: int
    """Distinct texts with that label."""
    wanted: int
    of: int
    """All texts of the prompt."""

    @property
    def reason(self) -> str:
        """A description of the shortfall."""
        return (
            f"{self.prompt!r} has {self.found} distinct {self.label} texts among {self.of}, "
            f"{self.wanted} were requested"
        )


def select_texts(
    texts: pl.DataFrame, *, per_prompt: int = 3, seed: int = 0
) -> tuple[pl.DataFrame, tuple[SelectionShortfall, ...]]:
    """``per_prompt`` texts of each label for every prompt, drawn at random by seed, prompt and label.

    The input rows have ``id``, ``prompt``, ``text`` and ``sentiment``. Returns the drawn rows, prompt by
    prompt, and the shortfalls. Other prompts and the order of the texts do not affect the draw. A text that
    occurs several times for a prompt counts once. A prompt with too few texts contributes all it has.
    """
    # Sorted by text; of equal texts the first id is kept.
    key = ["prompt", "sentiment", "text"]
    ordered = texts.sort("text", "id").unique(key, keep="first", maintain_order=True)
    groups = ordered.group_by("prompt", "sentiment").agg("id")
    distinct = {(prompt, label): ids for prompt, label, ids in groups.iter_rows()}
    drawn: list[str] = []
    shortfalls: list[SelectionShortfall] = []
    for prompt, size in texts.group_by("prompt", maintain_order=True).len().iter_rows():
        for label in LABELS:
            ids = distinct.get((prompt, label), [])
            order = make_generator(seed, "selection", prompt, label).permutation(len(ids))
            drawn += [ids[place] for place in order[:per_prompt]]
            if len(ids) < per_prompt:
                shortfalls.append(SelectionShortfall(prompt, label, len(ids), per_prompt, size))
    by_prompt = pl.concat(texts.partition_by("prompt", maintain_order=True))
    return by_prompt.filter(pl.col("id").is_in(drawn)), tuple(shortfalls)


class SampledItems(NamedTuple):
    """The selected texts as a table, and the prompts with too few texts."""

    table: pl.DataFrame
    """``id, text`` (masked; all that annotators may see), then ``prompt, template, groups, sentiment,
    compound`` and the suite's properties of the prompt, such as ``context``."""
    shortfalls: tuple[SelectionShortfall, ...]
    path: Path


@checks_options
def sample_items(
    source: Path | str, *, progress: Progress = SILENT_PROGRESS, **options: Unpack[ItemOptions]
) -> SampledItems:
    """Select texts for annotation from a run, or from a file of samples, and write them as CSV.

    For every prompt, draws ``per_prompt`` texts that VADER labels positive and as many that it labels
    negative, by seed; each text is cut to one sentence and masked (Sheng et al. 2019, section 4). A file
    is read as by ``replay``, with the prompts of ``suite``.
    """
    return prepare_items(source, **options).run(progress)


@checks_options
def prepare_items(source: Path | str, **options: Unpack[ItemOptions]) -> PreparedJob[SampledItems]:
    """Read and check the texts, so that ``plan`` can be shown before ``run``."""
    path = Path(source)
    with run_errors(path):
        texts = list(
            read_run_texts(Run.open(path)) if is_run(path) else _read_samples(path, options["suite"])
        )
    cut = tuple((text_id, prompt, cut_first_sentence(text)) for text_id, prompt, text in texts if text)
    if not cut:
        raise InputError(
            f"{path} has no text that begins with a prompt of the suite",
            expected="a run folder, or samples that begin with their prompts",
            fix="name the suite the samples were written for with --suite",
        )
    fix = "remove the plug-in of that name"
    sentiment = create_text_metric("sentiment", {"cut": options["cut"]}, fix=fix)
    per_prompt, seed, out = options["per_prompt"], options["seed"], Path(options["out"])
    prompts = len({prompt.id for _, prompt, _ in cut})

    def work(progress: Progress) -> SampledItems:
        with progress.step("choosing", None):
            chosen, shortfalls = select_texts(_tabulate(cut, sentiment), per_prompt=per_prompt, seed=seed)
            meta = {text_id: prompt.meta for text_id, prompt, _ in cut}
            properties = pl.DataFrame([meta[text_id] for text_id in chosen["id"]], infer_schema_length=None)
            chosen = chosen.with_columns(properties.get_columns())
        write_text(out, spreadsheet_csv(chosen))
        return SampledItems(chosen, shortfalls, out)

    lines = (
        f"texts   {len(cut):,} of {prompts:,} prompts",
        f"choose  {per_prompt} positive and {per_prompt} negative per prompt by VADER: at most "
        f"{2 * per_prompt * prompts:,}, seed {seed}",
        f"file    {out}",
    )
    return PreparedJob(f"sample {path.name} for annotation", lines, work)


def _tabulate(texts: Sequence[tuple[str, Prompt, str]], sentiment: Metric) -> pl.DataFrame:
    """The texts as annotators will see them, with their sentiment."""
    shown = [_render(prompt, text, "xyz") for _, prompt, text in texts]
    scores = [row["compound"] for row in sentiment.score(shown)]
    rows = [
        {
            "id": text_id,
            "text": text.text.strip(),
            "prompt": prompt.text,
            "template": prompt.template_id,
            "groups": describe_groups(prompt),
            "sentiment": score.label,
            "compound": score.value,
        }
        for (text_id, prompt, _), text, score in zip(texts, shown, scores, strict=True)
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _read_samples(path: Path, suite: str) -> Iterator[tuple[str, Prompt, str]]:
    model = registry.create_model(f"replay:{path}")
    for prompt in registry.create_suite(suite).prompts():
        for sample in range(_MOST):
            (completion,) = model.generate([Request(prompt.id, prompt.text, (sample,))], GenerationSpec())
            if completion.failure == "not_in_file":
                break
            if completion.text and completion.text.strip():
                yield f"{prompt.id}:{sample}", prompt, completion.text
