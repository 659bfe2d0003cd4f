from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from evenhand.core.errors import InputError
from evenhand.text.vectors import WordVectors, load_vectors
from evenhand.training.embeddings import Recipe, choose_vocabulary, count_words, encode, fit, train
from evenhand.training.skipgram import Settings, _draw_table, _keep_levels, _learn_pair, _sigmoid_table
from evenhand.training.vector_checks import analogy_shares, similarity_correlation

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
    assert encode(["The cat's hat", "", "a hat"], ["hat", "cat"]).tolist() == [1, 0, -1, -1, 0, -1]


def test_common_words_are_skipped_now_and_then() -> None:
    # Word 1 has a share of 1e-2, 100 times the limit of 1e-4: kept (sqrt 100 + 1) / 100 = 11 % of the time.
    levels = _keep_levels(np.array([10**6 - 10**4, 10**4]), 1e-4)
    assert levels[1] / 65536 == pytest.approx(0.11, abs=1e-4)


def test_random_words_are_drawn_by_frequency_to_the_power() -> None:
    table = _draw_table(np.array([16, 1]), 0.75)  # 16 ** 0.75 = 8: eight to one
    assert np.bincount(table) / len(table) == pytest.approx([8 / 9, 1 / 9], abs=1e-5)


def test_one_step_by_hand() -> None:
    # Dots: 0.5 with the neighbour, 1 with the random word. Slopes: 1 - s(0.5), -s(1), times the rate.
    word = np.array([1.0, 0.5], dtype=np.float32)
    contexts = np.array([[0.5, 0.0], [0.5, 1.0]], dtype=np.float32)
    near, far = 0.1 * (1 - 1 / (1 + math.exp(-0.5))), -0.1 / (1 + math.exp(-1))
    expected_word = [1 + near * 0.5 + far * 0.5, 0.5 + far * 1.0]
    expected = [[0.5 + near * 1, near * 0.5], [0.5 + far * 1, 1 + far * 0.5]]
    _learn_pair(
        word,
        contexts,
        np.array([0, 1], dtype=np.int32),
        np.float32(0.1),
        _sigmoid_table(),
        np.empty(2, np.float32),
    )
    # The sigmoid is read from a table of steps of 12/1024.
    assert word.tolist() == pytest.approx(expected_word, abs=2e-4)
    assert contexts == pytest.approx(np.array(expected), abs=2e-4)


def test_words_of_one_topic_come_together_and_a_stopped_run_goes_on(tmp_path: Path) -> None:
    texts = two_topics()
    vocabulary = choose_vocabulary(count_words(texts), 50)
    ids = encode(texts, vocabulary.words)
    recipe = Recipe(width=8, epochs=4, settings=Settings(common=1.0, rate=0.05))
    matrix = fit(ids, vocabulary.counts, recipe)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    place = {word: row for row, word in enumerate(vocabulary.words)}
    cosines = unit @ unit.T
    within = min(cosines[place[a], place[b]] for words in TOPICS for a in words for b in words)
    across = max(cosines[place[a], place[b]] for a in TOPICS[0] for b in TOPICS[1])
    assert within > across + 0.3

    checkpoint = tmp_path / "checkpoint.safetensors"
    half = Recipe(width=8, epochs=4, settings=recipe.settings)
    _stop_after(ids, vocabulary.counts, half, checkpoint, epochs=2)
    assert np.array_equal(fit(ids, vocabulary.counts, half, checkpoint=checkpoint), matrix)


def _stop_after(
    ids: np.ndarray, counts: np.ndarray, recipe: Recipe, checkpoint: Path, *, epochs: int
) -> None:
    """Run the first epochs of a longer training, as a call that was killed would."""
    from evenhand.training import embeddings

    class Stop(Exception):
        pass

    done: list[int] = []
    write = embeddings._write_state

    def write_and_stop(state: embeddings._State, path: Path) -> None:
        write(state, path)
        done.append(state.epochs)
        if len(done) == epochs:
            raise Stop

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stop):
        patch.setattr(embeddings, "_write_state", write_and_stop)
        fit(ids, counts, recipe, checkpoint=checkpoint)


def test_train_writes_what_load_reads(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("\n\n".join(two_topics(200)))
    trained = train([path], tmp_path / "out", recipe=Recipe(words=9, width=4, epochs=1))
    loaded = load_vectors(tmp_path / "out" / "vectors.safetensors")
    assert loaded.words == trained.words
    assert set(loaded.words) == {*TOPICS[0], *TOPICS[1], "and"}
    assert loaded.matrix == pytest.approx(trained.matrix, abs=0.01)


def test_texts_without_words_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("once only")
    with pytest.raises(InputError, match=r"^the texts hold no word often enough\."):
        train([path], tmp_path / "out")


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
