"""Manifests with every key that a report draws, and run folders with given tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from evenhand.core.records import REST
from evenhand.store.run import FORMAT, Run
from evenhand.store.schemas import check_table

AXES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "gender": ("American_actors", ("American_actors", "American_actresses")),
    "race": (
        "European_Americans",
        ("African_Americans", "Asian_Americans", "European_Americans", "Hispanic_and_Latino_Americans"),
    ),
    "profession": (
        REST,
        (
            "artistic_occupations",
            "computer_occupations",
            "corporate_titles",
            "dance_occupations",
            "engineering_branches",
            "entertainer_occupations",
            "film_and_television_occupations",
            "healthcare_occupations",
            "industrial_occupations",
            "mental_health_occupations",
            "metalworking_occupations",
            "nursing_specialties",
            "professional_driver_types",
            "railway_industry_occupations",
            "scientific_occupations",
            "sewing_occupations",
            "theatre_personnel",
            "writing_occupations",
        ),
    ),
    "religious_ideology": (
        REST,
        ("atheism", "buddhism", "christianity", "hinduism", "islam", "judaism", "sikhism"),
    ),
    "political_ideology": (
        REST,
        (
            "anarchism",
            "capitalism",
            "communism",
            "conservatism",
            "democracy",
            "fascism",
            "left-wing",
            "liberalism",
            "nationalism",
            "populism",
            "right-wing",
            "socialism",
        ),
    ),
}
PRIMARY = {"sentiment": ["negative", "positive"], "gender_polarity": ["female", "male"]}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to simulate."""

    axes: Mapping[str, tuple[str, tuple[str, ...]]]
    clusters: int = 10
    samples: int = 5
    seed: int = 7


def write_run(folder: Path, content: Mapping[str, object], tables: Mapping[str, pl.DataFrame]) -> Run:
    """A run folder with these tables."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(content), encoding="utf-8")
    for name, table in tables.items():
        check_table(name, table).write_parquet(folder / f"{name}.parquet")
    return Run.open(folder)


def manifest(plan: Plan | None = None) -> dict[str, object]:
    """A manifest with every key the report draws."""
    plan = plan or Plan(AXES)
    return {
        "format": FORMAT,
        "package": "0.1.0",
        "command": "evenhand audit gpt2 --suite starter --metrics sentiment,gender_polarity --seed 0",
        "name": "gpt2",
        "created": "2026-03-02T09:14:03Z",
        "ended": "2026-03-02T09:16:41Z",
        "identity": {
            "model": {
                "backend": "causal",
                "name": "gpt2",
                "revision": "607a30d783dfa663caf39e06633721c8d4cfcd7e",
                "options": {"dtype": "float32", "tokenizer": "9c41f6e1"},
            },
            "suites": {
                "starter": {
                    "version": "1",
                    "digest": "5b1f0c9a7d2e4f60",
                    "sampling": {
                        "max_new_tokens": 30,
                        "temperature": 1.0,
                        "top_k": 40,
                        "top_p": 0.95,
                        "repetition_penalty": 1.0,
                        "control_code": None,
                        "stop": "sentence",
                        "seed": 0,
                    },
                }
            },
            "compare": {"mask": "paper", "baselines": {}, "level": 0.95, "correction": "bh"},
        },
        "growth": [{"limit": None, "samples": plan.samples}],
        "execution": {"device": "cpu", "batch": 32, "workers": 1},
        "hardware": {"cpu": "x86_64", "cores": 2, "python": "3.11.9", "platform": "Linux-6.1-x86_64"},
        "metrics": {"sentiment": _sentiment_card(), "gender_polarity": _polarity_card()},
        "suites": {
            "starter": {
                "summary": "Openings about 43 groups in 5 domains, ten a group, six to nine words each.",
                "baselines": {axis: baseline for axis, (baseline, _) in plan.axes.items()},
                "cluster": "template",
                "citation": "",
                "licence": "Apache-2.0",
                "notes": ["Ten prompts a group show large gaps only; use bold for published numbers."],
            }
        },
        "stages": {
            "generate": _stage("09:14:03", "09:15:34", items=texts_in(plan), failed=3),
            "score": _stage("09:15:34", "09:16:40", items=texts_in(plan), failed=0),
            "compare": _stage("09:16:40", "09:16:41", comparisons=16 * groups_in(plan)),
        },
        "warnings": ["12 texts name no group and were scored without a mask."],
    }


def emptied() -> dict[str, object]:
    """The manifest with nothing in it that may be left out: parts are empty, the rest is null."""
    full = manifest()
    parts = {key: type(value)() for key, value in full.items() if isinstance(value, dict | list)}
    return dict.fromkeys(full) | parts | {"format": full["format"], "execution": None}


def _stage(started: str, ended: str, **counts: int) -> dict[str, object]:
    times = {"started": f"2026-03-02T{started}Z", "ended": f"2026-03-02T{ended}Z"}
    return {"state": "done", **times, **counts}


def groups_in(plan: Plan) -> int:
    return sum(len(groups) for _, groups in plan.axes.values())


def texts_in(plan: Plan) -> int:
    return groups_in(plan) * plan.clusters * plan.samples


def _sentiment_card() -> dict[str, object]:
    labels = ["negative", "neutral", "positive"]
    return {
        "name": "sentiment",
        "version": "1 (vaderSentiment 3.3.2)",
        "summary": "How warm or hostile the wording is, from a lexicon of rated words.",
        "primary": PRIMARY["sentiment"],
        "scope": "full",
        "masking": "person",
        "null_when": "the text is empty",
        "citation": "Hutto and Gilbert 2014",
        "deviations": "",
        "weights": "7c1d3f0a9be24c55",
        "outputs": [
            _output("compound", "a warmer text", -1, 1, labels, "{label}"),
            _output("compound@0.05", "a warmer text", -1, 1, labels, "{label}@0.05"),
        ],
    }


def _polarity_card() -> dict[str, object]:
    labels = ["male", "neutral", "female"]
    return {
        "name": "gender_polarity",
        "version": "1",
        "summary": "Whether the words of a text are more often used of women or of men.",
        "primary": PRIMARY["gender_polarity"],
        "scope": "full",
        "masking": "xyz",
        "null_when": "the text has no words",
        "citation": "Dhamala et al. 2021",
        "deviations": "Ties are neutral.",
        "weights": "",
        "outputs": [
            _output("unigram", "more female words", None, None, labels, "{label}"),
            _output("wavg", "more female words", -1, 1, labels, "{label}@wavg"),
        ],
    }


def _output(
    name: str, larger: str, low: float | None, high: float | None, labels: list[str], share: str
) -> dict[str, object]:
    return {
        "name": name,
        "kind": "continuous",
        "larger_means": larger,
        "low": low,
        "high": high,
        "labels": labels,
        "share": share,
    }
