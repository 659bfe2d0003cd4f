"""Published numbers, and reference values of an independent implementation, on the papers' own data."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from scipy.stats import spearmanr
from tests.oracles.unigram import mask_profession_slowly

from evenhand.core.records import Mention, Text
from evenhand.metrics.gender_polarity import GenderPolarity
from evenhand.metrics.sentiment import LABELS, Sentiment
from evenhand.text.rendering import mask_mentions

SENTIMENT = Sentiment()
GENDER_POLARITY = GenderPolarity()

TABLE_3 = {
    "arts": (
        "dance_occupations film_and_television_occupations artistic_occupations entertainer_occupations "
        "writing_occupations theatre_personnel"
    ),
    "science": "engineering_branches scientific_occupations computer_occupations",
    "industrial": (
        "metalworking_occupations industrial_occupations railway_industry_occupations sewing_occupations"
    ),
    "healthcare": "healthcare_occupations nursing_specialties mental_health_occupations",
}


def bold(data: Path, domain: str) -> list[dict[str, str]]:
    with (data / "bold" / f"{domain}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def classes(texts: Iterable[str], output: str) -> tuple[int, ...]:
    """How many texts are negative, neutral, positive."""
    counts = Counter(row[output].label for row in SENTIMENT.score([Text(text) for text in texts]))
    return tuple(counts[label] for label in LABELS)


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        ("gender", {"American_actors": (106, 1600, 342), "American_actresses": (36, 897, 223)}),
        (
            "race",
            {
                "African_Americans": (128, 1428, 298),
                "Asian_Americans": (31, 637, 193),
                "European_Americans": (314, 3797, 728),
                "Hispanic_and_Latino_Americans": (6, 80, 17),
            },
        ),
    ],
)
def test_vader_on_unmasked_wikipedia_sentences(
    data: Path, domain: str, expected: dict[str, tuple[int, ...]]
) -> None:
    texts = defaultdict(list)
    for row in bold(data, domain):
        texts[row["group"]].append(row["wiki"])
    assert {group: classes(found, "compound") for group, found in texts.items()} == expected


def masked_profession(row: dict[str, str]) -> str:
    key = re.sub(r"\(.*?\)", "", row["key"].replace("_", " ")).strip()
    return mask_mentions(row["wiki"], [Mention(key, whole_word=False)]).text


def test_table_3_of_bold_unigram_matching(data: Path) -> None:
    labels: dict[str, Counter[str | None]] = defaultdict(Counter)
    merged = {group: name for name, groups in TABLE_3.items() for group in groups.split()}
    for row in bold(data, "profession"):
        value = GENDER_POLARITY.score([Text(masked_profession(row))])[0]["unigram"]
        labels[merged.get(row["group"], "none")][value.label] += 1
    del labels["none"]
    assert {name: found.total() for name, found in labels.items()} == {
        "arts": 3009,
        "science": 4153,
        "industrial": 1699,
        "healthcare": 1173,
    }
    assert {name: (found["male"], found["female"]) for name, found in labels.items()} == {
        "arts": (102, 66),
        "science": (54, 6),
        "industrial": (23, 17),
        "healthcare": (3, 19),
    }


def test_masking_follows_the_recipe_of_the_profession_golden(data: Path) -> None:
    rows = bold(data, "profession")
    assert [masked_profession(row) for row in rows] == [
        mask_profession_slowly(row["wiki"], row["key"]) for row in rows
    ]


OCCUPATION = re.compile(
    r"XYZ (worked as|had a job as|had a part-time job as|earned money by|started working as)\b"
)


def context(text: str) -> str:
    return "occupation" if OCCUPATION.match(text) else "respect"


def cut_at_period(text: str) -> str:
    """The rule behind the reference values: "in the U.S. army" is cut after "U."."""
    head, stop, _ = text.partition(".")
    return head + stop


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n")


def test_vader_on_the_released_gpt2_samples(data: Path) -> None:
    texts = defaultdict(list)
    raw = lines(data / "regard" / "gpt2_samples.tsv")
    for text, masked in zip(raw, lines(data / "regard" / "gpt2_samples.XYZ.tsv"), strict=True):
        group = re.match(r"The (\w+)", text)
        assert group
        texts[context(masked), group[1]].append(cut_at_period(masked))
    counts = {key: classes(found, "compound@0.05") for key, found in texts.items()}
    assert {key: counts[key] for key in EXPECTED_SAMPLES} == EXPECTED_SAMPLES


EXPECTED_SAMPLES = {
    ("respect", "Black"): (190, 172, 138),
    ("respect", "White"): (102, 154, 244),
    ("respect", "man"): (139, 188, 173),
    ("respect", "woman"): (111, 169, 220),
    ("occupation", "gay"): (55, 370, 75),
    ("occupation", "straight"): (47, 338, 115),
}


def annotated(data: Path, name: str) -> dict[str, int]:
    """Text to label; one text of the training files stands there twice and counts once."""
    files = (data / "regard" / f"{name}_{part}.tsv" for part in ("train", "dev", "test"))
    rows = (line.split("\t") for file in files for line in lines(file))
    return {text: int(label) for label, text in rows}


def agreement(rows: Sequence[tuple[str, int]]) -> float:
    scored = SENTIMENT.score([Text(text) for text, _ in rows])
    predicted = [LABELS.index(row["compound@0.05"].label or "") - 1 for row in scored]
    return round(float(spearmanr(predicted, [label for _, label in rows]).statistic), 4)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("sentiment", (0.7907, 0.6639, 0.7231)), ("regard", (0.6873, 0.5143, 0.6076))],
)
def test_vader_against_the_regard_annotations(
    data: Path, name: str, expected: tuple[float, float, float]
) -> None:
    rows = list(annotated(data, name).items())
    respect = [row for row in rows if context(row[0]) == "respect"]
    occupation = [row for row in rows if context(row[0]) == "occupation"]
    assert (agreement(respect), agreement(occupation), agreement(rows)) == expected
