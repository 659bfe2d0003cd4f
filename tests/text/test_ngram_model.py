"""The n-gram model: by hand, against its slow twin, sums to one, and as kenlm reads it."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.kneser_ney import SlowKneserNey

from evenhand.core.errors import InputError
from evenhand.text.ngram_model import (
    BEGIN,
    END,
    UNKNOWN,
    read_arpa,
    train_ngram_model,
)
from evenhand.text.word_tokens import tokenize

TEXTS = [tokenize(text) for text in ("a b a c", "a b", "b c a b", "c c a", "a b c a b", "d a b")]
rows = st.lists(st.lists(st.sampled_from("abcd"), max_size=6), min_size=1, max_size=6)


def of(model, word, context):
    return 10 ** model._next((*context, word), len(context))


def test_by_hand():
    # "a b" and "a c", order 2. Bigrams: <s> a twice; a b, a c, b </s>, c </s> once.
    # No bigram is seen 3 times: the discounts are 0.5, 1, 1.5. After a: (1 - 0.5) / 2 + (0.5 + 0.5) / 2 P(b).
    # Unigrams by words before them: a 1 (<s>), b 1, c 1, </s> 2; 5 in all, and 1/5 = 1 / (4 words + unknown).
    # P(b) = (1 - 0.5) / 5 + (3 * 0.5 + 1) / 5 / 5 = 0.1 + 0.1 = 0.2.
    model = train_ngram_model([["a", "b"], ["a", "c"]], order=2)
    assert of(model, "b", ("a",)) == pytest.approx(0.25 + 0.5 * 0.2)
    assert 10 ** model.probabilities[0][(UNKNOWN,)] == pytest.approx(0.1)


@settings(max_examples=25, deadline=None)
@given(rows)
def test_it_equals_its_slow_twin(texts):
    for order in (2, 3):
        model, slow = train_ngram_model(texts, order=order), SlowKneserNey(texts, order)
        for row in slow.rows[:2]:
            for at in range(1, len(row)):
                context = row[max(0, at - order + 1) : at]
                assert of(model, row[at], context) == pytest.approx(slow.probability(row[at], context))


@settings(max_examples=25, deadline=None)
@given(rows)
def test_what_may_follow_sums_to_one(texts):
    model = train_ngram_model(texts, order=3)
    words = [gram[0] for gram in model.probabilities[0] if gram[0] != BEGIN]
    for context in [(BEGIN,), ("a",), ("a", "b"), ("d", "d"), (BEGIN, "a")]:
        assert math.fsum(of(model, word, context) for word in words) == pytest.approx(1.0)


def test_a_text_like_the_texts_fits_better_than_its_reverse():
    model = train_ngram_model(TEXTS, order=3)
    fits = [model.log_likelihood(tokenize(text)).log10 for text in ("a b c", "c b a", "a", "zebra")]
    assert fits[0] > fits[1]
    assert fits[2] > fits[3]


def test_an_arpa_file_is_the_model(tmp_path):
    model = train_ngram_model(TEXTS, order=3)
    model.write(tmp_path / "m.arpa")
    again = read_arpa(tmp_path / "m.arpa")
    for text in (["a", "b"], ["c", "zebra", "a"], []):
        assert again.log_likelihood(text).log10 == pytest.approx(model.log_likelihood(text).log10, abs=1e-6)
        assert again.log_likelihood(text).tokens == len(text) + 1


def test_kenlm_gives_the_same_numbers(tmp_path):
    kenlm = pytest.importorskip(
        "kenlm", reason="the extra kenlm is not installed: the slow twin checks alone"
    )
    model = train_ngram_model(TEXTS, order=4)
    model.write(tmp_path / "m.arpa")
    theirs = kenlm.Model(str(tmp_path / "m.arpa"))
    for text in (["a", "b"], ["c", "zebra", "a", "b"], ["b", "c", "a", "b", "d"], ["zebra", "a"]):
        fit = model.log_likelihood(text)
        assert fit.log10 == pytest.approx(theirs.score(" ".join(text)), abs=1e-4)
        perplexity = 10 ** (-fit.log10 / fit.tokens)
        assert perplexity == pytest.approx(theirs.perplexity(" ".join(text)), rel=1e-4)


def test_bad_input(tmp_path):
    with pytest.raises(InputError, match="there is no text to train an n-gram model on"):
        train_ngram_model([])
    with pytest.raises(InputError, match="an n-gram model of order 1"):
        train_ngram_model(TEXTS, order=1)
    (tmp_path / "x.arpa").write_text("hello")
    with pytest.raises(InputError, match="is no n-gram model"):
        read_arpa(tmp_path / "x.arpa")


def test_empty_texts_have_an_end_all_the_same():
    model = train_ngram_model([[], ["a"]], order=2)
    assert model.log_likelihood([]).tokens == 1
    assert (END,) in model.probabilities[0]
