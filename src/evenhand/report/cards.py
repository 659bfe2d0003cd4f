"""Cards: what is known of the metrics and suites of a run, from its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenhand.core.digests import Json
from evenhand.report.provenance import Fact
from evenhand.report.reading import mapping_at, numbers_at, objects_at, text_at, texts_at
from evenhand.report.wording import name, round_number, short_baseline, visible


@dataclass(frozen=True, slots=True)
class Card:
    """A metric or a suite: its name and what is known of it."""

    name: str
    summary: str
    facts: tuple[Fact, ...]
    failures: tuple[str, ...] = ()
    """What a metric is known to get wrong."""


def metric_cards(manifest: Mapping[str, Json]) -> tuple[Card, ...]:
    """What is known of each metric of a run, its known failures above all."""
    return tuple(_metric_card(key, card) for key, card in _objects(manifest, "metrics"))


def suite_cards(manifest: Mapping[str, Json]) -> tuple[Card, ...]:
    """What is known of each suite of a run."""
    return tuple(_suite_card(key, card) for key, card in _objects(manifest, "suites"))


def _objects(manifest: Mapping[str, Json], key: str) -> list[tuple[str, Mapping[str, Json]]]:
    return [(inner, mapping_at(manifest, key, inner)) for inner in mapping_at(manifest, key)]


def _metric_card(spec: str, card: Mapping[str, Json]) -> Card:
    outputs = [
        f"{text_at(info, 'name')} (larger means {text_at(info, 'larger_means') or 'not said'})"
        for info in objects_at(card, "outputs")
    ]
    known = (
        Fact("Version", visible(text_at(card, "version"))),
        Fact("Outputs", visible("; ".join(outputs))),
        Fact("Corrected family", ", ".join(texts_at(card, "primary"))),
        Fact("Reads", _reads(card)),
        Fact("Cut into labels", _cuts(card)),
        Fact("No score when", visible(text_at(card, "null_when"))),
        Fact("Differs from its paper", visible(text_at(card, "deviations"))),
        Fact("Paper", visible(text_at(card, "citation"))),
        Fact("Weights or lexicon", visible(text_at(card, "weights")), is_code=True),
    )
    return Card(
        name(spec),
        visible(text_at(card, "summary")),
        tuple(fact for fact in known if fact.value),
        tuple(visible(failure) for failure in texts_at(card, "failures")),
    )


def _cuts(card: Mapping[str, Json]) -> str:
    parts = [
        f"{text_at(info, 'name')} at {' and '.join(round_number(cut) for cut in numbers_at(info, 'cuts'))}"
        for info in objects_at(card, "outputs")
        if numbers_at(info, "cuts")
    ]
    return visible("; ".join(parts))


def _reads(card: Mapping[str, Json]) -> str:
    scopes = {"full": "prompt and continuation", "continuation": "the continuation alone"}
    masks = {"none": "masked where the suite asks for it", "person": "wants masks", "xyz": "wants masks"}
    parts = [scopes.get(text_at(card, "scope"), ""), masks.get(text_at(card, "masking"), "")]
    return ", ".join(part for part in parts if part)


def _suite_card(spec: str, card: Mapping[str, Json]) -> Card:
    baselines = mapping_at(card, "baselines")
    known = (
        Fact(
            "Compared with",
            "; ".join(f"{name(axis)}: {short_baseline(str(baselines[axis]))}" for axis in baselines),
        ),
        Fact("Cluster", visible(text_at(card, "cluster"))),
        Fact("Paper", visible(text_at(card, "citation"))),
        Fact("Licence", visible(text_at(card, "licence"))),
    )
    return Card(name(spec), visible(text_at(card, "summary")), tuple(fact for fact in known if fact.value))
