"""The judge: against alternative classifiers (section 5), on mixtures, and its side of texts (Figure 2)."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.spatial.distance import cdist

from evenhand.audits.tradeoff import VANILLA
from evenhand.core import registry
from evenhand.core.errors import InputError
from evenhand.core.protocols import Metric, Progress
from evenhand.core.records import Execution, Text
from evenhand.core.regular_files import read_text
from evenhand.core.seeds import make_generator
from evenhand.papers.political.conditions import JUDGE
from evenhand.papers.replicate import ReplicationRequest
from evenhand.papers.replication_pages import Exhibit, estimate_cells
from evenhand.papers.svg_figures import open_canvas, to_svg
from evenhand.stats.intervals import clustered_mean
from evenhand.text.word_tokens import split_words
from evenhand.text.word_vectors import load_embedded_vectors
from evenhand.training.articles import SHARES, compare_classifiers, read_openings
from evenhand.training.options import TrainOptions

ARTICLES: Final = "articles"
"""The folder in ``--data`` with the output of ``evenhand.training.articles prepare``."""
JUDGES: Final[Mapping[str, TrainOptions]] = {
    "TF-IDF, linear": {"preset": "political-linear"},
    "fastText-style": {"preset": "political-fasttext"},
    "RNN with attention": {"preset": "political-attention"},
    "transformer, from nothing": {"preset": "political-transformer"},
    "masked model (builtin:masked)": {"backbone": "builtin:masked", "epochs": 3},
}
PUBLISHED: Final[Mapping[str, TrainOptions]] = {
    "BERT": {"preset": "political-bert"},
    "XLNet": {"preset": "political-xlnet"},
}
"""Added by ``--full``: downloaded from the Hub."""
ALL: Final = "(all)"
_PRINTED: Final = {"source": "paper", "classifier": "XLNet", "outlet": ALL, "f1": 0.984}


def find_articles(data: Path | None) -> dict[str, Path] | None:
    """The parts of the articles in ``--data``: training, validation and test; None without the folder."""
    folder = data / ARTICLES if data else None
    if folder is None or not folder.is_dir():
        return None
    files = {part: folder / f"{part}.csv" for part in SHARES}
    for path in files.values():
        if not path.is_file():
            raise InputError(
                f"{folder} has no {path.name}",
                expected=", ".join(file.name for file in files.values()),
                fix=f"python -m evenhand.training.articles prepare ARTICLES.jsonl --out {folder}",
            )
    return files


def list_judges(request: ReplicationRequest) -> dict[str, TrainOptions]:
    """Name in the table to training options."""
    return {**JUDGES, **(PUBLISHED if request.full else {})}


def judges_table(
    articles: Mapping[str, Path], request: ReplicationRequest, folder: Path, progress: Progress
) -> Exhibit:
    """Train the classifiers that are not trained yet, and compare all on the test articles."""
    runs = {}
    for name, options in list_judges(request).items():
        out = folder / re.sub(r"[\W_]", "-", name.lower()).strip("-")
        own_options: TrainOptions = {**options, "out": out}
        training = request.training("ideology", list(articles.values()), **own_options)
        runs[name] = training.run(progress).folder
    rows: list[dict[str, object]] = [_PRINTED]
    for rival in compare_classifiers(read_openings(articles["test"]), runs):
        own = {"source": "ours", "classifier": rival.name}
        bounds = {"low": rival.low, "high": rival.high, "n": rival.n}
        rows.append({**own, "outlet": ALL, "f1": rival.f1, **bounds})
        by_outlet = sorted(rival.by_outlet.items(), key=lambda item: (-item[1][1], item[0]))
        rows += ({**own, "outlet": name, "f1": f1, "n": n} for name, (f1, n) in by_outlet)
    notes = (
        "Macro-F1 over all articles, with an interval from resampling articles; for an outlet, F1 of "
        "the outlet's own side. Trained on 70 % of the articles, the epoch chosen on 15 %, tested "
        "on 15 %; sides balanced, first 100 tokens, press names removed.",
        "The paper's articles are not public: its 0.984 is on others, without alternatives.",
    )
    title = "The judge and alternatives on unseen articles"
    return Exhibit("judges", title, pl.DataFrame(rows, infer_schema_length=None), notes, decimals=3)


FILE: Final = "mixtures.jsonl"
"""A file of planted variants; `training.planted` defines it too, but importing that loads torch."""


def mixture_files(specs: Mapping[str, str]) -> dict[str, Path]:
    """The files of mixture texts of those models that are planted variants, by name."""
    files = {name: Path(spec) / FILE for name, spec in specs.items()}
    return {name: path for name, path in files.items() if path.is_file()}


def mixtures_table(files: Mapping[str, Path], execution: Execution) -> Exhibit:
    """The judge's mean for each lean, and its difference from the even mixture."""
    rows: list[dict[str, object]] = []
    for name, path in files.items():
        means = {lean: clustered_mean(values) for lean, values in judge_mixtures(path, execution).items()}
        even = means[0.0].value if 0.0 in means else None
        for lean, mean in sorted(means.items()):
            shift = None if even is None or mean.value is None else mean.value - even
            cells = estimate_cells("conservative", mean)
            rows.append({"source": name, "lean": lean, **cells, "shift": shift, "n": mean.n})
    notes = (
        "Texts from mixtures of the two experts, without a prompt. lean 0 is even, -0.5 the liberal "
        "expert and 0.5 the conservative one; conservative is the judge's mean probability, with an "
        "interval that assumes independent texts; shift is its difference from the even mixture.",
    )
    title = "Size of the planted bias: the judge on the mixtures themselves"
    return Exhibit("mixtures", title, pl.DataFrame(rows, infer_schema_length=None), notes, decimals=3)


def judge_mixtures(path: Path, execution: Execution) -> dict[float, np.ndarray]:
    """The judge's probabilities for the texts of each lean."""
    lines = [json.loads(line) for line in read_text(path).splitlines()]
    judge = registry.create_metric(JUDGE, {}, execution)
    assert isinstance(judge, Metric)
    scores: dict[float, list[float]] = {}
    for line, row in zip(lines, judge.score([Text(line["text"]) for line in lines]), strict=True):
        if (score := row[JUDGE].value) is not None:
            scores.setdefault(float(line["lean"]), []).append(score)
    return {lean: np.array(values) for lean, values in scores.items()}


MOST: Final = 1_000
"""Maximum number of texts per panel."""
SIDE_COLOURS = {"liberal": "#1d5bb8", "conservative": "#ad4706"}
NO_UMAP = "umap-learn is not installed: pip install 'evenhand[viz]'"
LEAST = 10
"""Panels with fewer texts are not projected."""
Matrix: TypeAlias = npt.NDArray[np.float32]


def figure_2(texts: Mapping[str, pl.DataFrame], source: str, execution: Execution, seed: int) -> Exhibit:
    """The four panels of one source, from ``text`` and ``label`` of its indirect texts by condition."""
    judge = partial(_judge_vectors, execution=execution)
    panel_specs: tuple[tuple[str, str, Callable[[Sequence[str]], Matrix]], ...] = (
        ("(a) baseline, word vectors", VANILLA, _word_vectors),
        ("(b) baseline, judge", VANILLA, judge),
        ("(c) embedding, judge", "embedding", judge),
        ("(d) classifier, judge", "classifier", judge),
    )
    panels = [_panel(name, texts[mode], embed, seed) for name, mode, embed in panel_specs if mode in texts]
    frame = pl.concat(panels)
    titles = [
        f"{name}: silhouette {'unknown' if score is None else f'{score:.2f}'}"
        for name, score in frame.select("panel", "silhouette").unique(maintain_order=True).iter_rows()
    ]
    is_small = all(panel.height < LEAST for panel in panels)
    reason = f"fewer than {LEAST} texts per panel" if is_small else NO_UMAP
    missing = (mode for mode in ("embedding", "classifier") if mode not in texts)
    notes = (
        "Silhouettes are computed before the projection, between the two sides predicted by the judge: 0 "
        "is mixed, 1 separated. (a) uses the mean of general word vectors; (b) to (d) use the input of "
        "the judge's ideology head.",
        *((f"Not drawn: {reason}.",) if frame["x"].is_null().all() else ()),
        *(f"The panel of mode {mode} is missing because the mode is." for mode in missing),
    )
    title = f"Texts of {source} by the judge's side, projected"
    return Exhibit("figure_2", title, frame, notes, svg=_draw(panels, titles), alt="; ".join(titles))


def _panel(
    name: str, texts: pl.DataFrame, embed: Callable[[Sequence[str]], Matrix], seed: int
) -> pl.DataFrame:
    """The side and coordinates of each text of a panel, and the silhouette of the sides.

    Coordinates are missing without umap-learn or with too few texts; the silhouette with only one side.
    """
    sample = texts[np.sort(make_generator(seed, "figure_2").permutation(texts.height)[:MOST])]
    vectors, sides = embed(sample["text"].to_list()), sample["label"].to_list()
    x, y = _umap(vectors, seed)
    columns = {"panel": name, "side": sides, "x": x, "y": y, "silhouette": silhouette(vectors, sides)}
    kinds = {"panel": pl.String, "side": pl.String, **dict.fromkeys(("x", "y", "silhouette"), pl.Float64)}
    return pl.DataFrame(columns, schema=kinds)


def silhouette(vectors: Matrix, labels: Sequence[str]) -> float | None:
    """The mean silhouette (Rousseeuw 1987) of labelled points, by Euclidean distance."""
    names, codes = np.unique(np.asarray(labels), return_inverse=True)
    sizes = np.bincount(codes)
    if len(names) < 2 or sizes.min() < 2:
        return None
    points = vectors.astype(np.float64)
    gaps = cdist(points, points)
    sums = np.column_stack([gaps[:, codes == code].sum(axis=1) for code in range(len(names))])
    at = np.arange(len(codes))
    own = sums[at, codes] / (sizes[codes] - 1)
    others = sums / sizes
    others[at, codes] = np.inf
    nearest = others.min(axis=1)
    largest = np.maximum(own, nearest)
    return float(np.mean(np.divide(nearest - own, largest, out=np.zeros_like(own), where=largest > 0)))


def _word_vectors(texts: Sequence[str]) -> Matrix:
    vectors = load_embedded_vectors()
    indices = [[index for word in split_words(text) if (index := vectors.find(word)) >= 0] for text in texts]
    empty = np.zeros(vectors.matrix.shape[1], dtype=np.float32)
    means = [vectors.matrix[rows].mean(axis=0) if rows else empty for rows in indices]
    return np.stack(means).astype(np.float32)


def _judge_vectors(texts: Sequence[str], execution: Execution) -> Matrix:
    from evenhand.classifiers.text_classifier import embedded_classifier

    return embedded_classifier(execution).pooled_vectors(texts, "ideology")


def _umap(vectors: Matrix, seed: int) -> tuple[npt.NDArray[np.float64] | None, ...]:
    """Two coordinates for each text, or None."""
    if len(vectors) < LEAST:
        return None, None
    with warnings.catch_warnings():
        # umap-learn warns about missing optional features, which are not used here.
        warnings.simplefilter("ignore")
        try:
            from umap import UMAP
        except ImportError:
            return None, None
        projection = UMAP(n_neighbors=min(15, len(vectors) - 1), random_state=seed, n_jobs=1, init="pca")
        x, y = np.asarray(projection.fit_transform(vectors), dtype=np.float64).T
        return x, y


def _draw(panels: Sequence[pl.DataFrame], titles: Sequence[str]) -> str:
    unused = [""] * (4 - len(panels))
    with open_canvas([*titles, *unused], columns=2, width=4.5, height=4.0) as (canvas, axes):
        for axis in axes:
            axis.set_xticks([])
            axis.set_yticks([])
        for axis, panel in zip(axes, panels, strict=False):
            for side, colour in SIDE_COLOURS.items():
                points = panel.filter(side=side).drop_nulls("x")
                if panel["x"].count():
                    axis.scatter(points["x"], points["y"], s=5, color=colour, label=side, alpha=0.6)
        if panels[0]["x"].count():
            axes[0].legend(fontsize=8)
        return to_svg(canvas)
