"""Articles as the political paper prepares them, and its rivals' table."""

import csv
import json

import pytest

from evenhand.training.articles import clean_text, compare_classifiers, comparison_table, main, split_openings
from evenhand.training.ideology_words import LabelledArticle


def article(number, *, right):
    source = "Fox News (Online)" if right else "CNN"
    return LabelledArticle(f"({source}) - Story {number}: a vote, isn't it?", right, source)


ARTICLES = [article(n, right=False) for n in range(40)] + [article(n + 100, right=True) for n in range(20)]


def test_cleaning_by_hand():
    assert clean_text("(CNN) - A vote: yes! Cnnish", ["CNN"]) == "A vote yes! Cnnish"
    assert clean_text("one, two. " * 100, []).count("one") == 25  # four tokens each, 100 in all
    assert clean_text("--- ()", []) == ""


def test_sides_are_balanced_and_parts_disjoint():
    parts = split_openings(ARTICLES, seed=0)
    # 20 of each side: 14, 3 and 3 of either.
    assert {part: len(rows) for part, rows in parts.items()} == {"train": 28, "valid": 6, "test": 6}
    for rows in parts.values():
        assert sum(row.label == "liberal" for row in rows) == len(rows) / 2
    texts = [row.text for rows in parts.values() for row in rows]
    assert len(set(texts)) == len(texts)
    assert not any("CNN" in text or "Fox" in text for text in texts)
    assert parts == split_openings(ARTICLES, seed=0)


def test_rivals_by_hand(tmp_path):
    test = split_openings(ARTICLES, seed=0)["test"]
    for name, says in {"good": lambda row: row.label, "dull": lambda row: "liberal"}.items():
        (tmp_path / name).mkdir()
        with (tmp_path / name / "predictions.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["part", "text", "label", "said"])
            rows.writerows(["test", row.text, row.label, says(row)] for row in test)
    good, dull = compare_classifiers(test, {name: tmp_path / name for name in ("dull", "good")})
    assert (good.name, good.f1, good.low, good.n) == ("good", 1.0, 1.0, 6)
    # Always liberal: F1 of liberal 2 * 3 / (6 + 3) = 2/3, of conservative 0; the mean is 1/3.
    assert dull.f1 == pytest.approx(1 / 3)
    assert dull.by_outlet == {"cnn": (1.0, 3), "fox": (0.0, 3)}
    assert 0 <= dull.low <= dull.f1 <= dull.high < 1
    assert "| fox | 3 | 1.000 | 0.000 |" in comparison_table([good, dull])
    assert "| good | 6 | 1.000 (1.000 to 1.000) |" in comparison_table([good, dull])


def test_articles_the_judge_has_not_learned_from(tmp_path):
    def row(text, label):
        return json.dumps({"text": text, "label": label, "source": "CNN"})

    learned = [f"The committee met on day {n} to hear witness number {n} speak of taxes" for n in range(30)]
    told = [f"A storm of size {n} came over town {n} and took {n} roofs with it last night" for n in range(4)]
    folder = tmp_path / "ideology"
    folder.mkdir()
    (folder / "train.jsonl").write_text("\n".join(row(text, 0) for text in learned) + "\n")
    # The last one nearly repeats an article of the training part: it is no stranger.
    (folder / "valid.jsonl").write_text(
        "\n".join(row(text, 1) for text in [*told, learned[0] + " again"]) + "\n"
    )
    main(["unread", str(tmp_path), "--out", str(tmp_path / "others.jsonl")])
    found = [json.loads(line) for line in (tmp_path / "others.jsonl").read_text().splitlines()]
    assert [one["text"] for one in found] == told
    assert {one["label"] for one in found} == {"conservative"}


def test_the_command_writes_three_tables(tmp_path):
    source = tmp_path / "a.jsonl"
    rows = [{"text": a.text, "label": int(a.conservative), "source": a.source} for a in ARTICLES]
    source.write_text("\n".join(map(json.dumps, rows)))
    main(["prepare", str(source), "--out", str(tmp_path / "data")])
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [
        "test.csv",
        "train.csv",
        "valid.csv",
    ]
