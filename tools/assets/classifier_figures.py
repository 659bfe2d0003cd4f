"""The figures of the classifiers' cards: what was trained against its yardsticks, on the same held-out texts.

Run as ``python -m tools.assets.classifier_figures --model DIR --data DIR --run DIR --packed DIR --out
FILE`` after ``classifier_ship``; the tables are written in Markdown.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from evenhand.classifiers.encoder import (
    EMOTION,
    HEADS,
    INTENSITY,
    REGARD,
    Head,
    count_logits,
    head_columns,
    to_probabilities,
)
from evenhand.classifiers.text_classifier import TextClassifier
from evenhand.core.files import asset_path
from evenhand.training import labelled_data
from evenhand.training.labelled_data import Example
from evenhand.training.linear_text import (
    Features,
    fit_logistic_regression,
    hashed_ngrams,
    inverse_frequency,
    weight_columns,
)
from evenhand.training.test_measures import (
    Floats,
    MeasuredValue,
    bootstrap_measure,
    calibration_error,
    macro_f1,
    roc_auc,
)
from tools.assets import labelled_corpora
from tools.assets.classifier_data import Packed

ROUNDS: Final = 1000
"""Times texts are drawn anew for an interval."""
_PRONOUNS: Mapping[str, tuple[str, str]] = {"he": ("him", "his"), "she": ("her", "her")}


def accuracy(predicted: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """The share of texts with the correct label."""
    return float((predicted == truth).mean())


def pearson(predicted: Floats, truth: Floats) -> float:
    """The linear correlation, -1 to 1."""
    return float(np.corrcoef(predicted, truth)[0, 1])


@dataclass(frozen=True, slots=True)
class Answered:
    """Texts, what people said of them, and what a classifier said."""

    examples: Sequence[Example]
    said: Floats
    heads: tuple[Head, ...]

    @classmethod
    def of(cls, classifier: TextClassifier, examples: Sequence[Example]) -> Answered:
        """The answers of a classifier."""
        said = classifier.probabilities([example.text for example in examples])
        return cls(examples, said.astype(np.float64), classifier.heads)

    def head(self, name: str) -> Floats:
        """The columns of one head."""
        return self.said[:, head_columns(name, self.heads)]

    def truth(self, name: str, label: int) -> Floats:
        """The target of one label; NaN where nobody said."""
        found = [example.targets.get(name, (None,) * (label + 1))[label] for example in self.examples]
        return np.array([np.nan if value is None else value for value in found])

    def classes(self, name: str) -> NDArray[np.int64]:
        """The label people chose; -1 where nobody said."""
        chosen = [example.targets.get(name) for example in self.examples]
        return np.array([-1 if row is None else int(np.argmax([v or 0.0 for v in row])) for row in chosen])


def regard_figures(answers: Answered, *, rounds: int = ROUNDS) -> dict[str, MeasuredValue]:
    """Accuracy with four labels (``other`` by majority only), and among the three of the published data."""
    measure = partial(bootstrap_measure, rounds=rounds)
    said, truth = answers.head("regard"), answers.classes("regard")
    three = said[:, :3].argmax(1)
    four = np.where(said[:, REGARD.labels.index("other")] >= 0.5, 3, three)
    right = said.argmax(1) == truth
    return {
        "accuracy": measure(accuracy, four, truth),
        "accuracy of three labels": measure(accuracy, three, truth),
        "macro-F1 of three labels": measure(macro_f1, three, truth),
        "ECE": measure(calibration_error, said.max(1), right.astype(np.float64)),
    }


def yes_or_no_figures(answers: Answered, head: str, *, rounds: int = ROUNDS) -> dict[str, MeasuredValue]:
    """ROC-AUC, macro-F1 at 0.5 and calibration of a head's first label."""
    measure = partial(bootstrap_measure, rounds=rounds)
    said, truth = answers.head(head)[:, 0], answers.truth(head, 0)
    yes = truth > 0.5
    return {
        "ROC-AUC": measure(roc_auc, said, yes),
        "macro-F1": measure(macro_f1, (said >= 0.5).astype(np.int64), yes.astype(np.int64)),
        "ECE": measure(calibration_error, said, truth),
    }


def emotion_figures(answers: Answered, *, rounds: int = ROUNDS) -> dict[str, MeasuredValue]:
    """Per emotion ROC-AUC of its presence and correlation with its grade; accuracy of the leading emotion.

    The leading emotion, one of four, is asked of tweets in which just one emotion was graded highest; then of
    those that were graded for one emotion only.
    """
    measure = partial(bootstrap_measure, rounds=rounds)
    found: dict[str, MeasuredValue] = {}
    for place, kind in enumerate(INTENSITY.labels):
        truth = answers.truth("intensity", place)
        known = ~np.isnan(truth)
        said, grade = answers.head("intensity")[known, place], truth[known]
        found[f"{kind}: ROC-AUC"] = measure(roc_auc, said, grade > 0)
        found[f"{kind}: Pearson r"] = measure(pearson, said, grade)
        found[f"{kind}: ECE"] = measure(calibration_error, said, grade)
    classes = answers.classes("emotion")
    leading = answers.head("emotion")[:, : len(EMOTION.labels) - 1].argmax(1)
    graded = np.array([_graded(example) for example in answers.examples])
    for name, chosen in (("one leads", classes >= 0), ("one graded", (classes >= 0) & (graded == 1))):
        found[f"accuracy, {name}"] = measure(accuracy, leading[chosen], classes[chosen])
    return found


class Gap(NamedTuple):
    """How much a group moves an answer."""

    axis: str
    group: str
    baseline: str
    output: str
    difference: float
    """Mean over templates of group minus baseline."""
    low: float
    high: float
    largest: float
    """The template moved most, with its sign."""


def group_gaps(classifier: TextClassifier, *, path: Path | None = None) -> list[Gap]:
    """Differences of every answer between two groups in the same sentences, with intervals over templates."""
    data = json.loads((path or asset_path("classifiers", "pairs.json")).read_text(encoding="utf-8"))
    said = {
        name: classifier.probabilities([fill(text, who, pronoun) for text in data["templates"]]).astype(float)
        for name, (who, pronoun) in data["people"].items()
    }
    outputs = [f"{head.name}.{label}" for head in classifier.heads for label in head.labels]
    return [
        gap
        for axis, group, baseline in data["pairs"]
        for gap in _gaps((axis, group, baseline), outputs, said[group] - said[baseline])
    ]


def fill(template: str, who: str, pronoun: str) -> str:
    """The template about a person.

    >>> fill("{Who} lost {their} hat.", "the man", "he")
    'The man lost his hat.'
    """
    them, their = _PRONOUNS[pronoun]
    return template.format(who=who, Who=who[0].upper() + who[1:], they=pronoun, them=them, their=their)


def _gaps(place: tuple[str, str, str], outputs: Sequence[str], differences: Floats) -> Iterator[Gap]:
    templates = len(differences)
    drawn = np.random.default_rng(0).integers(0, templates, (ROUNDS, templates))
    low, high = np.quantile(differences[drawn].mean(1), [0.025, 0.975], axis=0)
    largest = differences[np.abs(differences).argmax(0), np.arange(len(outputs))]
    for column, output in enumerate(outputs):
        mean = float(differences[:, column].mean())
        yield Gap(*place, output, mean, float(low[column]), float(high[column]), float(largest[column]))


def _graded(example: Example) -> int:
    return sum(value is not None for value in example.targets.get("intensity", ()))


TESTS: Final = {
    "regard": ("regard-302", "test"),
    "toxicity": ("jigsaw", "test"),
    "known": ("articles", "known"),
    "unseen": ("articles", "unseen"),
    "emotion": ("tweets", "test"),
}
"""Data set and split of each held-out test."""
LEARNED: Final = ("train", "valid")
"""What the linear yardsticks learn from."""
STRENGTH: Final = 4.0
"""C of the linear yardsticks."""


def headline(answers: Answered, *, rounds: int = ROUNDS) -> dict[str, MeasuredValue]:
    """One number a test, with its interval; a test nobody answered is left out."""
    measure = partial(bootstrap_measure, rounds=rounds)
    parts = {name: part(answers, *place) for name, place in TESTS.items()}
    found = {}
    if parts["regard"].examples:
        said, truth = parts["regard"].head("regard")[:, :3].argmax(1), parts["regard"].classes("regard")
        found["regard, accuracy, three labels"] = measure(accuracy, said, truth)
    if parts["toxicity"].examples:
        toxic = parts["toxicity"].truth("toxicity", 0) > 0.5
        found["toxicity, ROC-AUC"] = measure(roc_auc, parts["toxicity"].head("toxicity")[:, 0], toxic)
    for name in ("known", "unseen"):
        if parts[name].examples:
            yes = (parts[name].head("ideology")[:, 0] >= 0.5).astype(np.int64)
            truth = parts[name].truth("ideology", 0).astype(np.int64)
            found[f"ideology, macro-F1, {name} outlets"] = measure(macro_f1, yes, truth)
    if parts["emotion"].examples:
        found |= _emotion_headline(parts["emotion"], rounds)
    return found


def part(answers: Answered, corpus: str, split: str) -> Answered:
    """The answers on one data set's split."""
    chosen = [
        place for place, one in enumerate(answers.examples) if (one.corpus, one.split) == (corpus, split)
    ]
    return Answered([answers.examples[place] for place in chosen], answers.said[chosen], answers.heads)


def packed_answers(packed: Packed, places: NDArray[np.int64], logits: NDArray[np.floating]) -> Answered:
    """Logits that a training wrote for the packed texts at ``places``, as probabilities."""
    examples = [
        Example("", str(packed.corpus[at]), str(packed.split[at]), _targets(packed.targets[at]))
        for at in places
    ]
    said = to_probabilities(torch.from_numpy(logits.astype(np.float32))).numpy()
    return Answered(examples, said.astype(np.float64), HEADS)


def linear_answers(
    features: Features, examples: Sequence[Example], *, strength: float = STRENGTH
) -> Answered:
    """Answers of logistic regressions, one a question, each fitted on its own data set.

    Nothing is chosen or calibrated, so the texts kept for that are learned from too.
    """
    said = np.full((len(examples), count_logits()), 0.5)
    answers = Answered(examples, said, HEADS)
    train = np.array([one.split in LEARNED for one in examples])
    corpus = np.array([one.corpus for one in examples])
    for head, source, labels in (("regard", "regard", 3), ("emotion", "tweets", 4)):
        truth = answers.classes(head)
        rows = np.flatnonzero(train & (corpus == source) & (truth >= 0) & (truth < labels))
        model = fit_logistic_regression(features[rows], truth[rows], classes=labels, strength=strength)
        start = head_columns(head).start
        said[:, start : start + labels] = model.probabilities(features)
    single = [("toxicity", 0, "jigsaw"), ("ideology", 0, "articles")]
    for head, label, source in [*single, *(("intensity", n, "tweets") for n in range(len(INTENSITY.labels)))]:
        given = answers.truth(head, label)
        rows = np.flatnonzero(train & (corpus == source) & ~np.isnan(given))
        model = fit_logistic_regression(features[rows], (given[rows] > 0).astype(np.int64), strength=strength)
        said[:, head_columns(head).start + label] = model.probabilities(features)[:, 0]
    return answers


def ngram_answers(examples: Sequence[Example]) -> Answered:
    """The hashed n-gram yardstick."""
    counted = hashed_ngrams([one.text for one in examples])
    train = np.flatnonzero([one.split in LEARNED for one in examples])
    return linear_answers(weight_columns(counted, inverse_frequency(counted[train])), examples)


def yardsticks(run: Path, packed: Path) -> Iterator[tuple[str, Answered]]:
    """(name, answers) of all a training left: frozen features, the masked trunk, teachers, a student."""
    texts = Packed.load(packed / "labelled.npz")
    with np.load(run / "vectors.npz") as frozen:
        places, vectors = frozen["places"], frozen["vectors"].astype(np.float64) / 508
    blank = packed_answers(texts, places, np.zeros((len(places), count_logits())))
    yield "MiniLM frozen", linear_answers(vectors, blank.examples)
    with np.load(run / "masked.npz") as masked:
        other = Packed.load(packed / "masked.npz")
        yield "`builtin:masked` tuned", packed_answers(other, masked["places"], masked["masked"])
    with np.load(run / "answers.npz") as answers:
        places = answers["places"]
        teachers = [
            packed_answers(texts, places, answers[n]) for n in answers.files if n.startswith("teacher")
        ]
        mean = np.mean([one.said for one in teachers], axis=0)
        yield f"MiniLM tuned (mean of {len(teachers)})", Answered(teachers[0].examples, mean, HEADS)
        yield "student without teachers", packed_answers(texts, places, answers["student-plain"])


def held_out(data: Path) -> list[Example]:
    """The texts of every test, and those the n-gram yardstick learns from."""
    tweets = [one for one in labelled_corpora.emotion(data) if one.corpus == "tweets"]
    regard = [
        *labelled_corpora.regard(asset_path("regard", "regard.jsonl")),
        *labelled_corpora.published_regard(data),
    ]
    return [*regard, *labelled_corpora.toxicity(data), *labelled_data.ideology(data), *tweets]


def table(columns_: Mapping[str, Mapping[str, MeasuredValue]]) -> str:
    """A Markdown table: one row a test, one column a model."""
    tests = list(dict.fromkeys(test for found in columns_.values() for test in found))
    lines = [f"| held-out test | n | {' | '.join(columns_)} |", "| --- |" + " ---: |" * (len(columns_) + 1)]
    for test in tests:
        count = next(found[test].n for found in columns_.values() if test in found)
        cells = [format_measured(found[test]) if test in found else "" for found in columns_.values()]
        lines.append(f"| {test} | {count:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def format_measured(value: MeasuredValue) -> str:
    """A number and its interval.

    >>> format_measured(MeasuredValue(0.8, 0.75, 0.85, 10))
    '0.800 (0.750 to 0.850)'
    """
    return f"{value.value:.3f} ({value.low:.3f} to {value.high:.3f})"


def report(model: Path, data: Path, run: Path, packed: Path, *, rounds: int = ROUNDS) -> str:
    """All tables in Markdown."""
    classifier = TextClassifier(model, device=torch.device("cpu"))
    examples = held_out(data)
    tested = [one for one in examples if (one.corpus, one.split) in TESTS.values()]
    ours = Answered.of(classifier, tested)
    found = {"hashed n-grams": headline(ngram_answers(examples), rounds=rounds)}
    found |= {name: headline(answers, rounds=rounds) for name, answers in yardsticks(run, packed)}
    found["shipped"] = headline(ours, rounds=rounds)
    title = f"# Classifiers of digest `{classifier.digest}`\n"
    return "\n".join([title, table(found), *_details(ours, rounds), _gap_table(classifier)])


def main(argv: list[str] | None = None) -> None:
    """Write the tables from the command line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    for name, told in (
        ("model", "the shipped classifier"),
        ("data", "the labelled data sets"),
        ("run", "what `classifiers` and `masked_yardstick` wrote"),
        ("packed", "what `classifier_pack` wrote"),
        ("out", "the Markdown file to write"),
    ):
        parser.add_argument(f"--{name}", type=Path, required=True, help=told)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="times texts are drawn for an interval")
    args = parser.parse_args(argv)
    text = report(args.model, args.data, args.run, args.packed, rounds=args.rounds)
    args.out.write_text(text, encoding="utf-8")


def _details(ours: Answered, rounds: int) -> Iterator[str]:
    """A section a head, with every figure of the shipped classifier."""
    figures = {
        "regard": regard_figures(part(ours, *TESTS["regard"]), rounds=rounds),
        "toxicity": yes_or_no_figures(part(ours, *TESTS["toxicity"]), "toxicity", rounds=rounds),
        "emotion": emotion_figures(part(ours, *TESTS["emotion"]), rounds=rounds),
    }
    for name in ("known", "unseen"):
        found = yes_or_no_figures(part(ours, *TESTS[name]), "ideology", rounds=rounds)
        figures[f"ideology, {name} outlets"] = found
    for name, values in figures.items():
        rows = [f"| {figure} | {value.n:,} | {format_measured(value)} |" for figure, value in values.items()]
        yield "\n".join([f"## {name}\n", "| | n | |", "| --- | ---: | ---: |", *rows]) + "\n"


def _gap_table(classifier: TextClassifier) -> str:
    rows = [
        f"| {gap.axis} | {gap.group} - {gap.baseline} | {gap.output} | {gap.difference:+.3f} "
        f"({gap.low:+.3f} to {gap.high:+.3f}) | {gap.largest:+.3f} |"
        for gap in group_gaps(classifier)
    ]
    head = "| axis | groups | output | mean difference | largest |\n| --- | --- | --- | ---: | ---: |"
    return "\n".join(["## Its own bias\n", head, *rows]) + "\n"


def _emotion_headline(answers: Answered, rounds: int) -> dict[str, MeasuredValue]:
    measure = partial(bootstrap_measure, rounds=rounds)
    truth = np.stack([answers.truth("intensity", n) for n in range(len(INTENSITY.labels))], 1)
    classes = answers.classes("emotion")
    leads = classes >= 0
    leading = answers.head("emotion")[leads, : len(INTENSITY.labels)].argmax(1)
    said = answers.head("intensity")
    return {
        "emotion, leading emotion of tweets, accuracy": measure(accuracy, leading, classes[leads]),
        "emotion, presence, mean ROC-AUC of four": measure(_mean_auc, said, truth),
    }


def _mean_auc(said: Floats, truth: Floats) -> float:
    """The mean over emotions of ROC-AUC among the tweets graded for it."""
    known = ~np.isnan(truth)
    return float(np.mean([roc_auc(said[k, n], truth[k, n] > 0) for n, k in enumerate(known.T)]))


def _targets(row: NDArray[np.float32]) -> dict[str, tuple[float | None, ...]]:
    parts = {head.name: row[head_columns(head.name)] for head in HEADS}
    return {
        name: tuple(None if np.isnan(value) else float(value) for value in values)
        for name, values in parts.items()
        if not np.isnan(values).all()
    }


if __name__ == "__main__":
    main()
