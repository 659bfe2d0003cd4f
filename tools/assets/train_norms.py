"""Train the embedded emotion lexicon like ``evenhand train norms``, packed; fewer steps rehearse it."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from evenhand.text.lexicons import write_lexicon
from evenhand.text.word_vectors import read_vectors
from evenhand.training.norm_prediction import (
    NormNetworkConfig,
    build_lexicon,
    cross_validate,
    match_vectors,
    read_word_ratings,
)

_LOG = logging.getLogger(__name__)


def main(argv: list[str] | None = None) -> None:
    """Train the emotion lexicon."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("ratings", type=Path, nargs="+", help="tables with a column word and rated variables")
    parser.add_argument("--vectors", type=Path, required=True, help="word vectors")
    parser.add_argument("--out", type=Path, required=True, help="the lexicon to write, .tsv or .tsv.xz")
    parser.add_argument("--steps", type=int, default=NormNetworkConfig().steps)
    parser.add_argument("--folds", type=int, default=NormNetworkConfig().folds)
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    vectors, ratings = read_vectors(args.vectors), read_word_ratings(args.ratings)
    recipe = NormNetworkConfig(steps=args.steps, folds=args.folds)
    for variable, r, words in cross_validate(*match_vectors(ratings, vectors), recipe):
        _LOG.info("%-10s r %.3f over %d words", variable, r, words)
    write_lexicon(build_lexicon(vectors, ratings, recipe), args.out)


if __name__ == "__main__":
    main()
