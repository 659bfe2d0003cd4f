"""What the cards of the embedded word vectors and norms promise."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from evenhand.core.digests import file_digest
from evenhand.core.files import asset_path
from evenhand.text.hard_debiasing import gender_polarities, load_debiased_vectors
from evenhand.text.lexicons import NORMS, load_norms
from evenhand.text.word_vectors import load_embedded_vectors, unit_rows
from evenhand.training import norm_prediction
from evenhand.training.embeddings import analogy_shares, load_questions, similarity_correlation

CARD_R = {
    **{"valence": 0.831, "arousal": 0.697, "dominance": 0.683, "joy": 0.709},
    **{"anger": 0.750, "sadness": 0.734, "fear": 0.710, "disgust": 0.698},
}
"""Held-out Pearson's r on the card of the norms."""


def read_card(folder: str) -> str:
    return asset_path(folder, "card.md").read_text(encoding="utf-8")


def test_the_card_of_the_norms_has_these_figures() -> None:
    card = read_card("norms")
    assert all(f"| {variable} | {r:.3f} |" in card for variable, r in CARD_R.items())


def test_size_and_shape() -> None:
    vectors = load_embedded_vectors()
    assert vectors.matrix.shape == (41_000, 100)
    assert np.isfinite(vectors.matrix).all()
    assert all(word == word.lower() and not re.search(r"[\d_\s]", word) for word in vectors.words)
    stored = [asset_path("embeddings", "vectors.safetensors"), asset_path("norms", "lexicon.tsv.xz")]
    assert sum(path.stat().st_size for path in stored) < 5_000_000


@pytest.mark.parametrize(
    ("folder", "name"), [("embeddings", "vectors.safetensors"), ("norms", "lexicon.tsv.xz")]
)
def test_the_card_names_the_digest(folder: str, name: str) -> None:
    assert file_digest(asset_path(folder, name)) in read_card(folder)


def test_analogies_and_similarity_hold() -> None:
    vectors, checks = load_embedded_vectors(), load_questions()
    shares = analogy_shares(vectors, checks["analogies"])
    right, asked = map(sum, zip(*shares.values(), strict=True))
    assert asked == 800
    assert right / asked > 0.75
    correlation, pairs = similarity_correlation(vectors, checks["similarity"])
    assert (correlation > 0.68, pairs) == (True, 64)


@pytest.mark.parametrize(
    ("word", "near"),
    [("doctor", "physician"), ("january", "february"), ("football", "soccer"), ("angry", "furious")],
)
def test_neighbours_a_reader_expects(word: str, near: str) -> None:
    vectors = load_embedded_vectors()
    unit = unit_rows(vectors.matrix)
    # The word itself is the first of the sixteen.
    nearest = np.argsort(-(unit @ unit[vectors.index[word]]), kind="stable")[:16]
    assert near in {vectors.words[row] for row in nearest}


def test_occupations_lose_their_gender() -> None:
    vectors, occupations = load_embedded_vectors(), load_questions()["occupations"]
    rows = [vectors.index[word] for word in occupations]
    before, after = gender_polarities(vectors)[rows], gender_polarities(load_debiased_vectors())[rows]
    assert len(rows) == 50
    assert np.abs(before).mean() > 0.08
    assert np.abs(after).max() < 1e-5
    of_word = dict(zip(occupations, before, strict=True))
    assert of_word["nurse"] > 0.2 > 0 > of_word["astronomer"]


def test_gendered_words_keep_theirs() -> None:
    polarities = dict(
        zip(load_debiased_vectors().words, gender_polarities(load_debiased_vectors()), strict=True)
    )
    for female, male in (
        ("she", "he"),
        ("her", "his"),
        ("woman", "man"),
        ("mother", "father"),
        ("wife", "husband"),
    ):
        assert polarities[female] == pytest.approx(-polarities[male], abs=1e-5)
        assert polarities[female] > 0.25


def test_the_lexicon_covers_every_vector_within_the_scales() -> None:
    lexicon = load_norms()
    assert lexicon.words == load_embedded_vectors().words
    low, high = np.array(list(NORMS.values())).T
    assert ((lexicon.values >= low) & (lexicon.values <= high)).all()


@pytest.mark.parametrize(
    ("variable", "high", "low"),
    [
        ("valence", "wonderful", "murder"),
        ("arousal", "exciting", "quiet"),
        ("dominance", "successful", "helpless"),
        ("joy", "laughter", "funeral"),
        ("anger", "hatred", "garden"),
        ("sadness", "grief", "party"),
        ("fear", "terror", "sofa"),
        ("disgust", "vomit", "melody"),
    ],
)
def test_words_a_reader_can_rank(variable: str, high: str, low: str) -> None:
    lexicon = load_norms()
    column = dict(zip(lexicon.words, lexicon.values[:, list(NORMS).index(variable)], strict=True))
    assert column[high] > column[low] + 0.5


def test_the_lexicon_agrees_with_human_ratings(data: Path) -> None:
    with (data / "norms" / "vad_glasgow.csv").open(encoding="utf-8") as file:
        rated = {row["Word"]: float(row["Valence"]) for row in csv.DictReader(file)}
    lexicon = load_norms()
    both = [
        (value, rated[word])
        for word, value in zip(lexicon.words, lexicon.values[:, 0], strict=True)
        if word in rated
    ]
    assert len(both) > 4000
    # These words were trained on; held-out agreement is on the card.
    assert np.corrcoef(np.array(both).T)[0, 1] > 0.85


def test_norms_of_words_the_network_did_not_see(data: Path) -> None:
    """One fold of ten, one network, a third of the steps: the card's figures come from all of them."""
    folder = data / "norms"
    ratings = norm_prediction.read_word_ratings([folder / "vad_glasgow.csv", folder / "be5_emomap.tsv"])
    features, values = norm_prediction.match_vectors(ratings, load_embedded_vectors())
    order = np.random.default_rng(0).permutation(len(features))
    held, rest = order[::10], np.setdiff1d(order, order[::10])
    networks = norm_prediction.fit_networks(
        features[rest], values[rest], norm_prediction.NormNetworkConfig(steps=1000, networks=1)
    )
    predicted = norm_prediction.predict_ratings(networks, features[held])
    for column, variable in enumerate(NORMS):
        rated = values[held, column]
        known = ~np.isnan(rated)
        r = np.corrcoef(predicted[known, column], rated[known])[0, 1]
        assert r > CARD_R[variable] - 0.05, variable
