"""Figure 2: projected texts of both sides, before and after ideology training, and under two modes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.spatial.distance import cdist

from evenhand.audits.tradeoff import VANILLA
from evenhand.core.records import Execution
from evenhand.core.seeds import make_generator
from evenhand.papers.replication_pages import Exhibit
from evenhand.papers.svg_figures import open_canvas, to_svg
from evenhand.text.word_tokens import split_words
from evenhand.text.word_vectors import load_embedded_vectors

MOST = 1_000
"""Maximum number of texts per panel."""
COLOURS = {"liberal": "#1d5bb8", "conservative": "#ad4706"}
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
    titles = [_title(panel) for panel in panels]
    frame = pl.concat(panels)
    is_small = all(panel.height < LEAST for panel in panels)
    reason = f"fewer than {LEAST} texts per panel" if is_small else NO_UMAP
    missing = (mode for mode in ("embedding", "classifier") if mode not in texts)
    return Exhibit(
        id="figure_2",
        title=f"Texts of {source} by the judge's side, projected",
        frame=frame,
        svg=_draw(panels, titles),
        alt="; ".join(titles),
        notes=(
            "Silhouettes are computed before the projection, between the two sides predicted by the judge: 0 "
            "is mixed, 1 separated. (a) uses the mean of general word vectors; (b) to (d) use the input of "
            "the judge's ideology head.",
            *((f"Not drawn: {reason}.",) if frame["x"].is_null().all() else ()),
            *(f"The panel of mode {mode} is missing because the mode is." for mode in missing),
        ),
    )


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


def _title(panel: pl.DataFrame) -> str:
    """The name of a panel with its silhouette, from -1 to 1."""
    name, score = panel.select("panel", "silhouette").row(0)
    return f"{name}: silhouette {'unknown' if score is None else f'{score:.2f}'}"


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
            for side, colour in COLOURS.items():
                points = panel.filter(pl.col("side") == side).drop_nulls("x")
                if panel["x"].count():
                    axis.scatter(points["x"], points["y"], s=5, color=colour, label=side, alpha=0.6)
        if panels[0]["x"].count():
            axes[0].legend(fontsize=8)
        return to_svg(canvas)
