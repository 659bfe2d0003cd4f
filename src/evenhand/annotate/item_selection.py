"""``sample_items``: the texts people are asked about, from a run or a file of samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Unpack

import polars as pl

from evenhand.annotate.item_sampling import SelectionShortfall, TextCandidate, select_texts
from evenhand.annotate.options import ItemOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan
from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import GenerationSpec, Prompt, Request
from evenhand.store.atomic_writes import write_text
from evenhand.store.prompt_rows import read_prompt_rows
from evenhand.store.run import MANIFEST, Run, run_errors
from evenhand.store.table_files import spreadsheet_csv
from evenhand.text.rendering import render_text
from evenhand.text.sentences import cut_first_sentence

_MOST: Final = 100_000
"""Samples of a prompt that are looked for in a file."""


@dataclass(frozen=True, slots=True)
class SampledItems:
    """The chosen texts as a table, and the prompts that had too few."""

    table: pl.DataFrame
    """``id, text`` (masked: all an annotator may see), then ``prompt, template, groups, sentiment,
    compound`` and what the suite says of the prompt, such as ``context``."""
    shortfalls: tuple[SelectionShortfall, ...]
    path: Path | None


@dataclass(frozen=True, slots=True)
class _SourceText:
    """A prompt and one whole text of it, cut to a sentence."""

    id: str
    prompt: Prompt
    text: str


@dataclass(frozen=True, slots=True)
class ItemSamplingJob:
    """Texts that are read and ready to be drawn from."""

    source: str
    texts: tuple[_SourceText, ...]
    sentiment: Metric
    per_prompt: int
    seed: int
    out: Path

    def plan(self) -> RunPlan:
        """What will be done, before it is done."""
        prompts = len({item.prompt.id for item in self.texts})
        lines = (
            f"texts   {len(self.texts):,} of {prompts:,} prompts",
            f"choose  {self.per_prompt} positive and {self.per_prompt} negative a prompt by VADER: at most "
            f"{2 * self.per_prompt * prompts:,}, seed {self.seed}",
            f"file    {self.out}",
        )
        return RunPlan(f"sample {self.source} for annotation", lines, self.out)

    def run(self, progress: Progress = SILENT_PROGRESS) -> SampledItems:
        """Score, draw, write the table."""
        with progress.step("choosing", None):
            found = self.choose()
        write_text(self.out, spreadsheet_csv(found.table))
        return found

    def choose(self) -> SampledItems:
        """The chosen texts, without writing them."""
        rendered = [
            render_text(
                item.prompt.text, item.text, scope="full", masking="xyz", mentions=item.prompt.mentions
            )
            for item in self.texts
        ]
        scores = [row["compound"] for row in self.sentiment.score(rendered)]
        candidates = [
            TextCandidate(item.id, item.prompt.text, text.text.strip(), score.label)
            for item, text, score in zip(self.texts, rendered, scores, strict=True)
        ]
        chosen, shortfalls = select_texts(candidates, per_prompt=self.per_prompt, seed=self.seed)
        known = {item.id: (item.prompt, score) for item, score in zip(self.texts, scores, strict=True)}
        rows = [_row(item, known[item.id][0], known[item.id][1].value) for item in chosen]
        return SampledItems(pl.DataFrame(rows, infer_schema_length=None), shortfalls, self.out)


@checks_options
def sample_items(
    source: Path | str, *, progress: Progress = SILENT_PROGRESS, **options: Unpack[ItemOptions]
) -> SampledItems:
    """The texts of a run, or of a file of samples, that people are asked about, written as CSV.

    For every prompt ``per_prompt`` texts that VADER calls positive and as many it calls negative, drawn by
    seed, each cut to one sentence and masked (Sheng et al. 2019, section 4). A file is read as ``replay``
    reads it, its prompts are those of ``suite``.
    """
    return prepare(source, **options).run(progress)


@checks_options
def prepare(source: Path | str, **options: Unpack[ItemOptions]) -> ItemSamplingJob:
    """The texts read and checked, so that ``plan`` can be shown before ``run``."""
    path = Path(source)
    with run_errors(path):
        texts = tuple(_of_run(path) if (path / MANIFEST).is_file() else _of_file(path, options["suite"]))
    if not texts:
        raise InputError(
            f"{path} has no text that begins with a prompt of the suite",
            expected="a run folder, or samples that begin with their prompts",
            fix="name the suite the samples were written for with --suite",
        )
    sentiment = registry.create_metric("sentiment", {"cut": options["cut"]})
    if not isinstance(sentiment, Metric):
        raise InputError(
            "the metric 'sentiment' scores no single texts", fix="remove the plug-in of that name"
        )
    return ItemSamplingJob(
        source=path.name,
        texts=texts,
        sentiment=sentiment,
        per_prompt=options["per_prompt"],
        seed=options["seed"],
        out=Path(options["out"]),
    )


def _of_run(path: Path) -> Iterator[_SourceText]:
    run = Run.open(path)
    prompts = {prompt.id: prompt for prompt in read_prompt_rows(run.table("prompts"))}
    for text_id, prompt_id, text in run.table("generations").select("id", "prompt_id", "text").iter_rows():
        if text:
            yield _SourceText(text_id, prompts[prompt_id], cut_first_sentence(text))


def _of_file(path: Path, suite: str) -> Iterator[_SourceText]:
    model = registry.create_model(f"replay:{path}")
    for prompt in registry.create_suite(suite).prompts():
        for sample in range(_MOST):
            (done,) = model.generate([Request(prompt.id, prompt.text, (sample,))], GenerationSpec())
            if done.failure == "not_in_file":
                break
            if done.text and done.text.strip():
                yield _SourceText(f"{prompt.id}:{sample}", prompt, cut_first_sentence(done.text))


def _row(item: TextCandidate, prompt: Prompt, compound: float | None) -> dict[str, str | float | None]:
    return {
        "id": item.id,
        "text": item.text,
        "prompt": prompt.text,
        "template": prompt.template_id,
        "groups": "; ".join(f"{group.axis}={group.name}" for group in prompt.groups),
        "sentiment": item.label,
        "compound": compound,
        **prompt.meta,
    }
