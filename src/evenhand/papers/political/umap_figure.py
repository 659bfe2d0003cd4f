"""Figure 2: where texts of either side lie, before and after ideology training, and under two modes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from evenhand.audits.mitigation_sweep import VANILLA
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


class EmbeddingPanel(NamedTuple):
    """The texts of one panel: the side the judge gives each, and where each lies."""

    name: str
    sides: Sequence[str]
    silhouette: float | None
    """How far the sides lie apart, from -1 to 1; None where only one side is there."""
    places: npt.NDArray[np.float64] | None
    """Two coordinates of each text; None without umap-learn, or with too few texts."""

    @property
    def title(self) -> str:
        """The name with the silhouette."""
        known = "not known" if self.silhouette is None else f"{self.silhouette:.2f}"
        return f"{self.name}: silhouette {known}"


def figure_2(texts: Mapping[str, pl.DataFrame], source: str, execution: Execution, seed: int) -> PaperFigure:
    """The four panels of one source, from ``text`` and ``label`` of its indirect texts by condition."""
    panels = _panels(texts, execution, seed)
    is_small = all(len(panel.sides) < LEAST for panel in panels)
    why = f"fewer than {LEAST} texts a panel" if is_small else NO_UMAP
    missing = (mode for mode in ("embedding", "classifier") if mode not in texts)
    return PaperFigure(
        id="figure_2",
        title=f"Texts of {source} by the judge's side, projected",
        frame=pl.concat(map(_rows, panels)),
        svg=_drawing(panels),
        alt="; ".join(panel.title for panel in panels),
        notes=(
            "Silhouettes are taken before the projection, between the two sides the judge gives the texts: 0 "
            "is mixed, 1 apart. (a) is the mean of word vectors that know no ideology; (b) to (d) show what "
            "the judge's ideology head reads.",
            *(() if any(panel.places is not None for panel in panels) else (f"Not drawn: {why}.",)),
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


def _panels(texts: Mapping[str, pl.DataFrame], execution: Execution, seed: int) -> list[EmbeddingPanel]:
    readers: tuple[tuple[str, str, Callable[[Sequence[str]], Matrix]], ...] = (
        ("(a) baseline, word vectors", VANILLA, _word_vectors),
        ("(b) baseline, judge", VANILLA, partial(_judge_vectors, execution=execution)),
        ("(c) embedding, judge", "embedding", partial(_judge_vectors, execution=execution)),
        ("(d) classifier, judge", "classifier", partial(_judge_vectors, execution=execution)),
    )
    panels = []
    for name, condition, read in readers:
        if condition in texts:
            table = texts[condition]
            table = table[np.sort(make_generator(seed, "figure_2").permutation(table.height)[:MOST])]
            vectors, sides = read(table["text"].to_list()), table["label"].to_list()
            panels.append(EmbeddingPanel(name, sides, silhouette(vectors, sides), _umap(vectors, seed)))
    return panels


def _word_vectors(texts: Sequence[str]) -> Matrix:
    vectors = load_embedded_vectors()
    places = [[place for word in split_words(text) if (place := vectors.find(word)) >= 0] for text in texts]
    empty = np.zeros(vectors.matrix.shape[1], dtype=np.float32)
    means = [vectors.matrix[rows].mean(axis=0) if rows else empty for rows in places]
    return np.stack(means).astype(np.float32)


def _judge_vectors(texts: Sequence[str], execution: Execution) -> Matrix:
    from evenhand.classifiers.text_classifier import embedded_classifier

    return embedded_classifier(execution).pooled_vectors(texts, "ideology")


def _umap(vectors: Matrix, seed: int) -> npt.NDArray[np.float64] | None:
    if len(vectors) < LEAST:
        return None
    with warnings.catch_warnings():
        # umap-learn warns of what it was not built with; nothing of it is used here.
        warnings.simplefilter("ignore")
        try:
            from umap import UMAP
        except ImportError:
            return None
        projection = UMAP(n_neighbors=min(15, len(vectors) - 1), random_state=seed, n_jobs=1, init="pca")
        return np.asarray(projection.fit_transform(vectors), dtype=np.float64)


def _rows(panel: EmbeddingPanel) -> pl.DataFrame:
    places = [(None, None)] * len(panel.sides) if panel.places is None else panel.places.tolist()
    return pl.DataFrame(
        [
            (panel.name, side, x, y, panel.silhouette)
            for side, (x, y) in zip(panel.sides, places, strict=True)
        ],
        schema={
            **dict.fromkeys(("panel", "side"), pl.String()),
            **dict.fromkeys(("x", "y", "silhouette"), pl.Float64()),
        },
        orient="row",
    )


def _drawing(panels: Sequence[EmbeddingPanel]) -> str:
    with open_canvas(4, columns=2, width=4.5, height=4.0) as (canvas, axes):
        for axis in axes:
            axis.set_xticks([])
            axis.set_yticks([])
        for axis, panel in zip(axes, panels, strict=False):
            axis.set_title(panel.title, loc="left", fontsize=10)
            for side, colour in COLOURS.items():
                if panel.places is not None:
                    places = panel.places[np.asarray(panel.sides) == side]
                    axis.scatter(places[:, 0], places[:, 1], s=5, color=colour, label=side, alpha=0.6)
        if panels[0].places is not None:
            axes[0].legend(fontsize=8)
        return to_svg(canvas)
