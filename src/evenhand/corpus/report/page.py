"""The report of a corpus run: odds ratios by group, the rates of emotions, and every link."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.core.digests import Json
from evenhand.corpus.report.findings import CorpusFindings, CorpusLink
from evenhand.corpus.term_lists import NONE
from evenhand.report import document as doc
from evenhand.report.charts import draw_estimate, element
from evenhand.report.html import SIZE_LIMIT
from evenhand.report.manifest import Fact, list_facts, read_mapping, read_text, read_texts
from evenhand.report.verdicts import INCONCLUSIVE, LARGER, TEST_WORDS, TestStanding, tint_legend
from evenhand.report.wording import (
    format_count,
    format_name,
    format_value,
    pluralise,
    show_control_characters,
)
from evenhand.stats.corrections import ALPHA
from evenhand.store.run import Run

_MEANINGS: Mapping[TestStanding, str] = {
    "supported": "adjusted p of at most 0.05",
    "unclear": "the data are consistent with no link",
    "missing": "never seen together, or in too few documents",
}
_TABLES = ("occurrence", "cooccurrence", "contrasts", "samples", "problems")
_MANIFEST = (
    *("package", "command", "name", "created", "ended", "identity", "execution", "hardware", "stages"),
    *("corpora", "warnings"),
)
_SENTENCE_ROOM = SIZE_LIMIT // 2
"""Maximum bytes of the sentences; the rest is for tables and heat maps."""
_NOTICE = (
    "These {units} are quoted from the corpus unchanged; some may be offensive or distressing. They are "
    "shown so that a count can be checked against the text"
)


def build_report(run: Run) -> doc.Report:
    """The content of the report."""
    findings = CorpusFindings(run)
    sentences, left_out = _select_sentences(run, room=_SENTENCE_ROOM)
    caveats = findings.list_caveats()
    missing = f"{left_out:,} of the {findings.units} drawn do not fit on this page; see samples.parquet."
    standings = [link.standing for link in findings.links]
    tally = doc.count_verdicts(standings, words=TEST_WORDS, meanings=_MEANINGS)
    has_cards = bool(findings.largest)
    return doc.Report(
        run=run,
        question=findings.question,
        details=findings.details,
        verdicts=(findings.verdict,),
        headline=findings.headline,
        opening=(
            doc.Cards([_card(findings, link) for link in findings.largest[:3]]),
            doc.Text(f"{findings.ground}." if has_cards else "", "note"),
            doc.Text("" if has_cards else findings.verdict, "seen", "html"),
            doc.Tally(tally if findings.links else ()),
            doc.Bullets(items=findings.sides, title="Corpora compared", shown=40, formats="html md terminal"),
        ),
        sections=(
            _maps(findings),
            _rates(findings),
            _links(findings),
            doc.Section("downloads", "", (doc.Template("downloads.html.j2"),)),
            _problems(findings),
        ),
        caveats=caveats,
        notes=(missing,) if left_out else (),
        # The run's own facts already describe its only stage.
        facts=[fact for fact in list_facts(run, _own_facts(findings)) if not fact.name.startswith("Stage")],
        manifest=_MANIFEST,
        tables=_TABLES,
        values={"verdict": findings.verdict, "caveats": caveats},
        page=doc.Page(
            folder=Path(__file__).parent,
            style="corpus.css",
            script="corpus.js",
            data={"sentences": sentences, "unit": findings.unit},
            downloads=[name for name in _TABLES if name != "samples"],
            drawer=(_NOTICE.format(units=findings.units), findings.units),
        ),
    )


def _card(findings: CorpusFindings, link: CorpusLink) -> doc.Card:
    where = f", {link.key[0]}" if len(findings.corpora) > 1 else ""
    ends = [math.log(link.value(key) or 1.0) for key in ("odds_ratio", "low", "high")]
    return doc.Card(
        kicker=f"{link.words('emotion')} with {link.words('group')}{where}",
        size=f"{link.factor:.1f}×",
        unit="the odds" if link.direction == "higher" else "lower odds",
        claim=link.statement,
        evidence=link.evidence,
        direction=link.direction,
        arrow=link.direction,
        chart=draw_estimate(*ends, zero="1"),
    )


def _maps(findings: CorpusFindings) -> doc.Section:
    units, many = findings.units, len(findings.corpora) > 1
    lede = (
        f"Odds of the emotion in {units} that name the group, relative to {units} that name no group of "
        "its kind: 2.00× is twice the odds, 0.50× half. Below it, the emotion's share of all emotion counts "
        "of the group. Deeper colours mark stronger links (from 1.5 and from 2 times); plain numbers are "
        f"{INCONCLUSIVE}. With JavaScript enabled, select a cell to read its {units}."
    )
    legend = tint_legend("▲ more often with the group", "▼ less often")
    if many:
        legend.append((element("b", "≠"), f"differs from {findings.corpora[0]}: {LARGER}"))
    table = findings.run.table("cooccurrence").filter(pl.col("group") != NONE)
    maps = [
        doc.Table(
            title=format_name(str(axis)),
            group_head="Group" if many else "",
            columns=["Corpus" if many else "Group", *(f"#{format_name(e)}" for e in findings.emotions)],
            rows=list(_map_rows(findings, str(axis), part["group"].unique(maintain_order=True).to_list())),
            source="cooccurrence",
            style="matrix map" + " many" * many,
            tall=1000,
        )
        for (axis,), part in table.group_by("axis", maintain_order=True)
    ]
    sign = (
        f"Odds ratios; * {LARGER} after correction over all links; where there is no odds ratio, n is how "
        "often the emotion and the group occur together"
    )
    blocks: list[doc.Block] = [
        doc.Text(lede, formats="html"),
        doc.Legend(legend),
        *maps,
        doc.Text(sign, "note", "md terminal"),
    ]
    return doc.Section("maps", "Odds ratios", blocks if maps and findings.n_units else (), "Odds ratios")


def _map_rows(findings: CorpusFindings, axis: str, groups: Sequence[str]) -> Iterator[doc.Row]:
    """Each group, then the share of the baseline's units with each emotion; a row for each corpus."""
    by_key = {link.key: link for link in findings.links}
    many, differing = len(findings.corpora) > 1, _list_differing(findings.run)
    rest = f"{findings.units.capitalize()} with the emotion where no group is named"
    for group in (*groups, None):
        name, formats = (rest, "html md") if group is None else (format_name(group), doc.EVERYWHERE)
        if many:
            yield doc.Row((name,), is_heading=True, formats=formats)
        for corpus in findings.corpora:
            links = [by_key[corpus, emotion, axis, group or groups[0]] for emotion in findings.emotions]
            cells: list[doc.AnyCell] = [
                _map_cell(link, differs=link.key in differing)
                if group is not None
                else ""
                if link.base_share is None
                else f"{100 * link.base_share:.2f} %"
                for link in links
            ]
            tone = "base" if group is None else ""
            yield doc.Row((corpus if many else name, *cells), tone, formats=formats)


def _rates(findings: CorpusFindings) -> doc.Section:
    table, differing = findings.run.table("occurrence"), _list_differing(findings.run)
    rows = {(row["corpus"], row["emotion"]): row for row in table.iter_rows(named=True)}
    contrasts = findings.run.table("contrasts").filter(group="")
    ratios = {(row["corpus"], row["emotion"]): row["ratio"] for row in contrasts.iter_rows(named=True)}
    columns: list[doc.Column | str] = ["Emotion"]
    lines: list[list[doc.AnyCell]] = [[format_name(emotion)] for emotion in findings.emotions]
    last: list[doc.AnyCell] = ["All emotions"]
    for corpus in findings.corpora:
        amounts = doc.Column(f"{corpus}: {findings.units}", "num", formats="html md")
        columns += [f"#{corpus}: per million", amounts]
        for line, emotion in zip(lines, findings.emotions, strict=True):
            row = rows[corpus, emotion]
            ends = " to ".join(_round(row[end]) for end in ("low", "high")) if row["low"] is not None else ""
            percent = "" if row["percent"] is None else f"{row['percent']:.2f} %"
            line.append(doc.Cell(_round(row["per_million"]), note=ends, is_strong=True))
            line.append(doc.Cell(f"{row['count']:,}", detail=percent))
        whole = rows[corpus, findings.emotions[0]]
        spread = whole["standard_deviation"]
        note = "" if spread is None else f"standard deviation {spread:,.2f}"
        last += ["", doc.Cell(f"{whole['total']:,}", detail=note)]
        if corpus == findings.corpora[0]:
            continue
        columns.append(doc.Column(f"against {findings.corpora[0]}", "num", formats="html"))
        for line, emotion in zip(lines, findings.emotions, strict=True):
            ratio = ratios.get((corpus, emotion))
            sign = " ≠" * ((corpus, emotion, "", "") in differing)
            line.append("–" if ratio is None else f"{ratio:.2f}×{sign}")
        last.append("")
    lede = (
        f"{findings.units.capitalize()} with a word of the emotion, per million {findings.units}, with the "
        f"{findings.level} interval; then their number."
    )
    total = doc.Row(last, formats="html md")
    rates = doc.Table(columns=columns, rows=[*lines, total], source="occurrence", style="rates")
    speed = doc.Text(findings.speed and f"limited by {findings.speed}", "note", "terminal")
    return doc.Section("rates", "How often emotions occur", (doc.Text(lede), rates, speed), "Emotions")


def _links(findings: CorpusFindings) -> doc.Section:
    lede = (
        f"The {findings.level} intervals treat documents as independent. PMI is the pointwise mutual "
        "information in bits: 0 is chance, 1 is twice as often. The adjusted p is corrected over all links."
    )
    columns: dict[doc.Column | str, Callable[[CorpusLink], doc.AnyCell]] = {
        "Group": lambda link: doc.Cell(
            link.words("group"), note=link.words("axis"), button=_button(link, "name")
        ),
        "Emotion": lambda link: link.words("emotion"),
        doc.Column("Corpus", formats="html" if len(findings.corpora) > 1 else ""): lambda link: link.key[0],
        "#Count": lambda link: format_value(link.row["count"]),
        "#Per million": lambda link: link.interval("per_million", "per_million_low", "per_million_high"),
        doc.Column("Odds ratio", "num", name="gap"): lambda link: doc.Cell(
            link.interval("odds_ratio", "low", "high"), is_strong=True
        ),
        "#PMI": lambda link: link.interval("pmi", "pmi_low", "pmi_high", signed=True),
        "#Adjusted p": lambda link: link.p,
        doc.Column("Verdict", "verdict"): lambda link: link.words("null_reason") or TEST_WORDS[link.standing],
    }
    table = doc.build_table(
        findings.links,
        columns,
        tone=lambda link: f"{link.standing} {link.direction}".strip(),
        source="cooccurrence",
        style="comparisons",
        formats="html",
    )
    blocks = (doc.Text(lede, formats="html"), table) if findings.links else ()
    return doc.Section("links", "Every link", blocks, "Links")


def _problems(findings: CorpusFindings) -> doc.Section:
    problems = [
        f"{file}{'' if byte is None else f', byte {byte:,}'}: {reason}"
        for file, byte, reason in findings.run.table("problems").iter_rows()
    ]
    warnings = read_texts(findings.run.manifest, "warnings")
    lines = doc.Bullets(items=[*problems, *warnings], style="limits problems", shown=200)
    return doc.Section("problems", "Skipped or changed input", (lines,))


def _own_facts(findings: CorpusFindings) -> Iterator[Fact]:
    manifest = findings.run.manifest
    identity = read_mapping(manifest, "identity")
    yield Fact("Counting", read_text(identity, "counting"))
    yield Fact("Unit", read_text(identity, "unit"))
    yield Fact("Rule for words", read_text(identity, "rule"))
    yield Fact("Terms", read_text(identity, "terms", "digest"), is_code=True)
    for corpus in read_mapping(manifest, "corpora"):
        yield Fact(corpus, _sizes(read_mapping(manifest, "corpora", corpus)))
    yield Fact("Limited by", findings.speed)


def _list_differing(run: Run) -> set[tuple[str, str, str, str]]:
    """The links and rates that differ from those of the first corpus."""
    table = run.table("contrasts").filter(pl.col("p_adjusted") <= ALPHA)
    return set(table.select("corpus", "emotion", "axis", "group").iter_rows())


def _button(link: CorpusLink, style: str) -> dict[str, str]:
    title = f"{link.words('emotion').capitalize()} with {link.words('group')}"
    kicker = f"{link.key[0]} · {link.words('axis')}"
    return {"class": style, "key": "\t".join(link.key), "title": title, "kicker": kicker}


def _map_cell(link: CorpusLink, *, differs: bool) -> doc.Cell:
    percent = link.value("percent")
    return doc.Cell(
        link.short + " ≠" * differs,
        flag="*" * (link.standing == "supported"),
        detail="never" if percent is None else f"{percent:.1f} %",
        tone=f"{link.standing} {link.tint}".strip(),
        arrow=link.direction if link.tint else "",
        button=_button(link, "cell"),
    )


def _sizes(total: Mapping[str, Any]) -> str:
    amounts = [format_count(total.get(pluralise(key), 0), key) for key in ("unit", "word", "byte", "file")]
    return f"{', '.join(amounts)}; {total.get('units_without_group', 0):,} units name no group"


def _select_sentences(run: Run, *, room: int) -> tuple[dict[str, Json], int]:
    """Sentences by cell, taken from each cell in turn while there is room, and the number left out."""
    sizes = pl.col("text").str.len_bytes() + pl.col("file").str.len_chars() + 40
    samples = (
        run.table("samples")
        .sort(pl.int_range(pl.len()).over("corpus", "emotion", "axis", "group"), maintain_order=True)
        .filter(sizes.cast(pl.Int64).cum_sum() <= room)
    )
    cells: dict[str, list[Json]] = {}
    for row in samples.iter_rows(named=True):
        at = f"row {row['row']:,}" if row["byte"] is None else f"byte {row['byte']:,}"
        key = "\t".join(row[column] for column in ("corpus", "emotion", "axis", "group"))
        parts = (row["text"], f"{row['file']}, {at}")
        cells.setdefault(show_control_characters(key), []).append([*map(show_control_characters, parts)])
    return dict(cells), run.table("samples").height - samples.height


def _round(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"
