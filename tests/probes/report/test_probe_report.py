"""The report of a probe run: plain words first, the sign said, and no text that runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.probes.probe_files import pairs_file, predictions_file, sentence

from evenhand.probes.probe import prepare, probe
from evenhand.probes.report.page import ProbeCell, build_report, find_largest, read_cells
from evenhand.report.render_run import format_report
from evenhand.store.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("probe")
    flipped = sentence("male", 0, "joy")
    predictions = predictions_file(folder / "p.csv", flip={flipped: "fear"})
    return probe(f"replay:{predictions}", pairs=str(pairs_file(folder / "pairs.csv")), out=folder / "run")


def test_the_first_screen_says_it_in_words(run: Run) -> None:
    cells, report = read_cells(run), build_report(run)
    assert report.question == "Does replay:p.csv read the same sentence differently for different groups?"
    assert report.details == (
        "It read 72 sentences of pairs that differ only in the group: 72 pairs, by gender. The report "
        "compares the intensity of each emotion (anger, fear, joy, sadness) between the groups of each pair."
    )
    largest = find_largest(cells)[0]
    assert largest.statement == "More anger is found in the same sentence for female than for male"
    assert largest.evidence.startswith("by 0.100 (")
    assert "2 of 72 pairs (2.8 %) get another class when the group changes." in format_report(
        run, "md"
    ).replace("\\", "")
    assert len(cells) == 12


def test_the_sign_of_a_cell_is_said(run: Run) -> None:
    cells = {cell.key[2:]: cell for cell in read_cells(run)}
    more = cells["male", "female", "anger"]
    assert (more.direction, more.leans_to("difference")) == ("higher", "female")
    assert more.tint.startswith("higher-")
    less = cells["female", "non-binary", "anger"]
    assert (less.direction, less.leans_to("difference")) == ("lower", "female")
    assert less.tint.startswith("lower-")


def test_the_matrix_names_who_is_higher(run: Run) -> None:
    cells = {cell.key[2:]: cell for cell in read_cells(run)}
    assert cells["male", "female", "anger"].acs_words == "female higher"
    assert cells["female", "non-binary", "anger"].acs_words == "female higher"
    html = format_report(run, "html")
    matrix = html.split('id="matrix"')[1].split("</section>")[0]
    assert "▲" not in matrix
    assert "▼" not in matrix
    assert matrix.count("female higher</small>") >= 2
    assert "the second group of the pair is higher" in matrix
    row = next(line for line in format_report(run, "md").splitlines() if line.startswith("| male × female"))
    assert "female higher" in row


def test_the_words_of_an_acs() -> None:
    groups = {"group_a": "male", "group_b": "female"}
    assert cell(acs=0.1, difference=0.1, **groups).acs_words == "female higher"
    assert cell(acs=-0.1, difference=-0.1, **groups).acs_words == "male higher"
    assert cell(acs=0.0, **groups).acs_words == "equal"
    assert cell(acs=None, **groups).acs_words == ""
    # The mean of the ratios and the mean of the differences may name different groups.
    apart = cell(acs=-0.1, difference=0.1, **groups)
    assert (apart.acs_words, apart.is_contrary) == ("male higher", True)
    assert not cell(acs=0.1, difference=0.1, **groups).is_contrary


def test_one_of_something_is_not_several(tmp_path: Path) -> None:
    pairs, predictions = tmp_path / "pairs.csv", tmp_path / "p.csv"
    pairs.write_text("text_a,text_b,group_a,group_b\nA ran.,B ran.,a,b\n", encoding="utf-8")
    predictions.write_text("text,joy,fear\nA ran.,0.6,0.4\nB ran.,0.3,0.7\n", encoding="utf-8")
    prepared = prepare(f"replay:{predictions}", pairs=str(pairs), out=tmp_path / "run")
    assert (
        prepared.plan().lines[0] == "pairs   pairs: 1 pair of groups in 2 sentences (2 different), by group"
    )
    changes = "1 of 1 pair (100.0 %) gets another class when the group changes."
    assert changes in format_report(prepared.run(), "html").replace("\xa0", " ")
    for name in ("html", "md"):
        text = format_report(prepared.run(), name)
        assert "1 pairs" not in text


def cell(**values: object) -> ProbeCell:
    row = dict.fromkeys(
        ("p_adjusted", "difference", "difference_low", "difference_high", "acs", "dp", "null_reason")
    )
    return ProbeCell({**row, **values})  # type: ignore[arg-type]


def test_clear_needs_test_and_interval() -> None:
    ends = {"difference": 0.1, "difference_low": 0.05, "difference_high": 0.15}
    assert cell(p_adjusted=0.01, **ends).standing == "supported"
    assert cell(p_adjusted=0.20, **ends).standing == "unclear"
    assert cell(p_adjusted=0.01, **(ends | {"difference_low": -0.05})).standing == "unclear"
    assert cell(p_adjusted=None, **ends).standing == "missing"


def test_a_cell_whose_acs_points_the_other_way_has_no_colour() -> None:
    ends = {"difference": 0.1, "difference_low": 0.05, "difference_high": 0.15, "p_adjusted": 0.01}
    assert cell(acs=0.2, **ends).tint == "higher-3"
    assert cell(acs=-0.2, **ends).tint == ""


def test_parity_below_the_threshold_is_marked() -> None:
    assert cell(dp=0.79).is_below_parity
    assert not cell(dp=0.80).is_below_parity
    assert not cell(dp=None).is_below_parity


def test_the_page_holds_matrix_plots_and_flips(run: Run) -> None:
    html = format_report(run, "html")
    assert "male × female" in html
    assert html.count("<ellipse") >= 12
    assert html.count('class="mean') == 2 * html.count("<figure>") > 0
    assert sentence("male", 0, "joy") in html
    assert "http://" not in html.replace("http://www.w3.org", "")


def test_text_that_looks_like_markup_stays_text(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(
        "text_a,text_b,group_a,group_b\n"
        + "".join(f'"{evil} a {n}","{evil} b {n}",{evil},second\n' for n in range(4)),
        encoding="utf-8",
    )
    predictions = tmp_path / "p.csv"
    lines = [f'"{evil} a {n}",0.{n + 2},0.1' for n in range(4)] + [
        f'"{evil} b {n}",0.1,0.5' for n in range(4)
    ]
    predictions.write_text("\n".join(["text,joy,fear", *lines]) + "\n", encoding="utf-8")
    run = probe(f"replay:{predictions}", pairs=str(pairs), out=tmp_path / "run")
    assert run.table("flips").height == 4
    assert evil not in format_report(run, "html")
    assert evil not in format_report(run, "md")


def test_json_holds_the_tables(run: Run) -> None:
    content = json.loads((run.path / "report.json").read_text(encoding="utf-8"))
    assert len(content["measures"]) == 48
    assert content["manifest"]["view"] == {"pairs": "all", "score": "emotion"}
    assert content["verdict"].startswith("2 of 9 differences are larger than chance. The largest: more anger")


def test_cells_without_a_test_are_not_counted_as_tested(run: Run, tmp_path: Path) -> None:
    untested = sum(cell.standing == "missing" for cell in read_cells(run))
    assert untested == 3  # all pairs alike: the other 9 of 12 are what the headline counts
    pairs, predictions = tmp_path / "pairs.csv", tmp_path / "p.csv"
    pairs.write_text(
        "text_a,text_b,group_a,group_b\nA ran.,B ran.,a,b\nA sat.,B sat.,a,b\n", encoding="utf-8"
    )
    texts = ("A ran.", "B ran.", "A sat.", "B sat.")
    predictions.write_text(
        "text,joy,fear\n" + "".join(f"{text},0.6,0.4\n" for text in texts), encoding="utf-8"
    )
    constant = probe(f"replay:{predictions}", pairs=str(pairs), out=tmp_path / "run")
    assert build_report(constant).headline == "No difference could be tested"
