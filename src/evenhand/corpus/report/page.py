"""What the report of a corpus run says: odds ratios by group, how often emotions occur, every link."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from evenhand.core.digests import Json
from evenhand.corpus.report.findings import CorpusFindings, find_links, list_caveats
from evenhand.corpus.report.link_rows import NONE, CorpusLink
from evenhand.report import document as doc
from evenhand.report.charts import draw_estimate, draw_swatches, element
from evenhand.report.html import SIZE_LIMIT
from evenhand.report.manifest import (
    Fact,
    format_level,
    list_facts,
    read_mapping,
    read_number,
    read_text,
)
from evenhand.report.verdicts import ALPHA, INCONCLUSIVE, LARGER, TEST_WORDS, TestStanding
from evenhand.report.wording import (
    format_count,
    format_name,
    format_number,
    format_value,
    pluralise,
    show_control_characters,
)
from evenhand.store.run import Run

_MEANINGS: Mapping[TestStanding, str] = {
    "supported": "adjusted p of at most 0.05",
    "unclear": "the interval holds no link as well",
    "missing": "never seen together, or in too few documents",
}
_TABLES = ("occurrence", "cooccurrence", "contrasts", "samples", "problems")
_MANIFEST = (
    *("package", "command", "name", "created", "ended", "identity", "execution", "hardware", "stages"),
    *("corpora", "warnings"),
)
_SENTENCE_ROOM = SIZE_LIMIT // 2
"""Bytes the sentences may take; the rest is for tables and heat maps."""
_NOTICE = (
    "These {units} are from the corpus as it is; some may be offensive or distressing. They are shown so "
    "that a count can be checked against what was written"
)


def build_report(run: Run) -> doc.Report:
    """The content of the report."""
    return _CorpusReport(run, find_links(run)).build()


@dataclass(frozen=True, slots=True)
class _CorpusReport:
    """The sections of a corpus report."""

    run: Run
    findings: CorpusFindings

    @property
    def corpora(self) -> list[str]:
        return self.run.table("occurrence")["corpus"].unique(maintain_order=True).to_list()

    @property
    def emotions(self) -> list[str]:
        return self.run.table("occurrence")["emotion"].unique(maintain_order=True).to_list()

    @property
    def units(self) -> str:
        return pluralise(self.findings.unit)

    @property
    def level(self) -> str:
        return format_level(self.run, ("config",))

    def build(self) -> doc.Report:
        run, findings = self.run, self.findings
        sentences, left_out = _select_sentences(run, room=_SENTENCE_ROOM)
        caveats = list_caveats(run, findings.unit)
        missing = f"{left_out:,} of the {self.units} drawn do not fit on this page; see samples.parquet."
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
                doc.Cards(list(map(self._card, findings.largest[:3]))),
                doc.Text(f"{findings.ground}." if has_cards else "", "note"),
                doc.Text("" if has_cards else findings.verdict, "seen", "html"),
                doc.Tally(tally if findings.links else ()),
                doc.Bullets(
                    items=findings.sides, title="Corpora compared", shown=40, formats="html md terminal"
                ),
            ),
            sections=(
                self._maps(),
                self._rates(),
                self._links(),
                doc.Section("downloads", "", (doc.Template("downloads.html.j2"),)),
                self._problems(),
            ),
            caveats=caveats,
            notes=(missing,) if left_out else (),
            # The run's own facts describe its one stage in words.
            facts=[fact for fact in list_facts(run, self._own_facts()) if not fact.name.startswith("Stage")],
            manifest=_MANIFEST,
            tables=_TABLES,
            values={"verdict": findings.verdict, "caveats": caveats},
            page=doc.Page(
                folder=Path(__file__).parent,
                style="corpus.css",
                script="corpus.js",
                data={"sentences": sentences, "unit": findings.unit},
                downloads=[name for name in _TABLES if name != "samples"],
                drawer=(_NOTICE.format(units=self.units), self.units),
            ),
        )

    def _card(self, link: CorpusLink) -> doc.Card:
        where = f", {link.key[0]}" if len(self.corpora) > 1 else ""
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

    def _maps(self) -> doc.Section:
        units, many = self.units, len(self.corpora) > 1
        lede = (
            f"Odds of the emotion in {units} that name the group, against {units} that name none of its "
            "kind: 2.00× is twice the odds, 0.50× half. Below it, the emotion's share of all emotion counts "
            "of the group. Deeper colours are stronger links (from 1.5 and from 2 times); plain numbers are "
            f"{INCONCLUSIVE}. With scripts on, choose a cell to read its {units}."
        )
        legend = [
            (draw_swatches("higher-1", "higher-2", "higher-3"), "▲ more often with the group"),
            (draw_swatches("lower-1", "lower-2", "lower-3"), "▼ less often"),
            (draw_swatches(""), INCONCLUSIVE),
        ]
        if many:
            legend.append((element("b", "≠"), f"differs from {self.corpora[0]}: {LARGER}"))
        by_key = {link.key: link for link in self.findings.links}
        differing = _list_differing(self.run)
        table = self.run.table("cooccurrence").filter(pl.col("group") != NONE)
        maps = []
        for (axis,), part in table.group_by("axis", maintain_order=True):
            groups = part["group"].unique(maintain_order=True)
            keys = {
                group: [[(c, e, axis, group) for e in self.emotions] for c in self.corpora]
                for group in groups
            }
            rows = []
            for group, of_corpora in keys.items():
                rows += [doc.Row((format_name(group),), is_heading=True)] if many else []
                for corpus, own in zip(self.corpora, of_corpora, strict=True):
                    cells = [_map_cell(by_key[key], differs=key in differing) for key in own]
                    rows.append(doc.Row((corpus if many else format_name(group), *cells)))
            rows += list(self._base_rows([by_key[key] for own in keys[groups[0]] for key in own], many=many))
            maps.append(
                doc.Table(
                    title=format_name(str(axis)),
                    group_head="Group" if many else "",
                    columns=["Corpus" if many else "Group", *(f"#{format_name(e)}" for e in self.emotions)],
                    rows=rows,
                    source="cooccurrence",
                    style="matrix map" + " many" * many,
                    tall=1000,
                )
            )
        sign = f"Odds ratios; * {LARGER} after correction over all links"
        blocks: list[doc.Block] = [
            doc.Text(lede, formats="html"),
            doc.Legend(legend),
            *maps,
            doc.Text(sign, "note", "md terminal"),
        ]
        return doc.Section("maps", "Odds ratios", blocks if maps else (), "Odds ratios")

    def _base_rows(self, links: Sequence[CorpusLink], *, many: bool) -> Iterator[doc.Row]:
        """The part of the baseline's units that hold each emotion; a row for each corpus."""
        name = f"{self.units.capitalize()} with the emotion where none is named"
        if many:
            yield doc.Row((name,), is_heading=True, formats="html md")
        for place, corpus in enumerate(self.corpora):
            own = links[place * len(self.emotions) : (place + 1) * len(self.emotions)]
            shares = ["" if (part := link.base_share) is None else f"{100 * part:.2f} %" for link in own]
            yield doc.Row((corpus if many else name, *shares), "base", formats="html md")

    def _rates(self) -> doc.Section:
        table, differing = self.run.table("occurrence"), _list_differing(self.run)
        first, *others = self.corpora
        rows = {(row["corpus"], row["emotion"]): row for row in table.iter_rows(named=True)}
        contrasts = self.run.table("contrasts").filter(pl.col("group") == "")
        ratios = {(row["corpus"], row["emotion"]): row["ratio"] for row in contrasts.iter_rows(named=True)}
        columns: list[doc.Column | str] = ["Emotion"]
        for corpus in self.corpora:
            columns += [
                f"#{corpus}: per million",
                doc.Column(f"{corpus}: {self.units}", "num", formats="html md"),
            ]
            columns += [doc.Column(f"against {first}", "num", formats="html")] if corpus in others else []
        lines: list[list[doc.Cell | str]] = []
        for emotion in self.emotions:
            line: list[doc.Cell | str] = [format_name(emotion)]
            for corpus in self.corpora:
                line += _rate_cells(rows[corpus, emotion])
                if corpus in others:
                    ratio = ratios.get((corpus, emotion))
                    sign = " ≠" if (corpus, emotion, "", "") in differing else ""
                    line.append("–" if ratio is None else f"{ratio:.2f}×{sign}")
            lines.append(line)
        last: list[doc.Cell | str] = ["All emotions"]
        for corpus in self.corpora:
            row = rows[corpus, self.emotions[0]]
            spread = row["standard_deviation"]
            note = "" if spread is None else f"standard deviation {spread:,.2f}"
            last += ["", doc.Cell(text=f"{row['total']:,}", detail=note), *([""] if corpus in others else [])]
        lede = (
            f"{self.units.capitalize()} with a word of the emotion, per million {self.units}, with the "
            f"{self.level} interval; then how many there are."
        )
        rates = doc.Table(
            columns=columns,
            rows=[*lines, doc.Row(last, formats="html md")],
            source="occurrence",
            style="rates",
        )
        return doc.Section("rates", "How often emotions occur", (doc.Text(lede), rates), "Emotions")

    def _links(self) -> doc.Section:
        many = len(self.corpora) > 1
        lede = (
            f"With {self.level} intervals made from documents. PMI is the pointwise mutual information in "
            "bits: 0 by chance, 1 twice as often. The adjusted p is corrected over all links of the run."
        )
        columns: dict[doc.Column, Callable[[CorpusLink], doc.AnyCell]] = {
            doc.Column("Group"): lambda link: doc.Cell(
                text=link.words("group"), note=link.words("axis"), button=_button(link, "name")
            ),
            doc.Column("Emotion"): lambda link: link.words("emotion"),
            doc.Column("Corpus", formats="html" if many else ""): lambda link: link.key[0],
            doc.Column("Count", "num"): lambda link: format_value(link.row["count"]),
            doc.Column("Per million", "num"): lambda link: link.interval(
                "per_million", "per_million_low", "per_million_high"
            ),
            doc.Column("Odds ratio", "num", name="gap"): lambda link: doc.Cell(
                text=link.interval("odds_ratio", "low", "high"), is_strong=True
            ),
            doc.Column("PMI", "num"): lambda link: link.interval("pmi", "pmi_low", "pmi_high", signed=True),
            doc.Column("Adjusted p", "num"): lambda link: link.p,
            doc.Column("So", "verdict"): lambda link: link.words("null_reason") or TEST_WORDS[link.standing],
        }
        rows = [
            doc.Row([show(link) for show in columns.values()], f"{link.standing} {link.direction}".strip())
            for link in self.findings.links
        ]
        table = doc.Table(
            columns=list(columns),
            rows=rows,
            source="cooccurrence",
            style="comparisons",
            formats="html",
        )
        text = doc.Text(lede, formats="html")
        return doc.Section("links", "Every link", (text, table) if rows else (), "Links")

    def _problems(self) -> doc.Section:
        problems = [
            show_control_characters(f"{file}{'' if byte is None else f', byte {byte:,}'}: {reason}")
            for file, byte, reason in self.run.table("problems").iter_rows()
        ]
        warnings = [show_control_characters(str(line)) for line in self.run.manifest.get("warnings", ())]
        lines = doc.Bullets(items=[*problems, *warnings], style="limits problems", shown=200)
        return doc.Section("problems", "Skipped or changed input", (lines,))

    def _own_facts(self) -> Iterator[Fact]:
        manifest = self.run.manifest
        identity, counted = read_mapping(manifest, "identity"), read_mapping(manifest, "stages", "count")
        seconds = format_number(read_number(counted, "seconds"))
        yield Fact("Counting", read_text(identity, "counting"))
        yield Fact("Unit", read_text(identity, "unit"))
        yield Fact("Rule for words", read_text(identity, "rule"))
        yield Fact("Terms", read_text(identity, "terms", "digest"), is_code=True)
        for corpus in read_mapping(manifest, "corpora"):
            yield Fact(corpus, _sizes(read_mapping(manifest, "corpora", corpus)))
        yield Fact(
            "Limited by", f"{read_text(counted, 'limited_by')} ({seconds} s in all)" if seconds else ""
        )


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
        text=link.short + " ≠" * differs,
        flag="*" * (link.standing == "supported"),
        detail="never" if percent is None else f"{percent:.1f} %",
        tone=f"{link.standing} {link.tint}".strip(),
        arrow=link.direction if link.tint else "",
        button=_button(link, "cell"),
    )


def _rate_cells(row: Mapping[str, Any]) -> list[doc.Cell | str]:
    ends = "" if row["low"] is None else f"{_round(row['low'])} to {_round(row['high'])}"
    percent = "" if row["percent"] is None else f"{row['percent']:.2f} %"
    rate = doc.Cell(text=_round(row["per_million"]), note=ends, is_strong=True)
    return [rate, doc.Cell(text=f"{row['count']:,}", detail=percent)]


def _sizes(total: Mapping[str, Any]) -> str:
    amounts = [format_count(total.get(pluralise(key), 0), key) for key in ("unit", "word", "byte", "file")]
    return f"{', '.join(amounts)}; {total.get('units_without_group', 0):,} units name no group"


def _select_sentences(run: Run, *, room: int) -> tuple[dict[str, Json], int]:
    """Sentences by cell, one more of each as long as there is room, and how many are left out."""
    rank = pl.int_range(pl.len()).over("corpus", "emotion", "axis", "group")
    samples = run.table("samples").with_columns(rank=rank).sort("rank", maintain_order=True)
    cells: dict[str, list[Json]] = {}
    left_out = 0
    for row in samples.iter_rows(named=True):
        room -= len(row["text"].encode("utf-8", "replace")) + len(row["file"]) + 40
        if room < 0:
            left_out += 1
            continue
        at = f"row {row['row']:,}" if row["byte"] is None else f"byte {row['byte']:,}"
        place = f"{show_control_characters(row['file'])}, {at}"
        key = f"{row['corpus']}\t{row['emotion']}\t{row['axis']}\t{row['group']}"
        cells.setdefault(key, []).append([show_control_characters(row["text"]), place])
    return dict(cells), left_out


def _round(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"
