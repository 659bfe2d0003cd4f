"""What is claimed: every work with its rival and the bar, and where in a result the figure stands."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

RESULTS = Path(__file__).resolve().parent / "results"
"""The committed results: what a new run is compared with."""
REGRESSION = 0.2
"""Share of a committed ratio that may be lost before `make bench` fails."""

Machine = Literal["cpu", "gpu"]


@dataclass(frozen=True, slots=True)
class Bar:
    """One line of the table."""

    work: str
    against: str
    bar: float
    file: str
    """The result, without ``.json``."""
    path: Sequence[str]
    """Where its figure stands."""
    unit: str = "x"
    at_most: bool = False
    """Whether a smaller figure is the better one."""
    machine: Machine = "cpu"
    next_limit: str = ""
    """What stands in the way of the next gain."""

    def figure(self, found: Mapping[str, object]) -> float | None:
        """The figure in a result; None where it was not measured."""
        value: object = found
        for key in self.path:
            if not isinstance(value, dict) or key not in value:
                return None
            value = value[key]
        return float(value) if isinstance(value, int | float) else None

    def holds(self, figure: float) -> bool:
        return figure <= self.bar if self.at_most else figure >= self.bar

    def is_worse(self, figure: float, committed: float) -> bool:
        """Whether a ratio is lost; rates and seconds belong to a machine and are not compared."""
        if self.unit != "x":
            return False
        if self.at_most:
            return figure > committed * (1 + REGRESSION)
        return figure < committed * (1 - REGRESSION)


def _corpus(against: str, bar: float, path: str, clock: str = "cpu", **more: str) -> Bar:
    return Bar("corpus counts, 1 core", against, bar, "corpus", ("ratios", path, clock), **more)


def _part(part: str, against: str, clock: str = "cpu") -> tuple[str, ...]:
    return ("parts", part, "ratios", against, clock)


_ENCODER = (
    "matrix products of the encoder, four fifths of the time, at about 105 GFLOP/s a core; attention, a tenth"
)
_TABLE = (
    "finding the likeliest tokens and reading their vectors, half of what it adds; the climb, the other half"
)
_HEAD = (
    "the head's two products a step at about 85 GFLOP/s a core, and reading the followed tokens' vectors, "
    "two fifths of the climb each"
)
_PRODUCTS = (
    "the 15 steps, 0.4 and 0.8 ms; the model's own products take 2.7 of its 3.4 ms in float32, where they "
    "read their weights at an eighth of the device's bandwidth: were they faster, this ratio would be larger"
)
_CALIBRATED: tuple[tuple[str, Machine, str], ...] = (
    ("mitigation", "cpu", "1"),
    ("mitigation-gpu", "gpu", "1"),
    ("mitigation-gpu", "gpu", "32"),
)
_COSTS_ON_A_GPU = (
    ("mitigation-gpu", "top-k 40", (1.25, 1.4)),
    ("mitigation-gpu-whole", "whole vocabulary", (1.75, 1.9)),
)

BARS: tuple[Bar, ...] = (
    _corpus(
        "plain Python sets",
        50,
        "plain Python sets",
        next_limit="handling hits: the words alone are found at about 1 GB/s",
    ),
    _corpus(
        "`wc -w`, C.UTF-8",
        2.5,
        "wc -w",
        next_limit="handling hits; reading the file, which `wc` does too, would take a tenth more",
    ),
    _corpus("hyperscan through its Python package", 5, "hyperscan"),
    _corpus("the loop of the paper's Algorithm 1", 1000, "the paper's loop"),
    Bar("corpus counts, 2 workers", "1 worker", 1.6, "corpus", ("ratios", "one worker, by two", "wall")),
    Bar("corpus counts, memory a worker", "2 GB of input", 500, "corpus", ("peak_mib",), "MiB", True),
    Bar(
        "sentiment, bit-identical",
        "vaderSentiment 3.3.2",
        1.2,
        "sentiment",
        ("ratios", "vaderSentiment", "cpu"),
        next_limit="the package's rules: compiled they took a seventh of the time, of 0.7 % of an audit",
    ),
    Bar("sentiment", "nltk's VADER", 3.5, "sentiment", ("ratios", "nltk", "cpu")),
    Bar(
        "gender polarity",
        "cosine by word in a loop",
        8,
        "word_scores",
        _part("gender_polarity", "loop over words"),
        next_limit="splitting texts into words, which takes half of the time",
    ),
    Bar("norms", "a loop over words", 2.5, "word_scores", _part("norms", "loop over words")),
    Bar(
        "regard classifier",
        "a pipeline, one text at a time",
        4,
        "regard-cpu",
        ("ratio",),
        next_limit=_ENCODER,
    ),
    Bar(
        "regard, toxicity, emotion and ideology together",
        "pipelines, one text at a time, same weights",
        10,
        "classifiers",
        ("ratios", "pipelines, one text at a time", "wall"),
        next_limit=_ENCODER,
    ),
    Bar(
        "sampling, 30M parameters, 32 rows",
        "generate(), 1 row",
        10,
        "sampling-30m",
        ("ratios", "generate(), 1 row", "wall"),
    ),
    Bar(
        "sampling, 30M parameters, 32 rows",
        "generate(), 32 rows",
        1.4,
        "sampling-30m",
        ("ratios", "generate(), 32 rows", "wall"),
    ),
    Bar(
        "sampling, builtin, 32 rows",
        "generate(), 1 row",
        10,
        "sampling-builtin",
        ("ratios", "generate(), 1 row", "wall"),
        next_limit="matrix products",
    ),
    Bar(
        "sampling, builtin, 32 rows",
        "generate(), 32 rows",
        1.4,
        "sampling-builtin",
        ("ratios", "generate(), 32 rows", "wall"),
    ),
    Bar(
        "sampling, builtin as shipped (int8 weights, computed in float32), 32 rows",
        "generate(), 1 row",
        10,
        "sampling-shipped",
        ("ratios", "generate(), 1 row", "wall"),
    ),
    Bar(
        "sampling, builtin as shipped (int8 weights, computed in float32), 32 rows",
        "generate(), 32 rows, same weights",
        2,
        "sampling-shipped",
        ("ratios", "generate(), 32 rows", "wall"),
        next_limit="matrix products",
    ),
    Bar(
        "masked generation, 64 rows",
        "one prompt at a time",
        4,
        "masked-builtin",
        ("ratios", "plain, 1 row", "wall"),
    ),
    Bar(
        "probing, EEC in batches",
        "a pipeline, one text at a time",
        5,
        "probe",
        ("ratios", "pipeline, one by one", "wall"),
        next_limit=_ENCODER,
    ),
    *(
        Bar(
            f"calibration, {mode} mode, top-k 40, GPT-2's sizes, batch {rows}",
            "vanilla sampling",
            bar,
            "mitigation",
            ("parts", rows, "cost", mode, "wall"),
            at_most=True,
            next_limit=_TABLE if mode == "embedding" else _HEAD,
        )
        for mode, bar in (("embedding", 1.25), ("classifier", 1.4))
        for rows in ("1", "8", "32")
    ),
    *(
        Bar(
            f"calibration, {mode} mode, batch {rows}",
            "autograd over the whole vocabulary",
            6,
            file,
            ("parts", rows, "cheaper_than_autograd", mode, "wall"),
            machine=machine,
        )
        for file, machine, rows in _CALIBRATED
        for mode in ("embedding", "classifier")
    ),
    *(
        Bar(
            f"calibration, {mode} mode, {said}, GPT-2-medium's sizes in float32, batch 32",
            "vanilla sampling",
            bar,
            file,
            ("parts", "32", "cost", mode, "wall"),
            at_most=True,
            machine="gpu",
            next_limit=_PRODUCTS,
        )
        for file, said, bars in _COSTS_ON_A_GPU
        for mode, bar in zip(("embedding", "classifier"), bars, strict=True)
    ),
    Bar(
        "Wasserstein distance of 10^6 points each",
        "POT wasserstein_1d",
        8,
        "wasserstein",
        _part("equal", "POT wasserstein_1d", "wall"),
        next_limit="NumPy's sort of both samples",
    ),
    Bar(
        "cluster bootstrap, 10,000 resamples",
        "scipy.stats.bootstrap, gathering rows",
        20,
        "bootstrap",
        ("ratios", "scipy, gathering rows", "cpu"),
        next_limit="drawing random integers, as in NumPy",
    ),
    Bar(
        "cluster bootstrap, 10,000 resamples",
        "NumPy over cluster sums",
        1,
        "bootstrap",
        ("ratios", "NumPy cluster sums", "cpu"),
    ),
    Bar(
        "a BOLD audit of given texts, all embedded metrics",
        "vaderSentiment and four pipelines (`evaluate`), one text at a time",
        10,
        "audit",
        ("ratios", "one text at a time", "wall"),
        next_limit="matrix products of the encoder, about half of the CPU time; the rest is spread over "
        "attention, permutations, tables and pages",
    ),
    Bar(
        "a BOLD audit of given texts, all embedded metrics",
        "the same with LangFair for toxicity",
        10,
        "audit",
        ("ratios", "with LangFair", "wall"),
    ),
    Bar(
        "an endpoint with tiny answers, 2 cores, server included",
        "",
        1000,
        "endpoint",
        ("requests_per_second",),
        "requests/s",
        next_limit="httpx, 0.46 ms of CPU time a request; http.client alone would take 0.11",
    ),
    Bar("scoring 10^6 texts, memory", "", 4096, "growth", ("score_mib",), "MiB", True),
    Bar("report of 10^6 texts", "", 60, "growth", ("report_seconds",), "s", True),
    *(
        Bar(
            f"growth of `{command}` for 10 times as many texts",
            "10 times the time",
            1.3,
            "growth",
            ("growth", command),
            "of linear",
            True,
        )
        for command in ("score", "compare", "report")
    ),
    Bar(
        "masked generation, builtin, 64 rows",
        "one prompt at a time",
        20,
        "masked-gpu-builtin",
        ("ratios", "plain, 1 row", "wall"),
        machine="gpu",
    ),
    Bar(
        "masked generation, BERT-large in bfloat16, 64 rows",
        "one prompt at a time",
        20,
        "masked-gpu-bert-large-bf16",
        ("ratios", "plain, 1 row", "wall"),
        machine="gpu",
    ),
    Bar(
        "regard classifier",
        "a pipeline, one text at a time",
        10,
        "regard-gpu",
        ("ratio",),
        machine="gpu",
    ),
    Bar(
        "an answer of 50 people at once, 5 a second, on the disk",
        "the 95th of 100",
        200,
        "annotate",
        ("answer_ms", "p95"),
        "ms",
        at_most=True,
    ),
)


def read(folder: Path, name: str) -> dict[str, object] | None:
    """A result; None where it was not measured."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
