"""Odds ratios, mutual information and rates: by hand, and with intervals that hold for documents."""

import math

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from evenhand.corpus.result_tables import (
    EMPTY_CELL,
    FEW_DOCUMENTS,
    NO_SPREAD,
    log_mutual_information,
    log_odds_ratio,
    log_rate,
    share_estimate,
    to_bits,
    to_ratio,
)
from evenhand.corpus.scan import scan_corpus
from evenhand.stats.intervals import wilson


def column(*parts):
    """A count a block: (value, how many blocks) ..."""
    return np.array([value for value, times in parts for _ in range(times)], dtype=np.int64)


# 200 documents of one sentence: 20 of 100 with the group have the emotion, 10 of 100 without it.
GROUP = column((1, 100), (0, 100))
BOTH = column((1, 20), (0, 180))
BASE = 1 - GROUP
BASE_BOTH = column((0, 100), (1, 10), (0, 90))


def test_an_odds_ratio_by_hand():
    ratio = to_ratio(log_odds_ratio(BOTH, GROUP, BASE_BOTH, BASE))
    # Odds 20/80 against 10/90: 0.25 x 9 = 2.25; where each sentence is a document the error is Woolf's,
    # sqrt(1/20 + 1/80 + 1/10 + 1/90) = 0.4167, times sqrt(200/199); t with 99 degrees of freedom is 1.984.
    assert ratio.value == pytest.approx(2.25)
    factor = math.exp(1.98422 * 0.416667 * math.sqrt(200 / 199))
    assert ratio.low == pytest.approx(2.25 / factor, rel=1e-4)
    assert ratio.high == pytest.approx(2.25 * factor, rel=1e-4)
    assert ratio.p == pytest.approx(0.0550, abs=1e-4)  # t = 0.8109 / 0.4177 = 1.941


def test_sentences_of_one_document_are_one():
    # The same sentences in 20 documents of 10: all emotions with the group in two of them.
    by_ten = [part.reshape(20, 10).sum(axis=1) for part in (BOTH, GROUP, BASE_BOTH, BASE)]
    apart, together = log_odds_ratio(BOTH, GROUP, BASE_BOTH, BASE), log_odds_ratio(*by_ten)
    assert apart.log == together.log
    assert together.error > 2 * apart.error
    # Two blocks add 10/20 - 0, eight -10/80, one -10/10, nine 10/90: squares 0.5 + 0.125 + 1 + 0.111.
    assert together.error == pytest.approx(math.sqrt(20 / 19 * (0.5 + 0.125 + 1 + 1 / 9)))
    assert together.df == pytest.approx(9)  # ten documents name the group


def test_documents_that_stand_twice_say_no_more():
    once, twice = (log_odds_ratio(*(n * part for part in (BOTH, GROUP, BASE_BOTH, BASE))) for n in (1, 2))
    assert to_ratio(once)[:4] == pytest.approx(to_ratio(twice)[:4], rel=1e-12)


def test_mutual_information_by_hand():
    # 10 of 100 have both where 20 have the emotion and 50 the group: chance.
    none = log_mutual_information(
        column((1, 10), (0, 90)),
        column((1, 20), (0, 80)),
        column((1, 10), (0, 10), (1, 40), (0, 40)),
        one(100),
    )
    assert to_bits(none).value == pytest.approx(0)
    # All 20 with the emotion are among the 50 with the group: twice chance, one bit.
    found = log_mutual_information(
        column((1, 20), (0, 80)), column((1, 20), (0, 80)), column((1, 50), (0, 50)), one(100)
    )
    bits = to_bits(found)
    assert bits.value == pytest.approx(1)
    # Influences: 20 documents 1/20 - 1/20 - 1/50 + 1/100, 30 documents -1/50 + 1/100, 50 documents 1/100.
    error = math.sqrt(100 / 99 * (50 * 0.01**2 + 50 * 0.01**2)) / math.log(2)
    assert bits.high - bits.low == pytest.approx(2 * 2.00958 * error, rel=1e-4)  # t, 49 degrees of freedom


def one(times):
    return np.ones(times, dtype=np.int64)


def test_rates_by_hand():
    # Each sentence a document: Wilson's interval with the t quantile.
    found = share_estimate(column((1, 20), (0, 80)), one(100), documents=100)
    expected = wilson(20, 100)
    assert found.value == 0.2
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=2e-3)
    # Ten documents of ten, all or nothing: as ten sentences, so that the interval is much wider.
    clumped = share_estimate(column((10, 2), (0, 8)), column((10, 10)), documents=10)
    assert clumped.high - clumped.low > 2.5 * (found.high - found.low)
    # None seen in 10 documents of 1,000 sentences: no more is known than of ten sentences.
    empty = share_estimate(column((0, 10)), column((1000, 10)), documents=10)
    assert (empty.value, empty.low) == (0, 0)
    assert empty.high == pytest.approx(5.117 / (10 + 5.117), abs=1e-3)  # t^2 / (n + t^2), t = 2.262
    # The same documents three times, in 1,024 blocks of which 10 are filled: about ten different ones.
    copies = share_estimate(column((0, 1024)), column((3000, 10), (0, 1014)), documents=30)
    assert copies.high == pytest.approx(empty.high, abs=3e-3)
    assert to_ratio(log_rate(column((1, 20), (0, 80)), one(100))).value == pytest.approx(0.2)


def test_what_cannot_be_told_is_null_with_a_reason():
    assert to_ratio(log_odds_ratio(0 * BOTH, GROUP, BASE_BOTH, BASE)) == (None, None, None, None, EMPTY_CELL)
    single = [np.array([part.sum()]) for part in (BOTH, GROUP, BASE_BOTH, BASE)]
    assert to_ratio(log_odds_ratio(*single)) == (pytest.approx(2.25), None, None, None, FEW_DOCUMENTS)
    same = [np.repeat(part, 5) for part in single]
    assert to_ratio(log_odds_ratio(*same)).reason == NO_SPREAD
    assert share_estimate(np.array([1]), np.array([5]), documents=1).reason == FEW_DOCUMENTS
    assert share_estimate(np.array([0]), np.array([0]), documents=0).reason == "no units"


@pytest.mark.parametrize(("documents", "sentences"), [(1000, 1), (300, 20), (10, 150)])
def test_intervals_hold_the_truth_as_often_as_they_say(documents, sentences):
    """Documents differ in how much emotion they have: 95 % intervals must cover 95 %, give or take."""
    rng = np.random.default_rng(documents)
    covered, n = 0, 300
    spread = 0.0 if sentences == 1 else 1.0
    for _ in range(n):
        sizes = 1 + rng.poisson(sentences - 1, size=documents)
        chance = 1 / (1 + np.exp(2.2 - spread * rng.standard_normal(documents)))
        group = rng.binomial(sizes, 0.15)
        # One draw decides both sides: no link beyond that of the document.
        link = log_odds_ratio(
            rng.binomial(group, chance), group, rng.binomial(sizes - group, chance), sizes - group
        )
        found = to_ratio(link)
        covered += found.low <= 1 <= found.high
    assert 0.92 <= covered / n <= 0.985


TEXTS = [
    f"{number} She was {'happy' if number % 3 else 'sad'}. He was {'afraid' if number % 7 else 'happy'}! "
    f"Rain fell on {number * number} roofs. {'Joy and fear' if number % 5 == 0 else 'Nothing'} to see."
    for number in range(400)
]


def test_copies_and_order_change_no_interval(tmp_path):
    rng = np.random.default_rng(1)
    runs = {}
    for name, texts in {
        "once": TEXTS,
        "shuffled": rng.permutation(TEXTS).tolist(),
        "twice": [*TEXTS, *TEXTS],
    }.items():
        (tmp_path / f"{name}.txt").write_text("\n\n".join(texts))
        runs[name] = scan_corpus(f"c={tmp_path / name}.txt", out=tmp_path / name, samples=0)
    tables = {name: run.table("cooccurrence") for name, run in runs.items()}
    assert_frame_equal(tables["once"], tables["shuffled"])
    same = ["odds_ratio", "low", "high", "pmi", "pmi_low", "pmi_high", "p", "percent", "per_million"]
    assert_frame_equal(tables["once"].select(same), tables["twice"].select(same), rel_tol=1e-12)
    assert tables["twice"]["count"].to_list() == [2 * n for n in tables["once"]["count"]]
    assert tables["once"].filter(pl.col("low").is_not_null()).height > 0
    assert runs["once"].manifest["corpora"]["c"]["documents"] == {"empty line": 400}


@pytest.mark.parametrize(
    ("cluster", "expected"), [(None, {"line": 400}), ("document", {"empty line": 1}), ("file", {"file": 1})]
)
def test_text_without_empty_lines(tmp_path, cluster, expected):
    (tmp_path / "t.txt").write_text("\n".join(TEXTS))
    run = scan_corpus(tmp_path / "t.txt", out=tmp_path / "run", cluster=cluster)
    assert run.manifest["corpora"]["t"]["documents"] == expected
    table = run.table("cooccurrence").filter(pl.col("odds_ratio").is_not_null())
    if cluster is None:
        assert table["low"].is_not_null().all()
    else:
        assert set(table["null_reason"]) == {FEW_DOCUMENTS}


def test_corpora_are_set_against_the_first(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(TEXTS))
    (tmp_path / "b.txt").write_text("\n".join(text.replace("afraid", "happy") for text in TEXTS))
    paths = [f"{name}={tmp_path / file}.txt" for name, file in (("a", "a"), ("b", "b"), ("again", "a"))]
    table = scan_corpus(paths, out=tmp_path / "run").table("contrasts")
    rates = table.filter(pl.col("group") == "")
    assert set(table["corpus"]) == {"b", "again"}
    assert set(table["baseline"]) == {"a"}
    # Of 400 texts, a has joy in 266 (not every third) + 58 (every seventh) + 80 (every fifth) sentences,
    # b in the 342 others of the second kind too.
    joy = rates.filter((pl.col("corpus") == "b") & (pl.col("emotion") == "joy")).row(0, named=True)
    assert joy["ratio"] == pytest.approx((404 + 342) / 404)
    assert joy["low"] > 1
    # The same documents under another name: no difference, and no spread that would allow one.
    again = table.filter(pl.col("corpus") == "again").filter(pl.col("ratio").is_not_null())
    assert again["ratio"].to_list() == pytest.approx([1.0] * again.height)
    assert set(again["null_reason"]) == {NO_SPREAD}
