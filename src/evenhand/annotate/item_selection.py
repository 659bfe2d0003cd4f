"""``sample_items``: selects texts for annotation from a run or a file of samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Unpack

import polars as pl

from evenhand.annotate.jobs import PreparedJob
from evenhand.annotate.options import ItemOptions
from evenhand.annotate.study_creation import create_text_metric, describe_groups, is_run, read_run_texts
from evenhand.audits.run_setup import SILENT_PROGRESS
from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import GenerationSpec, Prompt, Request
from evenhand.core.seeds import make_generator
from evenhand.store.atomic_writes import write_text
from evenhand.store.run import Run, run_errors
from evenhand.store.table_files import spreadsheet_csv
from evenhand.text.rendering import render_text
from evenhand.text.sentences import cut_first_sentence

LABELS: Final = ("positive", "negative")
"""Labels drawn for every prompt (Sheng et al. 2019, section 4): sentiment only diversifies the texts."""
_MOST: Final = 100_000
"""Maximum number of samples per prompt to look for in a file."""


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
    if per_prompt < 1:
        raise InputError(
            f"{per_prompt} texts per prompt and label", expected="1 or more", fix="give --per-prompt a number"
        )
    # Sorted by text; of equal texts the first id is kept.
    ordered = texts.sort("text", "id").unique(
        ["prompt", "sentiment", "text"], keep="first", maintain_order=True
    )
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
    return prepare(source, **options).run(progress)


@checks_options
def prepare(source: Path | str, **options: Unpack[ItemOptions]) -> PreparedJob[SampledItems]:
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
    shown = [
        render_text(prompt.text, text, scope="full", masking="xyz", mentions=prompt.mentions)
        for _, prompt, text in texts
    ]
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
