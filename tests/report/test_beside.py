"""What stands beside estimates: spreads, omnibus answers, strata, pairs, words, packing, cards."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from tests.report.manifests import manifest, write_run
from tests.report.realistic import comparison, frame, group_row, small_run

from evenhand.audits.report.figures import draw_histogram, find_histogram_scale
from evenhand.audits.report.findings import find_gaps, list_caveats, read_omnibus
from evenhand.audits.report.page import pack_word_weights
from evenhand.audits.report.provenance import list_run_facts
from evenhand.audits.report.side_tables import build_pairs, build_strata
from evenhand.core.digests import Json
from evenhand.report.html import pack_json
from evenhand.report.render_run import format_report
from evenhand.report.wording import escape_markdown, format_name
from evenhand.store.run import Run
from evenhand.store.schemas import EXPLANATIONS

OMNIBUS = {
    "suite": "starter",
    "model": "gpt2",
    "axis": "race",
    "metric": "sentiment",
    "output": "negative",
    "p_adjusted": 0.0004,
    "n_groups": 4,
    "null_reason": None,
}


def unpacked(text: str) -> Json:
    value: Json = json.loads(gzip.decompress(base64.b64decode(text)))
    return value


@given(st.dictionaries(st.text(), st.lists(st.text() | st.floats(allow_nan=False, allow_infinity=False))))
def test_what_is_packed_comes_back_in_letters_that_mean_nothing(value: dict[str, Json]) -> None:
    text = pack_json(value)
    assert not set(text) & set("<>&\"'")
    assert pack_json(value) == text
    if not any(0xD800 <= ord(letter) < 0xE000 for letter in json.dumps(value, ensure_ascii=False)):
        assert unpacked(text) == value


def test_a_histogram_is_drawn_to_the_fullest_bin_of_its_panel() -> None:
    spread = {"low": -1.0, "high": 1.0, "counts": [1, 0, 2, 1], "q50": 0.25, "q25": -0.5, "q75": 0.5}
    scale = find_histogram_scale([spread])
    assert scale is not None
    assert (scale.low, scale.high, scale.ticks) == (-1.0, 1.0, (-1.0, -0.5, 0.0, 0.5, 1.0))
    drawing = draw_histogram(spread, scale, tallest=1.0)
    # Of four texts 1, 0, 2 and 1: 5, 0, 10 and 5 of 20 units; y grows downwards.
    assert 'd="M0 20v-5h1v5h1v-10h1v5h1V20z"' in drawing
    assert 'class="median" x="62.0%"' in drawing
    assert 'class="middle" x="26.0%" width="48.0%"' in drawing


def test_an_axis_has_one_answer_in_words(tmp_path: Path) -> None:
    tested = OMNIBUS | {"axis": "gender", "p_adjusted": None, "null_reason": "one_cluster"}
    pair = OMNIBUS | {"axis": "two", "n_groups": 2}
    table = frame("omnibus", [OMNIBUS, OMNIBUS | {"axis": "race2", "p_adjusted": 0.31}, tested, pair])
    found = {
        key[2]: answer.hint
        for key, answer in read_omnibus(write_run(tmp_path, manifest(), {"omnibus": table})).items()
    }
    assert found == {
        "race": "Taken together, the 4 groups differ by more than chance (adjusted p < 0.001).",
        "race2": "Taken together, the 4 groups are inconclusive (adjusted p 0.31).",
        "gender": "Whether the groups differ at all could not be tested: "
        "only one text, prompt or template in a group.",
    }


def _contradicted(folder: Path) -> Run:
    inside = {"by": "context", "disagrees": False, "exploratory": True}
    rows = [
        comparison(**inside, stratum="work", estimate=-0.02),
        comparison(**inside, stratum="home", estimate=-0.05),
        comparison(
            **inside | {"disagrees": True}, stratum="(adjusted)", estimate=-0.031, low=-0.05, high=-0.012
        ),
    ]
    tables = {
        "strata": frame("strata", rows),
        "pairs": frame("pairs", [comparison(baseline="Asian_Americans"), comparison(p_adjusted=0.4)]),
        "comparisons": frame("comparisons", [comparison()]),
        "groups": frame("groups", [group_row()]),
    }
    return write_run(folder, manifest(), tables)


def test_strata_that_contradict_the_whole_are_a_warning(tmp_path: Path) -> None:
    run = _contradicted(tmp_path)
    section, (warning,) = build_strata(run, find_gaps(run))
    (row,) = section.blocks[1].rows  # type: ignore[union-attr]
    assert (row.cells[3], row.cells[4].text, row.cells[7]) == ("+3.2", "−3.1", "−5.0 to −2.0")  # type: ignore[index, union-attr]
    assert warning == (
        "African Americans against European Americans, sentiment, negative: over all texts the gap is +3.2 "
        "points, but with the same mix of context on both sides it is −3.1 points. The mix of context "
        "causes the gap, not the group."
    )
    source = format_report(run, "html")
    assert "Contradicted inside strata" in source
    assert "points the other way" in source


def test_pairs_that_differ_are_listed(tmp_path: Path) -> None:
    run = _contradicted(tmp_path)
    (pair,) = build_pairs(run, find_gaps(run)).blocks[1].rows  # type: ignore[union-attr]
    group, _, gap, *_ = pair.cells  # type: ignore[union-attr]
    assert (group.text, group.note, gap.text) == ("African Americans", "against Asian Americans", "+3.2")
    assert "1 of 2 comparisons of two groups are " in format_report(run, "html")


def test_a_gap_that_its_check_doubts_is_no_headline(tmp_path: Path) -> None:
    rows = [comparison(estimate=0.3, check="disagrees"), comparison(group="Asian_Americans", check="agrees")]
    found = find_gaps(small_run(tmp_path, rows, [group_row()]))
    assert found.by_standing["supported"][0].is_doubted
    assert found.confirmed_gaps[0].group == "Asian Americans"
    assert found.headline.endswith("after correction, 1 of them contradicted by the permutation check")
    assert "the largest that no check contradicts is Asian Americans" in found.verdict
    assert found.by_standing["supported"][0].evidence.endswith("the permutation check disagrees")


def _words(text: str, words: list[tuple[int, int, float]], output: str = "compound") -> dict[str, object]:
    spans = [{"start": start, "end": end, "weight": weight} for start, end, weight in words]
    return {
        "text_id": "1",
        "metric": "m",
        "output": output,
        "read": text,
        "masks": [{"start": 0, "end": 3}],
        "words": spans,
    }


def test_words_count_as_a_browser_counts() -> None:
    # XYZ, a space, an emoji of two units, a space: "kind" begins at 6 for Python and at 7 for a browser.
    rows = [_words("XYZ 🌿 kind", [(6, 10, 2.4)]), _words("XYZ 🌿 kind", [(6, 10, -1.0)], "other")]
    found, reads = pack_word_weights(pl.DataFrame(rows, schema=dict(EXPLANATIONS)), longest=800)
    assert reads == {"1": ["XYZ 🌿 kind"]}
    assert found == {
        "m": {"outputs": ["compound", "other"], "entries": [[4, 2.4, -1.0]], "texts": {"1": [0, 0, -4, 7, 0]}}
    }


def test_words_beyond_what_is_shown_are_left_out() -> None:
    found, reads = pack_word_weights(
        pl.DataFrame([_words("a good day", [(2, 6, 1.9)])], schema=dict(EXPLANATIONS)), longest=4
    )
    assert reads == {"1": ["a go"]}
    assert found["m"] == {"outputs": ["compound"], "entries": [], "texts": {"1": [0, 0, -4]}}


def test_a_host_is_named_and_said_not_to_be_repeatable(tmp_path: Path) -> None:
    model = {"backend": "endpoint", "name": "m", "repeatable": False}
    served = {"model": "m-2026", "fingerprint": "fp_1"}
    run = small_run(tmp_path, identity={"model": model}, served_by=served, created="2026-03-02T09:14:03Z")
    known = {fact.name: fact.value for fact in list_run_facts(run)}
    assert known["Served by"] == "model m-2026, fingerprint fp_1"
    assert known["Repeatable"] == "no: a hosted model may change; this is what it gave on 2026-03-02"
    assert any(
        "not repeatable. They are what it gave on 2026-03-02, as fp_1." in said
        for said in list_caveats(run, find_gaps(run))
    )


def test_nobody_is_mentioned_and_nothing_is_linked() -> None:
    plain = escape_markdown("ask @all, see https://x.example, www.x.example, mailto:a@b.example and #12")
    for linking in ("@all", "https://", "www.", "mailto:a", "a@b", "#12"):
        assert linking not in plain
    assert plain.replace("\u2060", "").replace("\\", "") == (
        "ask @all, see https://x.example, www.x.example, mailto:a@b.example and #12"
    )


def test_religions_have_a_capital() -> None:
    assert (format_name("islam"), format_name("left-wing"), format_name("artistic_occupations")) == (
        "Islam",
        "left-wing",
        "artistic occupations",
    )
