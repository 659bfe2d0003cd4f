"""``sample_items``: the texts people are asked about, from a run or a file of samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Unpack

import polars as pl

from evenhand.api.parts import SILENT, Plan
from evenhand.api.people_options import ItemOptions
from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.options import checks_options
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import GenerationSpec, Prompt, Request
from evenhand.pipeline.selection import Candidate, Shortfall, select
from evenhand.pipeline.tables import prompts_from_table
from evenhand.store.atomic import write_text
from evenhand.store.run import MANIFEST, Run, naming_run
from evenhand.store.spreadsheets import spreadsheet_csv
from evenhand.text.rendering import render
from evenhand.text.sentences import cut_first_sentence

_MOST: Final = 100_000
"""Samples of a prompt that are looked for in a file."""


@dataclass(frozen=True, slots=True)
class Items:
    """The chosen texts as a table, and the prompts that had too few."""

    table: pl.DataFrame
    """``id, text`` (masked: all an annotator may see), then ``prompt, template, groups, sentiment,
    compound`` and what the suite says of the prompt, such as ``context``."""
    shortfalls: tuple[Shortfall, ...]
    path: Path | None


@dataclass(frozen=True, slots=True)
class _Written:
    """A prompt and one whole text of it, cut to a sentence."""

    id: str
    prompt: Prompt
    text: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """Texts that are read and ready to be drawn from."""

    source: str
    texts: tuple[_Written, ...]
    sentiment: Metric
    per_prompt: int
    seed: int
    out: Path

    def plan(self) -> Plan:
        """What will be done, before it is done."""
        prompts = len({item.prompt.id for item in self.texts})
        lines = (
            f"texts   {len(self.texts):,} of {prompts:,} prompts",
            f"choose  {self.per_prompt} positive and {self.per_prompt} negative a prompt by VADER: at most "
            f"{2 * self.per_prompt * prompts:,}, seed {self.seed}",
            f"file    {self.out}",
        )
        return Plan(f"sample {self.source} for annotation", lines, self.out)

    def run(self, progress: Progress = SILENT) -> Items:
        """Score, draw, write the table."""
        with progress.step("choosing", None):
            found = self.choose()
        write_text(self.out, spreadsheet_csv(found.table))
        return found

    def choose(self) -> Items:
        """The chosen texts, without writing them."""
        rendered = [
            render(item.prompt.text, item.text, scope="full", masking="xyz", mentions=item.prompt.mentions)
            for item in self.texts
        ]
        scores = [row["compound"] for row in self.sentiment.score(rendered)]
        candidates = [
            Candidate(item.id, item.prompt.text, text.text.strip(), score.label)
            for item, text, score in zip(self.texts, rendered, scores, strict=True)
        ]
        chosen, shortfalls = select(candidates, per_prompt=self.per_prompt, seed=self.seed)
        known = {item.id: (item.prompt, score) for item, score in zip(self.texts, scores, strict=True)}
        rows = [_row(item, known[item.id][0], known[item.id][1].value) for item in chosen]
        return Items(pl.DataFrame(rows, infer_schema_length=None), shortfalls, self.out)


@checks_options
def sample_items(source: Path | str, *, progress: Progress = SILENT, **options: Unpack[ItemOptions]) -> Items:
    """The texts of a run, or of a file of samples, that people are asked about, written as CSV.

    For every prompt ``per_prompt`` texts that VADER calls positive and as many it calls negative, drawn by
    seed, each cut to one sentence and masked (Sheng et al. 2019, section 4). A file is read as ``replay``
    reads it, its prompts are those of ``suite``.
    """
    return prepare(source, **options).run(progress)


@checks_options
def prepare(source: Path | str, **options: Unpack[ItemOptions]) -> Sampling:
    """The texts read and checked, so that ``plan`` can be shown before ``run``."""
    path = Path(source)
    with naming_run(path):
        texts = tuple(_of_run(path) if (path / MANIFEST).is_file() else _of_file(path, options["suite"]))
    if not texts:
        raise InputError(
            f"{path} has no text that begins with a prompt of the suite",
            accepted="a run folder, or samples that begin with their prompts",
            todo="name the suite the samples were written for with --suite",
        )
    sentiment = registry.metric("sentiment", {"cut": options["cut"]})
    if not isinstance(sentiment, Metric):
        raise InputError(
            "the metric 'sentiment' scores no single texts", todo="remove the plug-in of that name"
        )
    return Sampling(
        source=path.name,
        texts=texts,
        sentiment=sentiment,
        per_prompt=options["per_prompt"],
        seed=options["seed"],
        out=Path(options["out"]),
    )


def _of_run(path: Path) -> Iterator[_Written]:
    run = Run.open(path)
    prompts = {prompt.id: prompt for prompt in prompts_from_table(run.table("prompts"))}
    for text_id, prompt_id, text in run.table("generations").select("id", "prompt_id", "text").iter_rows():
        if text:
            yield _Written(text_id, prompts[prompt_id], cut_first_sentence(text))


def _of_file(path: Path, suite: str) -> Iterator[_Written]:
    model = registry.model(f"replay:{path}")
    for prompt in registry.suite(suite).prompts():
        for sample in range(_MOST):
            (done,) = model.generate([Request(prompt.id, prompt.text, (sample,))], GenerationSpec())
            if done.failure == "not_in_file":
                break
            if done.text and done.text.strip():
                yield _Written(f"{prompt.id}:{sample}", prompt, cut_first_sentence(done.text))


def _row(item: Candidate, prompt: Prompt, compound: float | None) -> dict[str, str | float | None]:
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
