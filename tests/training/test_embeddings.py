from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from evenhand.core.errors import InputError
from evenhand.text.word_vectors import WordVectors, load_vectors
from evenhand.training.embeddings import (
    SkipGramBatch,
    SkipGramConfig,
    WordVectorConfig,
    analogy_shares,
    choose_vocabulary,
    count_words,
    draw_edges,
    encode_texts,
    fit_word_vectors,
    keep_shares,
    reach_weights,
    similarity_correlation,
    subsample,
    train_word_vectors,
    update_vectors,
)

TOPICS = (["apple", "pear", "plum", "cherry"], ["hammer", "saw", "drill", "nail"])


def two_topics(sentences: int = 1500) -> list[str]:
    """Documents about fruit or about tools; "and" is in both."""
    rng = np.random.default_rng(5)
    return [" and ".join(rng.choice(TOPICS[place % 2], size=6)) for place in range(sentences)]


def test_words_are_counted_as_written() -> None:
    assert count_words(["Ann's hat. The hat, the 2nd"]) == Counter(
        {"Ann's": 1, "hat": 2, "The": 1, "the": 1, "2nd": 1}
    )


def test_common_words_go_before_names() -> None:
    # Claims: word 4 x 20 = 80, Name 60, rare 4 x 11 = 44; "Name's" counts as "name", "b2" is no word.
    counts = Counter({"word": 20, "Name": 50, "Name's": 10, "rare": 11, "b2": 99, "seldom": 9})
    assert choose_vocabulary(counts, 2).words == ("name", "word")  # sorted by frequency: 60, 20
    assert choose_vocabulary(counts, 1).words == ("word",)
    assert choose_vocabulary(counts, 9).words == ("name", "word", "rare")
    assert choose_vocabulary(counts, 1, required=["rare", "seldom"]).words == ("rare",)
    assert choose_vocabulary(counts, 2).counts.tolist() == [60, 20]


def test_encoding_leaves_out_other_words_and_parts_documents() -> None:
    assert encode_texts(["The cat's hat", "", "a hat"], ["hat", "cat"]).tolist() == [1, 0, -1, -1, 0, -1]


def test_common_words_are_skipped_now_and_then() -> None:
    # Word 1 has a share of 1e-2, 100 times the limit of 1e-4: kept (sqrt 100 + 1) / 100 = 11 % of the time.
    shares = keep_shares(np.array([10**6 - 10**4, 10**4]), 1e-4)
    assert shares[1] == pytest.approx(0.11, abs=1e-6)


def test_random_words_are_drawn_by_frequency_to_the_power() -> None:
    edges = draw_edges(np.array([16, 1]), 0.75)  # 16 ** 0.75 = 8: eight to one
    assert edges == pytest.approx([8 / 9, 1])
    assert np.searchsorted(edges, [0.0, 0.88, 0.89, 0.999]).tolist() == [0, 0, 1, 1]


def test_skipped_words_leave_no_gap_and_documents_stay_apart() -> None:
    ids = np.array([0, 1, -1, 1, 0, -1] * 100, dtype=np.int32)
    number, document = subsample(ids, np.array([1.0, 0.0], dtype=np.float32), np.random.default_rng(0))
    assert set(number.tolist()) == {0}  # word 1 is always skipped
    assert np.diff(document).tolist() == [1] * (len(document) - 1)  # one 0 a document


def test_nearer_neighbours_count_more() -> None:
    # Reach is drawn from 1..5: a neighbour at distance 2 is met four times in five.
    weights = reach_weights(8, 5)
    assert weights[0].tolist() == pytest.approx([0, 1, 0.8, 0.6, 0.4, 0.2, 0, 0])
    assert torch.equal(weights, weights.T)


def test_one_step_by_hand() -> None:
    # Word 0 beside word 1 at weight 1, told apart from the random word 2 five times over one shared draw.
    words = torch.tensor([[1.0, 0.5], [0.0, 1.0], [9.0, 9.0]])
    contexts = torch.tensor([[0.0, 2.0], [0.5, 0.0], [0.5, 1.0]])
    # Dots: w0.c1 = 0.5, w1.c0 = 2; with the random word w0.c2 = 1, w1.c2 = 1.
    s = [1 / (1 + math.exp(-dot)) for dot in (0.5, 2.0, 1.0)]
    pull0, pull1, push = 0.1 * (1 - s[0]), 0.1 * (1 - s[1]), -0.1 * 5 * s[2]
    expected_words = [[1 + pull0 * 0.5 + push * 0.5, 0.5 + push], [push * 0.5, 1 + pull1 * 2 + push], [9, 9]]
    # c1 moves by w0, c0 by w1, c2 by both.
    expected_contexts = [[0.0, 2 + pull1], [0.5 + pull0, pull0 * 0.5], [0.5 + push, 1 + push * 1.5]]
    step = SkipGramBatch(
        torch.tensor([[0, 1]]), torch.tensor([[[0.0, 1.0], [1.0, 0.0]]]), torch.tensor([[2]])
    )
    update_vectors(words, contexts, step, rate=0.1, negatives=5)
    assert words.tolist() == pytest.approx(np.array(expected_words))
    assert contexts.tolist() == pytest.approx(np.array(expected_contexts))


def test_a_step_is_the_sum_of_its_pairs() -> None:
    from tests.oracles.skipgram import learn_pairs

    rng = np.random.default_rng(3)
    words, contexts = (torch.from_numpy(rng.normal(size=(9, 4)).astype(np.float32)) for _ in range(2))
    near, far = torch.from_numpy(rng.integers(0, 9, (2, 6))), torch.from_numpy(rng.integers(0, 9, (2, 3)))
    weights = reach_weights(6, 2) * torch.ones(2, 1, 1)
    expected = learn_pairs(
        words.numpy(), contexts.numpy(), SkipGramBatch(near, weights, far), rate=0.1, negatives=5
    )
    update_vectors(words, contexts, SkipGramBatch(near, weights, far), rate=0.1, negatives=5)
    assert words.numpy() == pytest.approx(expected[0], abs=1e-5)
    assert contexts.numpy() == pytest.approx(expected[1], abs=1e-5)


def test_words_of_one_topic_come_together_and_a_stopped_run_goes_on(tmp_path: Path) -> None:
    texts = two_topics()
    vocabulary = choose_vocabulary(count_words(texts), 50)
    ids = encode_texts(texts, vocabulary.words)
    recipe = WordVectorConfig(width=8, epochs=4, settings=SkipGramConfig(common=1.0, rate=0.05))
    matrix = fit_word_vectors(ids, vocabulary.counts, recipe)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    place = {word: row for row, word in enumerate(vocabulary.words)}
    cosines = unit @ unit.T
    within = min(cosines[place[a], place[b]] for words in TOPICS for a in words for b in words)
    across = max(cosines[place[a], place[b]] for a in TOPICS[0] for b in TOPICS[1])
    assert within > across + 0.3

    checkpoint = tmp_path / "checkpoint.safetensors"
    half = WordVectorConfig(width=8, epochs=4, settings=recipe.settings)
    _stop_after(ids, vocabulary.counts, half, checkpoint, epochs=2)
    assert np.array_equal(fit_word_vectors(ids, vocabulary.counts, half, checkpoint=checkpoint), matrix)


def _stop_after(
    ids: np.ndarray, counts: np.ndarray, recipe: WordVectorConfig, checkpoint: Path, *, epochs: int
) -> None:
    """Run the first epochs of a longer training, as a call that was killed would."""
    from evenhand.training import embeddings

    class Stop(Exception):
        pass

    run_epoch, calls = embeddings.run_epoch, []

    def run_and_stop(*tables: object, **settings: object) -> None:
        calls.append(settings)
        if len(calls) > epochs:
            raise Stop
        run_epoch(*tables, **settings)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stop):
        patch.setattr(embeddings, "run_epoch", run_and_stop)
        fit_word_vectors(ids, counts, recipe, checkpoint=checkpoint)


def test_train_writes_what_load_reads(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("\n\n".join(two_topics(200)))
    trained = train_word_vectors(
        [path], tmp_path / "out", recipe=WordVectorConfig(words=9, width=4, epochs=1)
    )
    loaded = load_vectors(tmp_path / "out" / "vectors.safetensors")
    assert loaded.words == trained.words
    assert set(loaded.words) == {*TOPICS[0], *TOPICS[1], "and"}
    assert loaded.matrix == pytest.approx(trained.matrix, abs=0.01)


def test_texts_without_words_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("once only")
    with pytest.raises(InputError, match=r"^no word is frequent enough in the texts\."):
        train_word_vectors([path], tmp_path / "out", recipe=WordVectorConfig())


def test_checks_by_hand() -> None:
    matrix = np.array([[0, 0.1], [0, 1], [1, 0.1], [1, 1], [-1, 0]], dtype=np.float32)
    vectors = WordVectors.create(("man", "woman", "king", "queen", "stone"), matrix, source="toy")
    shares = analogy_shares(vectors, {"kin": [["man", "woman"], ["king", "queen"]], "none": [["x", "y"]]})
    assert shares["kin"] == (2, 2)
    assert shares["none"] == (0, 0)
    pairs = [("woman", "man", 9.0), ("king", "queen", 8.0), ("king", "stone", 1.0), ("king", "x", 5.0)]
    correlation, known = similarity_correlation(vectors, pairs)
    assert known == 3
    assert correlation == pytest.approx(1.0)
