"""What an audit asked, where its numbers come from, and a card of each metric and suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

import polars as pl

from evenhand.core.digests import Json
from evenhand.report import document as doc
from evenhand.report.manifest import (
    Fact,
    join_pairs,
    list_facts,
    read_mapping,
    read_number,
    read_numbers,
    read_objects,
    read_text,
    read_texts,
    read_value,
)
from evenhand.report.wording import format_baseline, format_count, format_exact, format_name, join_words
from evenhand.store.run import Run


def describe_question(run: Run) -> tuple[str, str]:
    """The question of a run, and how it was put."""
    table, manifest = run.table("groups"), run.manifest
    groups = table.select("suite", "axis", "group").unique().height
    between = format_count(groups, "group")
    prompts, texts = (run.scan(name).select(pl.len()).collect().item() for name in ("prompts", "generations"))
    texts = texts or run.scan("scores").select(pl.col("text_id").n_unique()).collect().item()
    metrics, axes = (
        join_words([format_name(name) for name in names]) or "nothing"
        for names in (read_mapping(manifest, "metrics"), table["axis"].unique(maintain_order=True))
    )
    compared = f"were scored for {metrics} and compared by {axes}"
    if not read_mapping(manifest, "stages", "generate"):
        many = f"Do {format_count(texts, 'text')} differ between {between}?"
        alone = f"How do {format_count(texts, 'text')} of one group score?"
        details = f"The texts of {read_text(manifest, 'name') or 'a file'} {compared}."
        return alone if groups == 1 else many, details
    name = read_text(manifest, "identity", "model", "name")
    is_path = name.startswith(("/", "./", "../", "~")) or "\\" in name
    model = (PurePath(name.replace("\\", "/")).name if is_path else name) or "the model"
    many = f"Does {model} write differently about {between}?"
    alone = f"How does {model} write about one group?"
    if read_text(manifest, "identity", "model", "backend") == "replay":
        many = f"Do the texts in {model} differ between {between}?"
        alone = f"How do the texts in {model} score?"
    suites = join_words([format_name(suite) for suite in read_mapping(manifest, "identity", "suites")])
    samples = int(read_number(requested_size(run), "samples") or 1)
    times = "once each" if samples == 1 else f"{samples} times each"
    details = f"It continued {format_count(prompts, 'prompt')} of the suite {suites or 'given'}, {times}"
    return alone if groups == 1 else many, f"{details}: {format_count(texts, 'text')}. They {compared}."


def is_hosted(model: Mapping[str, Json]) -> bool:
    """Whether a model answers elsewhere, so that its texts cannot be made again."""
    return read_value(model, "repeatable") is False or read_text(model, "backend") == "endpoint"


def requested_size(run: Run) -> Mapping[str, Json]:
    """The samples and the limit of the run as it last was carried on."""
    growth = read_objects(run.manifest, "growth")
    return growth[-1] if growth else {}


def list_run_facts(run: Run) -> list[Fact]:
    """Where the numbers of an audit come from."""
    identity, served = read_mapping(run.manifest, "identity"), read_mapping(run.manifest, "served_by")
    model, suites = read_mapping(identity, "model"), read_mapping(identity, "suites")
    facts = [
        Fact("Model", read_text(model, "name")),
        Fact("Back-end", read_text(model, "backend")),
        Fact("Revision", read_text(model, "revision"), is_code=True),
        Fact("Model options", join_pairs(read_mapping(model, "options"))),
        Fact("Served by", join_pairs(served)),
    ]
    if is_hosted(model):
        day = read_text(run.manifest, "created")[:10] or "the day of the run"
        facts.append(Fact("Repeatable", f"no: a hosted model may change; this is what it gave on {day}"))
    for suite in suites:
        facts += [
            Fact(f"Suite {format_name(suite)}", f"version {read_text(suites, suite, 'version')}"),
            Fact("Suite digest", read_text(suites, suite, "digest"), is_code=True),
            Fact("Sampling", join_pairs(read_mapping(suites, suite, "sampling"))),
        ]
    facts += [
        Fact("Samples per prompt", read_text(requested_size(run), "samples")),
        Fact("Inputs", join_pairs(read_mapping(identity, "inputs"))),
        Fact("Comparison", join_pairs(read_mapping(identity, "compare"))),
    ]
    return list_facts(run, facts)


def build_cards(manifest: Mapping[str, Json]) -> doc.Section:
    """What is known of each metric and suite of a run."""
    cards = [
        {
            "kind": kind,
            "name": format_name(spec),
            "summary": read_text(card, "summary"),
            "failures": read_texts(card, "failures"),
            "facts": [fact for fact in list_known(card) if fact.value],
        }
        for kind, part, list_known in (
            ("Metric", "metrics", _metric_facts),
            ("Suite", "suites", _suite_facts),
        )
        for spec in read_mapping(manifest, part)
        for card in [read_mapping(manifest, part, spec)]
    ]
    return doc.Section("cards", "Metrics and suites", (doc.Template("cards.html.j2", cards),))


def _metric_facts(card: Mapping[str, Json]) -> Sequence[Fact]:
    outputs = [(read_text(info, "name"), info) for info in read_objects(card, "outputs")]
    means = [(name, read_text(info, "larger_means") or "not given") for name, info in outputs]
    cuts = [(name, " and ".join(map(format_exact, read_numbers(info, "cuts")))) for name, info in outputs]
    scopes = {"full": "prompt and continuation", "continuation": "the continuation alone"}
    masks = dict.fromkeys(("person", "xyz"), "masks required")
    masks["none"] = "masked where the suite asks for it"
    reads = [scopes.get(read_text(card, "scope"), ""), masks.get(read_text(card, "masking"), "")]
    return (
        Fact("Version", read_text(card, "version")),
        Fact("Outputs", "; ".join(f"{name} (larger means {larger})" for name, larger in means)),
        Fact("Corrected family", ", ".join(read_texts(card, "primary"))),
        Fact("Reads", ", ".join(filter(None, reads))),
        Fact("Label thresholds", "; ".join(f"{name} at {at}" for name, at in cuts if at)),
        Fact("No score when", read_text(card, "null_when")),
        Fact("Differs from its paper", read_text(card, "deviations")),
        Fact("Paper", read_text(card, "citation")),
        Fact("Weights or lexicon", read_text(card, "weights"), is_code=True),
    )


def _suite_facts(card: Mapping[str, Json]) -> Sequence[Fact]:
    baselines = [
        f"{format_name(axis)}: {format_baseline(str(name))}"
        for axis, name in read_mapping(card, "baselines").items()
    ]
    return (
        Fact("Compared with", "; ".join(baselines)),
        Fact("Cluster", read_text(card, "cluster")),
        Fact("Paper", read_text(card, "citation")),
        Fact("Licence", read_text(card, "licence")),
    )
