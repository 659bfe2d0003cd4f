"""Figure 2: where texts of either side lie, before and after ideology training, and under two modes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from evenhand.audits.mitigation_cost import VANILLA
from evenhand.core.records import Execution
from evenhand.core.seeds import make_generator
from evenhand.papers.replication_pages import PaperFigure
from evenhand.papers.svg_figures import open_canvas, to_svg
from evenhand.text.word_tokens import split_words
from evenhand.text.word_vectors import load_embedded_vectors

MOST = 1_000
"""Texts of a panel."""
COLOURS = {"liberal": "#1d5bb8", "conservative": "#ad4706"}
NO_UMAP = "umap-learn is not installed: pip install 'evenhand[viz]'"
LEAST = 10
"""Texts below which a panel is not projected."""
Matrix: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EmbeddingPanel:
    """The texts of one panel as vectors, and the side the judge gives each."""

    name: str
    vectors: Matrix
    sides: Sequence[str]

    @property
    def silhouette(self) -> float | None:
        """How far the sides lie apart, from -1 to 1; None where only one side is there."""
        return silhouette(self.vectors, self.sides)


def figure_2(judged: Mapping[str, pl.DataFrame], source: str, execution: Execution, seed: int) -> PaperFigure:
    """The four panels of one source, from ``text`` and ``label`` of its indirect texts by condition."""
    panels = _panels({name: _sample_texts(table, seed) for name, table in judged.items()}, execution)
    places = [_umap(panel, seed) for panel in panels]
    is_small = all(len(panel.vectors) < LEAST for panel in panels)
    why = f"fewer than {LEAST} texts a panel" if is_small else NO_UMAP
    note = () if any(place is not None for place in places) else (f"Not drawn: {why}.",)
    missing = (mode for mode in ("embedding", "classifier") if mode not in judged)
    return PaperFigure(
        id="figure_2",
        title=f"Texts of {source} by the judge's side, projected",
        frame=pl.concat(_rows(panel, place) for panel, place in zip(panels, places, strict=True)),
        svg=_drawing(panels, places),
        alt="; ".join(f"{panel.name}: silhouette {_format_value(panel.silhouette)}" for panel in panels),
        notes=(
            "Silhouettes are taken before the projection, between the two sides the judge gives the texts: 0 "
            "is mixed, 1 apart. (a) is the mean of word vectors that know no ideology; (b) to (d) show what "
            "the judge's ideology head reads.",
            *note,
            *(f"The panel of mode {mode} is missing: the mode is." for mode in missing),
        ),
    )


def silhouette(vectors: Matrix, labels: Sequence[str]) -> float | None:
    """The mean silhouette (Rousseeuw 1987) of labelled points, by Euclidean distance."""
    names, codes = np.unique(np.asarray(labels), return_inverse=True)
    sizes = np.bincount(codes)
    if len(names) < 2 or sizes.min() < 2:
        return None
    points = vectors.astype(np.float64)
    squares = (points**2).sum(axis=1)
    gaps = np.sqrt(np.maximum(squares[:, None] + squares[None] - 2 * points @ points.T, 0))
    np.fill_diagonal(gaps, 0.0)
    sums = np.column_stack([gaps[:, codes == code].sum(axis=1) for code in range(len(names))])
    at = np.arange(len(codes))
    own = sums[at, codes] / (sizes[codes] - 1)
    others = sums / sizes
    others[at, codes] = np.inf
    near = others.min(axis=1)
    largest = np.maximum(own, near)
    return float(np.mean(np.divide(near - own, largest, out=np.zeros_like(own), where=largest > 0)))


def _panels(judged: Mapping[str, pl.DataFrame], execution: Execution) -> list[EmbeddingPanel]:
    own = judged[VANILLA]
    word_vectors = _word_vectors(own["text"].to_list())
    panels = [EmbeddingPanel("(a) baseline, word vectors", word_vectors, own["label"].to_list())]
    for letter, name, condition in (
        ("b", "baseline", VANILLA),
        ("c", "embedding", "embedding"),
        ("d", "classifier", "classifier"),
    ):
        if condition in judged:
            table = judged[condition]
            vectors = _judge_vectors(table["text"].to_list(), execution)
            panels.append(EmbeddingPanel(f"({letter}) {name}, judge", vectors, table["label"].to_list()))
    return panels


def _sample_texts(table: pl.DataFrame, seed: int) -> pl.DataFrame:
    rows = make_generator(seed, "figure_2").permutation(table.height)[:MOST]
    return table[np.sort(rows)]


def _word_vectors(texts: Sequence[str]) -> Matrix:
    vectors = load_embedded_vectors()
    places = [[place for word in split_words(text) if (place := vectors.find(word)) >= 0] for text in texts]
    empty = np.zeros(vectors.matrix.shape[1], dtype=np.float32)
    means = [vectors.matrix[rows].mean(axis=0) if rows else empty for rows in places]
    return np.stack(means).astype(np.float32)


def _judge_vectors(texts: Sequence[str], execution: Execution) -> Matrix:
    from evenhand.classifiers.text_classifier import embedded_classifier

    return embedded_classifier(execution).pooled_vectors(texts, "ideology")


def _umap(panel: EmbeddingPanel, seed: int) -> npt.NDArray[np.float64] | None:
    """Two coordinates a text; None without umap-learn, or with too few texts."""
    if len(panel.vectors) < LEAST:
        return None
    with warnings.catch_warnings():
        # umap-learn warns of what it was not built with; nothing of it is used here.
        warnings.simplefilter("ignore")
        try:
            from umap import UMAP
        except ImportError:
            return None
        projection = UMAP(
            n_neighbors=min(15, len(panel.vectors) - 1), random_state=seed, n_jobs=1, init="pca"
        )
        return np.asarray(projection.fit_transform(panel.vectors), dtype=np.float64)


def _rows(panel: EmbeddingPanel, place: npt.NDArray[np.float64] | None) -> pl.DataFrame:
    count = len(panel.sides)
    return pl.DataFrame(
        {
            "panel": [panel.name] * count,
            "side": list(panel.sides),
            "x": place[:, 0] if place is not None else [None] * count,
            "y": place[:, 1] if place is not None else [None] * count,
            "silhouette": [panel.silhouette] * count,
        },
        schema={
            **dict.fromkeys(("panel", "side"), pl.String()),
            **dict.fromkeys(("x", "y", "silhouette"), pl.Float64()),
        },
    )


def _drawing(panels: Sequence[EmbeddingPanel], places: Sequence[npt.NDArray[np.float64] | None]) -> str:
    with open_canvas(4, columns=2, width=4.5, height=4.0) as (canvas, axes):
        for axis in axes:
            axis.set_xticks([])
            axis.set_yticks([])
        for axis, panel, place in zip(axes, panels, places, strict=False):
            axis.set_title(
                f"{panel.name}: silhouette {_format_value(panel.silhouette)}", loc="left", fontsize=10
            )
            for side, colour in COLOURS.items():
                chosen = np.asarray(panel.sides) == side
                if place is not None:
                    axis.scatter(place[chosen, 0], place[chosen, 1], s=5, color=colour, label=side, alpha=0.6)
        if places[0] is not None:
            axes[0].legend(fontsize=8)
        return to_svg(canvas)


def _format_value(value: float | None) -> str:
    return "not known" if value is None else f"{value:.2f}"
