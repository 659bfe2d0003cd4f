"""``create_study`` and the functions around it, from real files and runs."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from tests.annotate.study_parts import make_study

import evenhand
from evenhand.annotate.database import VARIABLE
from evenhand.annotate.study import Study
from evenhand.annotate.study_creation import count_people, prepare
from evenhand.annotate.study_server import format_link, read_study_state
from evenhand.audits.run_setup import PreparedJob
from evenhand.core.errors import InputError, UnknownNameError
from evenhand.core.files import asset_path

EXAMPLES = asset_path("examples", "texts.csv")
MOODS = ("hated and sad", "happy and loved")


def written(path: Path, rows: list[dict[str, str]]) -> Path:
    pl.DataFrame(rows).write_csv(path)
    return path


def people_file(path: Path) -> Path:
    """Ten texts about women and ten about men, half of each glad, half of each sad."""
    return written(
        path,
        [
            {
                "id": f"{who}-{number}",
                "text": f"{who.title()} number {number} was {MOODS[number % 2]}.",
                "gender": who,
                "mention": who,
            }
            for who in ("woman", "man")
            for number in range(10)
        ],
    )


def test_a_study_from_a_file(tmp_path: Path) -> None:
    study = evenhand.create_study(
        tmp_path / "s",
        people_file(tmp_path / "people.csv"),
        group={"gender": "gender"},
        mentions="mention",
        id="id",
        items=8,
        seed=3,
    )
    items = study.items().filter(~pl.col("is_check"))
    assert Counter(items["group"]) == {"gender=woman": 4, "gender=man": 4}
    # The metric was run on the masked text, and both ends of its range are there.
    assert items["text"].str.contains(r"^XYZ number \d was").all()
    assert Counter(items.filter(pl.col("score") > 0)["group"]) == {"gender=woman": 2, "gender=man": 2}
    assert set(items["score_label"]) == {"positive", "negative"}
    assert items["text_id"].str.starts_with("woman-").sum() == 4
    assert study.settings.seed == 3
    assert study.settings.provenance["sources"].endswith("people.csv")


def test_the_same_seed_draws_the_same_items(tmp_path: Path) -> None:
    options = {"group": {"job": "group"}, "items": 12}
    made = [evenhand.create_study(tmp_path / name, EXAMPLES, **options) for name in "ab"]  # type: ignore[arg-type]
    assert made[0].items().equals(made[1].items())
    assert made[0].id != made[1].id


def test_the_plan_says_what_will_be_done(tmp_path: Path) -> None:
    prepared = prepare(tmp_path / "s", EXAMPLES, group=["job=group"], items=60, task="regard")
    plan = prepared.plan()
    assert plan.title == "new study: s"
    assert plan.lines[1] == (
        "ask     regard, sentiment (regard), 3 people per text, pages of 10, 4 attention checks"
    )
    assert not (tmp_path / "s").exists()
    assert (
        "no text has a mask: annotators may see its group (for files, --mentions names the column "
        "with the words to mask)" in prepared.notes
    )


def test_mentions_that_never_occur_are_named(tmp_path: Path) -> None:
    file = written(tmp_path / "t.csv", [{"text": f"text {number}", "who": "Ada"} for number in range(9)])
    notes = prepare(tmp_path / "s", file, items=5, task="sentiment", mentions="who").notes
    assert notes == [
        "none of the words in the column 'who' (--mentions) occurs in any text, so nothing is masked: "
        "annotators may see the group"
    ]


def test_too_few_texts_are_said(tmp_path: Path) -> None:
    prepared = prepare(tmp_path / "s", people_file(tmp_path / "p.csv"), items=50, mentions="mention")
    # Masked and without groups, the texts about women are those about men.
    assert prepared.notes == ["10 distinct texts are available, 50 were requested"]


def test_scores_of_the_file_are_used(tmp_path: Path) -> None:
    rows = [{"text": f"text {number}", "mine": str(number / 10)} for number in range(20)]
    file = written(tmp_path / "scored.csv", rows)
    study = evenhand.create_study(tmp_path / "s", file, score="mine", items=5, task="toxicity")
    scores = sorted(study.items().filter(~pl.col("is_check"))["score"])
    # One of each fifth of [0, 1.9].
    assert [int(score / 0.38) if score < 1.9 else 4 for score in scores] == [0, 1, 2, 3, 4]
    rows[3]["mine"] = "high"
    with pytest.raises(InputError, match="has 'high' in the column 'mine'"):
        prepare(tmp_path / "t", written(tmp_path / "bad.csv", rows), score="mine")


def likert_file(path: Path, methods: tuple[str, ...]) -> Path:
    return written(
        path,
        [
            {
                "prompt": f"About tax {number},",
                "text": f"About tax {number}, {method} said so.",
                "how": method,
            }
            for number in range(6)
            for method in methods
        ],
    )


def _people(job: PreparedJob[Study]) -> int:
    study = job.run()
    return count_people(study.task, study.settings.annotators, study.items())


def test_likert_joins_methods_by_prompt(tmp_path: Path) -> None:
    file = likert_file(tmp_path / "l.csv", ("plain", "calm"))
    study = evenhand.create_study(tmp_path / "s", file, task="likert", prompt="prompt", method="how", items=8)
    items = study.items().filter(~pl.col("is_check"))
    assert Counter(items["method"]) == {"plain": 4, "calm": 4}
    assert set(Counter(items["pair"]).values()) == {2}
    assert items.filter(pl.col("text").str.starts_with(pl.col("prompt"))).height == 8
    assert items["score"].null_count() == 8
    prepared = prepare(
        tmp_path / "t", file, task="likert", prompt="prompt", method="how", items=9, annotators=5
    )
    assert prepared.notes == []  # nine do not divide by two
    # Eight texts, five people each, two texts a method: four a person, 40 / 4 = 10 people.
    assert prepared.plan().lines[2] == "answers 40 required, by 10 people or more"
    assert _people(prepared) == 10
    beside = prepare(
        tmp_path / "v", file, task="likert", prompt="prompt", method="how", items=8, layout="side-by-side"
    )
    # Eight a person are four prompts by two methods: 8 x 3 / 8 = 3 people.
    assert _people(beside) == 3
    assert _people(prepare(tmp_path / "u", file, items=8)) == 3


def test_likert_needs_shared_prompts(tmp_path: Path) -> None:
    one = written(tmp_path / "one.csv", [{"prompt": "A", "text": "A b"}])
    two = written(tmp_path / "two.csv", [{"prompt": "C", "text": "C d"}])
    with pytest.raises(InputError, match="no prompt has a text by each of the 2 methods"):
        prepare(tmp_path / "s", [one, two], task="likert", prompt="prompt")


def test_a_study_from_a_run(tmp_path: Path) -> None:
    run = evenhand.audit(
        "stub", suite="starter", limit=40, samples=1, metrics="sentiment", out=tmp_path / "run"
    )
    study = evenhand.create_study(tmp_path / "s", run.path, items=20)
    items = study.items().filter(~pl.col("is_check"))
    assert items.height == 20
    known = {
        row["text_id"]: row["value"]
        for row in run.table("scores").iter_rows(named=True)
        if row["output"] == "compound"
    }
    assert all(known[row["text_id"]] == row["score"] for row in items.iter_rows(named=True))
    assert items["group"].n_unique() > 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "mood"}, "no task 'mood'"),
        ({"mask": "black"}, "--mask 'black'. Expected: suite, xyz, none"),
        ({"layout": "pile"}, "--layout 'pile'. Expected: list, single, side-by-side"),
        ({"items": 0}, "--items 0 is out of range. Expected: 1 or more"),
        ({"annotators": 0}, "--annotators 0 is out of range. Expected: 1 or more"),
        ({"text": "body"}, "has no column 'body' \\(--text\\)"),
    ],
)
def test_options_that_cannot_be_used(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises((InputError, UnknownNameError), match=message):
        prepare(tmp_path / "s", EXAMPLES, **options)  # type: ignore[arg-type]


def test_links_are_made_and_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    study = evenhand.create_study(tmp_path / "s", EXAMPLES, group={"job": "group"}, items=10)
    first, second = evenhand.invite_people(study.folder, 2)
    assert (first.annotator, second.annotator) == ("a1", "a2")
    assert first.link == f"http://127.0.0.1:8765/join/{first.token}"
    (elsewhere,) = evenhand.invite_people(study.folder, again="a1", base="https://host")
    assert elsewhere.link == f"https://host/join/{elsewhere.token}"
    assert evenhand.invite_people(study.folder, again="a2")[0].token != second.token
    state = read_study_state(study.folder)
    assert state == (10, 0, 0, 0, 2)
    assert evenhand.forget_person(study.folder, "a1").startswith("x")
    assert read_study_state(study.folder).links == 1


def test_the_state_of_a_study_whose_claims_never_expire(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", items=4, hold_hours=1e11)
    assert read_study_state(study.folder).items == 4


def test_a_link_needs_a_whole_address() -> None:
    assert format_link("https://study.example/", "abc") == "https://study.example/join/abc"
    for wrong in (
        "study.example",
        "https://study.example/here",
        "http://[::",
        "http://h:port",
        "ftp://h",
        "http://",
    ):
        with pytest.raises(InputError, match=re.escape(f"--base {wrong!r}")):
            format_link(wrong, "abc")
