"""Ideology-neutral word vectors: GloVe with one column for ideology, removed after training.

GN-GloVe (Zhao et al. 2018) with the two sides of the press in place of the two genders, as in the political
paper's IN-GloVe (section 6.3). Three terms are minimised together: GloVe's own; minus the distance between
the two sides' mean ideology columns, so that this column absorbs their difference; and the squared projection
of every neutral word on the remaining direction of difference in the other columns. Only those are kept.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix
from torch import Tensor

from evenhand.core.errors import InputError
from evenhand.mitigations.word_lists import WordLists, read_word_lists
from evenhand.text.word_vectors import WordVectors, save_vectors
from evenhand.training.corpus_text import split_documents
from evenhand.training.embeddings import choose_vocabulary, count_words, encode_texts
from evenhand.training.finetuning import descend
from evenhand.training.ideology_words import read_articles

_LOG = logging.getLogger(__name__)
_POWER: Final = 0.75
_PEAK: Final = 100.0
"""GloVe's weighting: (x / 100)^0.75, at most 1."""


@dataclass(frozen=True, slots=True)
class NeutralVectorConfig:
    """How the vectors are trained."""

    words: int = 20_000
    width: int = 100
    """Number of columns kept; one more absorbs ideology."""
    window: int = 8
    epochs: int = 15
    batch: int = 1 << 16
    rate: float = 0.05
    apart: float = 0.8
    """Weight of the term that separates the sides in the ideology column."""
    neutral: float = 0.8
    """Weight of the term that keeps neutral words orthogonal to the ideology direction."""
    seed: int = 0


def train_neutral_vectors(
    texts: Sequence[str], out: Path, *, sides: WordLists, recipe: NeutralVectorConfig
) -> WordVectors:
    """Train the neutral columns and write them to ``out/vectors.safetensors``."""
    vocabulary = choose_vocabulary(
        count_words(texts), recipe.words, required={word for words in sides.words for word in words}
    )
    index = {word: place for place, word in enumerate(vocabulary.words)}
    places = [[index[word] for word in listed if word in index] for listed in sides.words]
    if not all(places):
        raise InputError(
            "no word of a side is frequent enough in the texts",
            expected="texts in which words of both lists occur",
            fix="add texts, or use other lists",
        )
    ids = encode_texts(texts, vocabulary.words)
    counts = count_cooccurrences(ids, len(vocabulary.words), window=recipe.window)
    matrix = fit_glove(counts, (torch.tensor(places[0]), torch.tensor(places[1])), recipe)[:, : recipe.width]
    out.mkdir(parents=True, exist_ok=True)
    path = out / "vectors.safetensors"
    save_vectors(vocabulary.words, matrix, path)
    return WordVectors.create(vocabulary.words, matrix, source=str(path))


def count_cooccurrences(ids: NDArray[np.int32], words: int, *, window: int) -> csr_matrix:
    """How often two words occur within the window, each pair weighted by 1 / distance; symmetric."""
    total = csr_matrix((words, words))
    for distance in range(1, window + 1):
        left, right = ids[:-distance], ids[distance:]
        together = (left >= 0) & (right >= 0)
        # Pairs across the end of a document are dropped.
        for between in range(1, distance):
            together &= ids[between : len(ids) - distance + between] >= 0
        pair = left[together], right[together]
        weight = np.full(len(pair[0]), 1 / distance)
        total = total + coo_matrix((weight, pair), shape=(words, words)).tocsr()
    return (total + total.T).tocsr()


def fit_glove(
    counts: csr_matrix, places: tuple[Tensor, Tensor], recipe: NeutralVectorConfig
) -> NDArray[np.float32]:
    """The vectors, one row per word; the last column is the ideology column."""
    pairs = counts.tocoo()
    rows, columns = (torch.from_numpy(part.astype(np.int64)) for part in (pairs.row, pairs.col))
    values = torch.from_numpy(pairs.data.astype(np.float32))
    random = torch.Generator().manual_seed(recipe.seed)

    def table(*size: int) -> Tensor:
        return ((torch.rand(*size, generator=random) - 0.5) / (recipe.width + 1)).requires_grad_(True)

    size = counts.shape[0]
    words, contexts = table(size, recipe.width + 1), table(size, recipe.width + 1)
    word_bias, context_bias = table(size), table(size)
    optimiser = torch.optim.Adagrad([words, contexts, word_bias, context_bias], lr=recipe.rate)
    neutral = torch.ones(size, dtype=torch.bool)
    neutral[torch.cat(places)] = False
    for epoch in range(recipe.epochs):
        losses = []
        for batch in torch.split(torch.randperm(len(values), generator=random), recipe.batch):
            row, column, count = rows[batch], columns[batch], values[batch]
            logs = (words[row] * contexts[column]).sum(-1) + word_bias[row] + context_bias[column]
            weight = (count / _PEAK).clamp(max=1) ** _POWER
            loss = (weight * (logs - count.log()).square()).mean()
            loss = loss + ideology_loss(words, places, neutral, recipe)
            losses.append(float(descend(loss, optimiser)))
        _LOG.info("epoch %d: loss %.4f", epoch + 1, float(np.mean(losses)))
    both = words.detach() + contexts.detach()
    return np.asarray((both - both.mean(0)).numpy(), dtype=np.float32)


def ideology_loss(
    words: Tensor, places: tuple[Tensor, Tensor], neutral: Tensor, recipe: NeutralVectorConfig
) -> Tensor:
    """Terms that keep ideology in the last column: the sides' distance there, and what remains elsewhere."""
    means = [words[place].mean(0) for place in places]
    apart = (means[0][-1] - means[1][-1]).abs().clamp(max=2)
    direction = (means[0] - means[1])[:-1].detach()
    direction = direction / direction.norm().clamp(min=1e-6)
    along = (words[:, :-1] @ direction)[neutral]
    cost: Tensor = recipe.neutral * along.square().mean() - recipe.apart * apart
    return cost


def main(argv: list[str] | None = None) -> None:
    """Train ideology-neutral word vectors from the command line."""
    recipe = NeutralVectorConfig()
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("articles", type=Path, help="JSONL with text, label, source")
    parser.add_argument("--corpus", type=Path, nargs="*", default=[], help="additional running text")
    parser.add_argument("--limit", type=int, help="documents of each corpus")
    parser.add_argument("--words", type=str, default="ideology", help="the two word lists")
    parser.add_argument("--epochs", type=int, default=recipe.epochs)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    texts = [article.text for article in read_articles(args.articles)]
    for corpus in args.corpus:
        texts += [document.text for document in split_documents(corpus)[0][: args.limit]]
    train_neutral_vectors(
        texts, args.out, sides=read_word_lists(args.words), recipe=NeutralVectorConfig(epochs=args.epochs)
    )


if __name__ == "__main__":
    main()
