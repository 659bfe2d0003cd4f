"""The data of the study: annotations in three parts and GPT-2's samples, as audited texts are laid out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import InputError
from evenhand.core.records import Prompt
from evenhand.store.prompt_rows import read_prompt_rows
from evenhand.store.run import Run
from evenhand.store.table_files import read_lines
from evenhand.suites.regard import STRATUM, RegardSuite
from evenhand.text.rendering import mask_mentions, render_text

CITATION: Final = (
    "Sheng, Chang, Natarajan, Peng. The Woman Worked as a Babysitter: On Biases in Language Generation. "
    "EMNLP-IJCNLP 2019."
)
PARTS: Final = ("train", "dev", "test")
METRICS: Final = ("regard", "sentiment")
LABELS: Final = ("negative", "neutral", "positive")
GPT2_SAMPLES: Final = "GPT-2 samples"
LM1B_SAMPLES: Final = "LM-1B samples"
SAMPLES: Final = {GPT2_SAMPLES: "gpt2_samples.tsv", LM1B_SAMPLES: "lm1b_samples.tsv"}
"""Sources of Figure 2 by the names their files have beside the annotations; LM-1B's were not released."""
_MASKED: Final = "gpt2_samples.XYZ.tsv"
_CODES: Final = {"-1": "negative", "0": "neutral", "1": "positive"}


@dataclass(frozen=True, slots=True)
class RegardRelease:
    """The folder of the released files."""

    folder: Path

    @classmethod
    def find(cls, data: Path) -> RegardRelease:
        """The release in a folder, or in its folder ``regard``; an error names the first file it lacks."""
        folder = data / "regard" if (data / "regard").is_dir() else data
        for name in (f"{metric}_{part}.tsv" for metric in METRICS for part in PARTS):
            if not (folder / name).is_file():
                raise InputError(
                    f"{folder} has no {name}",
                    expected="the folder of the study's files: regard_train.tsv, sentiment_train.tsv ...",
                    fix="name it with --data; the study's authors publish the files as `nlg-bias`",
                )
        return cls(folder)

    def check(self) -> None:
        """Read every file once, so that a damaged one is reported before anything is computed."""
        for metric in METRICS:
            self.annotations(metric)
        self.pairs()

    def annotations(self, metric: str) -> pl.DataFrame:
        """``part, label, text`` of every annotated text, in the files' order."""
        rows = []
        for part in PARTS:
            for line in filter(None, read_lines(self.folder / f"{metric}_{part}.tsv")):
                label, _, text = line.partition("\t")
                if label not in _CODES or not text.strip():
                    raise InputError(
                        f"{metric}_{part}.tsv has the label {label!r} and the text {text!r}",
                        expected="-1, 0 or 1, a tab, the text",
                        fix="get the file again",
                    )
                rows.append((part, _CODES[label], text))
        return pl.DataFrame(rows, schema=dict.fromkeys(("part", "label", "text"), pl.String()), orient="row")

    def samples(self) -> dict[str, Path]:
        """The files of samples that are there, by the name of their source."""
        paths = {source: self.folder / name for source, name in SAMPLES.items()}
        return {source: path for source, path in paths.items() if path.is_file()}

    def pairs(self) -> list[tuple[str, str]]:
        """GPT-2's samples as written and as the release masks them; empty where either file is missing."""
        raw, masked = self.folder / SAMPLES[GPT2_SAMPLES], self.folder / _MASKED
        if not raw.is_file() or not masked.is_file():
            return []
        lines, masks = list(read_lines(raw)), list(read_lines(masked))
        if len(lines) != len(masks):
            raise InputError(
                f"{raw.name} has {len(lines):,} lines and {_MASKED} {len(masks):,}",
                expected="two files of the same texts, line by line",
                fix="get both files again, or leave the masked one out",
            )
        return list(zip(lines, masks, strict=True))

    def identity(self) -> dict[str, Json]:
        """The digests of the files."""
        names = [f"{metric}_{part}.tsv" for metric in METRICS for part in PARTS]
        paths = [*(self.folder / name for name in names), *self.samples().values()]
        return {path.name: file_digest(path) for path in paths}


@dataclass(frozen=True, slots=True)
class PromptOrigins:
    """Which prompts a masked text can have come from."""

    prompts: Mapping[str, Sequence[Prompt]]
    """The text as the release masks it, to the prompts whose samples it is among."""

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]], suite: RegardSuite) -> PromptOrigins:
        """From the raw twin of every masked line."""
        by_text = {prompt.text: prompt for prompt in suite.prompts()}
        origins: dict[str, dict[str, Prompt]] = defaultdict(dict)
        for raw, masked in pairs:
            for text, prompt in by_text.items():
                if raw.startswith(f"{text} ") or raw == text:
                    origins[masked][prompt.id] = prompt
        return cls({text: tuple(prompts.values()) for text, prompts in origins.items()})

    def find_prompt(self, masked: str) -> Prompt | None:
        """The prompt a text came from; None if it is among the samples of no prompt, or of several."""
        prompts = self.prompts.get(masked, ())
        return prompts[0] if len(prompts) == 1 else None


def mask_differences(pairs: Sequence[tuple[str, str]], suite: RegardSuite) -> pl.DataFrame:
    """The lines on which our masks differ from the release's: ``line, released, ours``."""
    mentions = {prompt.mentions[0].text: prompt.mentions for prompt in suite.prompts()}
    rows = []
    for number, (raw, released) in enumerate(pairs, start=1):
        own = next((mentions[text] for text in mentions if raw.startswith(f"{text} ")), ())
        ours = mask_mentions(raw, own).text
        if ours != released:
            rows.append((number, released, ours))
    schema = {"line": pl.Int64(), "released": pl.String(), "ours": pl.String()}
    return pl.DataFrame(rows, schema=schema, orient="row")


ANNOTATED: Final = "annotated"
"""The source of texts whose labels people gave: row (3) of Figure 2."""
_PROMPT_COLUMNS: Final = ("context", "axis", "group", "cluster", "prompt")
COLUMNS: Final = {
    **dict.fromkeys(("source", *_PROMPT_COLUMNS, "text", "regard", "sentiment"), pl.String()),
    **dict.fromkeys(("regard_value", "sentiment_value"), pl.Float64()),
}
_OUTPUTS: Final = {"regard": "regard", "sentiment": "compound"}


def read_scored_texts(run: Run, source: str) -> pl.DataFrame:
    """The texts of an audit, masked, with the label and value of both metrics."""
    prompts = {prompt.id: prompt for prompt in read_prompt_rows(run.table("prompts"))}
    rows = []
    for text_id, prompt_id, text in run.table("generations").select("id", "prompt_id", "text").iter_rows():
        prompt = prompts[prompt_id]
        if text:
            text = render_text(prompt.text, text, scope="full", masking="xyz", mentions=prompt.mentions).text
        rows += [
            {"text_id": text_id, "source": source, **cells, "text": text} for cells in _prompt_cells(prompt)
        ]
    texts, scores = pl.DataFrame(rows, infer_schema_length=None), run.table("scores")
    for metric, output in _OUTPUTS.items():
        labels = scores.filter((pl.col("metric") == metric) & (pl.col("output") == output)).select(
            "text_id", pl.col("label").alias(metric), pl.col("value").alias(f"{metric}_value")
        )
        texts = texts.join(labels, on="text_id", how="left", maintain_order="left")
    return texts.select(pl.col(name).cast(kind) for name, kind in COLUMNS.items())


def _prompt_cells(prompt: Prompt) -> list[dict[str, str]]:
    """The cells of a prompt's texts, for each of its groups."""
    context = prompt.meta.get(STRATUM, "")
    return [
        dict(
            zip(
                _PROMPT_COLUMNS,
                (context, group.axis, group.name, prompt.cluster, prompt.text),
                strict=True,
            )
        )
        for group in prompt.groups
    ]


def read_annotated_texts(
    published: RegardRelease, suite: RegardSuite, demographics: PromptOrigins
) -> pl.DataFrame:
    """The annotated texts that came from one demographic alone, with people's labels."""
    labels = {
        metric: {text: label for _, label, text in published.annotations(metric).iter_rows()}
        for metric in METRICS
    }
    texts = dict.fromkeys(text for of in labels.values() for text in of)
    origins = [(prompt, text) for text in texts if (prompt := demographics.find_prompt(text)) is not None]
    order = {prompt.id: place for place, prompt in enumerate(suite.prompts())}
    rows = []
    for prompt, text in sorted(origins, key=lambda pair: order[pair[0].id]):
        row = {"source": ANNOTATED, **_prompt_cells(prompt)[0], "text": text}
        for metric in METRICS:
            label = labels[metric].get(text)
            row |= {metric: label, f"{metric}_value": label and float(LABELS.index(label) - 1)}
        rows.append(row)
    return pl.DataFrame(rows, schema=COLUMNS, infer_schema_length=None)


def count_unplaced(published: RegardRelease, demographics: PromptOrigins, metric: str) -> dict[str, int]:
    """How many annotated texts are ``ambiguous`` (samples of several prompts) or ``unmatched``."""
    texts = published.annotations(metric)["text"]
    origins = [len(demographics.prompts.get(text, ())) for text in texts]
    return {
        "texts": len(origins),
        "ambiguous": sum(count > 1 for count in origins),
        "unmatched": origins.count(0),
    }
