"""The study's data: annotations in three parts and GPT-2's samples, in the layout of audited texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import InputError
from evenhand.core.records import Mention
from evenhand.papers.replicate import read_texts
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
"""Sources of Figure 2 and their file names next to the annotations; LM-1B's samples were not released."""
ANNOTATED: Final = "annotated"
"""The source of human-labelled texts: row (3) of Figure 2."""
COLUMNS: Final = (
    *("source", "context", "axis", "group", "cluster", "prompt", "text"),
    *("regard", "sentiment", "regard_value", "sentiment_value"),
)
_MASKED: Final = "gpt2_samples.XYZ.tsv"
_ANNOTATIONS: Final = [f"{metric}_{part}.tsv" for metric in METRICS for part in PARTS]
_CODES: Final = {"-1": "negative", "0": "neutral", "1": "positive"}


@dataclass(frozen=True, slots=True)
class RegardRelease:
    """The folder of the released files."""

    folder: Path

    @classmethod
    def find(cls, data: Path) -> RegardRelease:
        """Find the release in a folder or its subfolder ``regard``; the first missing file raises an error.

        Every file is read once, so that a damaged one is reported before anything is computed.
        """
        folder = data / "regard" if (data / "regard").is_dir() else data
        for name in _ANNOTATIONS:
            if not (folder / name).is_file():
                raise InputError(
                    f"{folder} has no {name}",
                    expected="the folder of the study's files: regard_train.tsv, sentiment_train.tsv ...",
                    fix="pass it with --data; the study's authors publish the files as `nlg-bias`",
                )
        release = cls(folder)
        for metric in METRICS:
            release.annotations(metric)
        release.pairs()
        return release

    def annotations(self, metric: str) -> pl.DataFrame:
        """``part, label, text`` of every annotated text, in file order."""
        rows = []
        for part in PARTS:
            for line in filter(None, read_lines(self.folder / f"{metric}_{part}.tsv")):
                label, _, text = line.partition("\t")
                if label not in _CODES or not text.strip():
                    raise InputError(
                        f"{metric}_{part}.tsv has the label {label!r} and the text {text!r}",
                        expected="-1, 0 or 1, a tab, the text",
                        fix="download the file again",
                    )
                rows.append((part, _CODES[label], text))
        return pl.DataFrame(rows, schema=dict.fromkeys(("part", "label", "text"), pl.String()), orient="row")

    def samples(self) -> dict[str, Path]:
        """The existing sample files, by source name."""
        paths = {source: self.folder / name for source, name in SAMPLES.items()}
        return {source: path for source, path in paths.items() if path.is_file()}

    def pairs(self) -> list[tuple[str, str]]:
        """GPT-2's samples, raw and as masked in the release; empty if either file is missing."""
        raw, masked = self.folder / SAMPLES[GPT2_SAMPLES], self.folder / _MASKED
        if not raw.is_file() or not masked.is_file():
            return []
        lines, masks = list(read_lines(raw)), list(read_lines(masked))
        if len(lines) != len(masks):
            raise InputError(
                f"{raw.name} has {len(lines):,} lines and {_MASKED} {len(masks):,}",
                expected="two files of the same texts, line by line",
                fix="download both files again, or remove the masked one",
            )
        return list(zip(lines, masks, strict=True))

    def identity(self) -> dict[str, Json]:
        """The digests of the files."""
        paths = [*(self.folder / name for name in _ANNOTATIONS), *self.samples().values()]
        return {path.name: file_digest(path) for path in paths}


def find_origins(pairs: Sequence[tuple[str, str]], suite: RegardSuite) -> dict[str, list[str]]:
    """For each masked text, the ids of the prompts it was sampled from."""
    ids = {prompt.text: prompt.id for prompt in suite.prompts()}
    origins: dict[str, dict[str, None]] = defaultdict(dict)
    for raw, masked in pairs:
        origins[masked] |= {ids[text]: None for text in ids if raw == text or raw.startswith(f"{text} ")}
    return {text: list(prompts) for text, prompts in origins.items()}


def mask_differences(pairs: Sequence[tuple[str, str]], suite: RegardSuite) -> pl.DataFrame:
    """The lines on which our masking differs from the release's: ``line, released, ours``."""
    mentions = {prompt.mentions[0].text: prompt.mentions for prompt in suite.prompts()}
    rows = []
    for number, (raw, released) in enumerate(pairs, start=1):
        own = next((mentions[text] for text in mentions if raw.startswith(f"{text} ")), ())
        ours = mask_mentions(raw, own).text
        if ours != released:
            rows.append((number, released, ours))
    schema = {"line": pl.Int64(), "released": pl.String(), "ours": pl.String()}
    return pl.DataFrame(rows, schema=schema, orient="row")


def read_scored_texts(run: Run, source: str) -> pl.DataFrame:
    """The masked texts of an audit, with the labels and values of both metrics."""
    texts = read_texts(run, source, {("regard", "regard"): "regard", ("sentiment", "compound"): "sentiment"})
    masked = [
        text
        and render_text(
            prompt, text, scope="full", masking="xyz", mentions=[Mention(**mention) for mention in mentions]
        ).text
        for prompt, text, mentions in texts.select("prompt", "text", "mentions").iter_rows()
    ]
    meta = pl.col("meta").str.json_decode(pl.Struct({STRATUM: pl.String}))
    context = meta.struct.field(STRATUM).fill_null("")
    return texts.with_columns(pl.Series("text", masked, pl.String), context=context).select(COLUMNS)


def read_annotated_texts(
    published: RegardRelease, suite: RegardSuite, origins: Mapping[str, Sequence[str]]
) -> pl.DataFrame:
    """The annotated texts that come from exactly one demographic, with human labels."""
    labels = {
        metric: dict(published.annotations(metric).select("text", "label").iter_rows()) for metric in METRICS
    }
    rows = []
    for prompt in suite.prompts():
        (group,) = prompt.groups
        cells = (ANNOTATED, prompt.meta[STRATUM], group.axis, group.name, prompt.cluster, prompt.text)
        for text in labels["regard"] | labels["sentiment"]:
            if origins.get(text) == [prompt.id]:
                known = [labels[metric].get(text) for metric in METRICS]
                values = [label and float(LABELS.index(label) - 1) for label in known]
                rows.append((*cells, text, *known, *values))
    kinds = {name: pl.Float64() if name.endswith("_value") else pl.String() for name in COLUMNS}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def count_unplaced(
    published: RegardRelease, origins: Mapping[str, Sequence[str]], metric: str
) -> dict[str, int]:
    """The number of annotated texts that are ``ambiguous`` (samples of several prompts) or ``unmatched``."""
    counts = [len(origins.get(text, ())) for text in published.annotations(metric)["text"]]
    ambiguous = sum(count > 1 for count in counts)
    return {"texts": len(counts), "ambiguous": ambiguous, "unmatched": counts.count(0)}
