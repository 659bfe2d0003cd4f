"""The report of a corpus run: plain sentences first, nothing hidden, nothing that breaks on odd input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.corpus.report.findings import FEWEST, CorpusFindings
from evenhand.corpus.report.page import build_report
from evenhand.corpus.scan import scan_corpus
from evenhand.report.document import Table
from evenhand.report.render_run import format_report, summarise_run
from evenhand.store.run import Run

EVIL = "<script>alert(1)</script> <img src=x onerror=alert(2)> she is happy & glad\u202e"
TEXTS = [
    f"{number} She was {'happy' if number % 3 else 'sad'}. He was {'afraid' if number % 7 else 'happy'}! "
    f"Rain fell on {number * number} roofs. {'Joy and fear' if number % 5 == 0 else 'Nothing'} to see."
    for number in range(300)
]


def scanned(folder: Path, texts: list[str], **options: object) -> Run:
    (folder / "news.txt").write_text("\n".join(texts), encoding="utf-8")
    return scan_corpus(folder / "news.txt", out=folder / "run", **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return scanned(tmp_path_factory.mktemp("corpus"), TEXTS)


def test_the_first_screen_is_in_plain_words(run: Run) -> None:
    found = CorpusFindings(run)
    assert found.question == "Which emotions share a sentence with which groups in news?"
    assert found.details == (
        "1,200 sentences of 300 documents were searched for words of 4 emotions and 13 groups. "
        "Each link is compared with sentences that name no group of the same kind."
    )
    # He is in one sentence of each text, afraid but in every seventh (43 of 300).
    first = found.largest[0]
    assert first.key == ("news", "fear", "gender", "male")
    assert first.statement == (
        "of the sentences that name the group male, 85.7 % contain a word of fear; "
        "where no gender is named, 10.0 % do"
    )
    # Odds 257/43 against 60/540: 53.79.
    assert first.ratio == "53.79×"
    assert first.evidence.startswith("odds ratio 53.79 (")
    assert first.evidence.endswith("257 sentences with both, 300 documents read, adjusted p < 0.001")
    assert found.headline.endswith("of an emotion with a group are larger than chance")


def test_a_link_on_few_sentences_is_not_put_first(tmp_path: Path) -> None:
    # 19 of 40 women are happy, and 3 of 1,000 others: clear, and the strongest; 100 of 200 men are sad.
    women = [f"{i} She is {'happy' if i < 19 else 'here'}." for i in range(40)]
    men = [f"{i} He is {'sad' if i % 2 else 'here'}." for i in range(200)]
    others = [f"Rain fell on {i} roofs{', happy' * (i < 3)}{', sad' * (i % 50 == 7)}." for i in range(1000)]
    found = CorpusFindings(scanned(tmp_path, [*women, *men, *others]))
    clear = {link.key[1::2]: link.value("sentences") for link in found.standing("supported")}
    assert clear["joy", "female"] == FEWEST - 1
    assert [link.key[1::2] for link in found.largest] == [("sadness", "male")]
    assert found.ground == (
        "Shown first are the most certain links with at least 20 sentences that contain both the emotion and "
        "the group; 1 clear link has fewer"
    )
    assert f"{found.ground}." in format_report(Run.open(tmp_path / "run"), "html")
    found = CorpusFindings(scanned(tmp_path, [*women, *others], fresh=True))
    assert found.largest == []
    assert found.verdict.endswith(
        "larger than chance. It is based on fewer than 20 sentences that contain both the emotion and the "
        "group, so it is not presented as the main result."
    )


def test_the_notice_speaks_of_the_corpus(run: Run) -> None:
    html = format_report(run, "html")
    notice = html.split('id="notice"')[1].split("</div>")[0]
    assert "These sentences are quoted from the corpus unchanged" in notice
    assert "Show the sentences" in notice
    assert "written by a model" not in html


def test_the_page_says_which_clusters_were_assumed(run: Run) -> None:
    lines = " ".join(CorpusFindings(run).list_caveats())
    assert "Here they are 300 lines of files that have no empty line." in lines
    assert "--cluster file" in lines


def test_every_cell_has_its_sentences_behind_a_notice(run: Run) -> None:
    html = format_report(run, "html")
    data = json.loads(html.split('id="data">')[1].split("</script>")[0])
    cell = data["sentences"]["news\tjoy\tgender\tfemale"]
    assert len(cell) == 5
    assert all("She was happy" in text for text, _ in cell)
    assert all("news.txt, byte " in place for _, place in cell)
    body = html.split('<script type="application/json"')[0]
    assert "She was happy" not in body
    assert 'id="notice"' in body
    # The tab between the parts of a key is kept in an attribute.
    assert 'data-key="news\tjoy\tgender\tfemale"' in body


def heat_map(run: Run, axis: str) -> Table:
    sections = {section.id: section for section in build_report(run).sections}
    tables = (block for block in sections["maps"].blocks if isinstance(block, Table))
    return next(table for table in tables if table.title == axis)


def test_heat_maps_hold_ratio_share_and_baseline(run: Run) -> None:
    table = heat_map(run, "gender")
    rows = {row.cells[0]: row.cells for row in table.rows}
    base = "Sentences with the emotion where no group is named"
    assert list(rows) == ["male", "female", "non-binary", base]
    at = [column.head for column in table.heads].index("joy")
    assert rows["female"][at].tone == "supported higher-3"
    assert rows[base][at] == "10.00 %"
    missing = rows["non-binary"][1]
    assert (missing.text, missing.tone) == ("–", "missing")


def test_no_text_of_the_corpus_can_run(tmp_path: Path) -> None:
    run = scanned(tmp_path, [EVIL, *TEXTS])
    html = format_report(run, "html")
    assert "<script>alert" not in html
    assert "<img" not in html
    assert "\u202e" not in html
    # The data, the tables and the one script.
    assert html.count("<script") == 3
    assert "default-src &#39;none&#39;" in html


@pytest.mark.parametrize(
    ("texts", "headline", "why"),
    [
        (["..."], "Nothing could be counted", "the inputs hold no sentence with a word"),
        (
            ["Rain fell."],
            "No link of an emotion with a group could be tested",
            "no sentence holds both an emotion word and a group word",
        ),
        (
            ["She is happy and he is not. He is. It is. She is. It is happy."],
            "No link of an emotion with a group could be tested",
            "too few documents name a group and an emotion",
        ),
        (
            ["She is happy."],
            "No link of an emotion with a group could be tested",
            "for each link, one of these kinds is missing",
        ),
    ],
)
def test_empty_results_say_why(tmp_path: Path, texts: list[str], headline: str, why: str) -> None:
    run = scanned(tmp_path, texts)
    found = CorpusFindings(run)
    assert found.headline == headline
    assert why in found.verdict
    assert why in format_report(run, "html")
    assert headline in format_report(run, "md")
    assert summarise_run(run) is not None


def test_corpora_stand_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(TEXTS))
    # Every second man is happy, not afraid: joy in 200 + 172 + 60 sentences instead of 200 + 43 + 60.
    changed = [text.replace("afraid", "happy") if i % 2 else text for i, text in enumerate(TEXTS)]
    (tmp_path / "b.txt").write_text("\n".join(changed))
    run = scan_corpus([f"one={tmp_path}/a.txt", f"two={tmp_path}/b.txt"], out=tmp_path / "run")
    rows = heat_map(run, "gender").rows
    assert rows[0].is_heading
    assert rows[0].cells == ("male",)
    for row, corpus, sign in zip(rows[1:3], ("one", "two"), ("", " ≠"), strict=True):
        assert row.cells[0] == corpus
        keys = [cell.button["key"].split("\t")[:2] for cell in row.cells[2:4]]
        assert keys == [[corpus, "fear"], [corpus, "joy"]]
        assert [cell.text.endswith("≠") for cell in row.cells[2:4]] == [bool(sign)] * 2
    findings = CorpusFindings(run)
    (side,) = findings.sides
    assert side.startswith("two against one: ")
    assert {link.statement[:8] for link in findings.links} == {"in one, ", "in two, "}
    assert f'<td class="num">{432 / 303:.2f}×' in format_report(run, "html")
    html = format_report(run, "html")
    # A heading for each of the 13 groups and for the baseline of each of the 3 axes.
    assert html.count('<th scope="rowgroup"') == 13 + 3
    assert "| male | two |" in format_report(run, "md")
    assert "≠" in html
