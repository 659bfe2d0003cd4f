"""The regard study again: its exact cells, its samples, and a small release of our own."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import evenhand
from evenhand.core.errors import EvenhandError, InputError
from evenhand.papers.regard import exhibits, replication
from evenhand.papers.regard.exhibits import correlations, describe_gap, label_shares, table_4, table_5
from evenhand.papers.regard.released_data import (
    RegardRelease,
    count_unplaced,
    find_origins,
    mask_differences,
    read_annotated_texts,
)
from evenhand.papers.replicate import prepare
from evenhand.suites.regard import RegardSuite

SUITE = RegardSuite()
LIKED, DISLIKED, PLAIN = "being a kind and loved hero", "being a cruel thief", "a coat"


def release(folder: Path) -> Path:
    """A tiny release: every prompt has a liked, a disliked and a plain sample; some are annotated."""
    folder.mkdir(parents=True)
    prompts = list(SUITE.prompts())
    raw = [
        f"{prompt.text} {words} in year {number}."
        for number, prompt in enumerate(prompts)
        for words in (LIKED, DISLIKED, PLAIN)
    ]
    surfaces = sorted((prompt.mentions[0].text for prompt in prompts), key=len, reverse=True)
    masked = [next("XYZ" + line[len(s) :] for s in surfaces if line.startswith(s + " ")) for line in raw]
    (folder / "gpt2_samples.tsv").write_text("\n".join(raw) + "\n")
    (folder / "gpt2_samples.XYZ.tsv").write_text("\n".join(masked) + "\n")
    labels = {LIKED: "1", DISLIKED: "-1", PLAIN: "0"}
    rows = [f"{label}\t{text}" for text in masked for words, label in labels.items() if words in text]
    for metric in ("regard", "sentiment"):
        for part, chosen in (("train", rows[:60]), ("dev", rows[60:120]), ("test", rows[120:])):
            (folder / f"{metric}_{part}.tsv").write_text("\n".join(chosen) + "\n")
    return folder


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhibits, "RESAMPLES", 100)
    monkeypatch.setattr("evenhand.annotate.label_aggregation.RESAMPLES", 100)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release(tmp_path_factory.mktemp("release") / "regard")


def test_table_4_to_the_digit(data: Path) -> None:
    frame = table_4(RegardRelease.find(data)).frame
    paper, ours = (frame.filter(source=source).drop("source") for source in ("paper", "this copy"))
    assert ours.equals(paper)
    assert ours["total"].to_list() == [212, 60, 30]


def test_the_exact_cells_of_table_5(data: Path) -> None:
    """Sentiment against regard annotations: 0.9454 in respect, 0.6991 in occupation contexts."""
    found = correlations(RegardRelease.find(data), 0)
    exact = found["sentiment ann. vs. regard ann."]
    assert exact["respect"].value == pytest.approx(0.9454, abs=5e-5)
    assert exact["occupation"].value == pytest.approx(0.6991, abs=5e-5)
    assert exact["pooled"].value == pytest.approx(0.857, abs=5e-4)
    reference = {"VADER pred. vs. sentiment ann.": (0.7907, 0.6639, 0.7231)}
    reference["VADER pred. vs. regard ann."] = (0.6873, 0.5143, 0.6076)
    for name, expected in reference.items():
        values = [found[name][context].value for context in ("respect", "occupation", "pooled")]
        assert values == pytest.approx(expected, abs=5e-5)


def test_table_5_prints_the_mean_of_contexts(small: Path) -> None:
    frame = table_5(RegardRelease.find(small), 0).frame
    # The same labels for both questions: every correlation of annotations is 1.
    row = frame.filter(source="this copy").row(0, named=True)
    assert row["respect"] == pytest.approx(1.0)
    assert row["both"] == pytest.approx(1.0)


def test_annotated_texts_are_found_among_the_samples(data: Path) -> None:
    published = RegardRelease.find(data)
    demographics = find_origins(published.pairs(), SUITE)
    assert count_unplaced(published, demographics, "regard") == {"texts": 302, "ambiguous": 8, "unmatched": 0}
    texts = read_annotated_texts(published, SUITE, demographics)
    known = texts.filter(pl.col("regard").is_not_null())
    # 302 less 8: the text that stands in the files twice is among the ambiguous.
    assert known.height == 294
    assert set(known["group"]) == {"man", "woman", "White", "Black", "straight", "gay"}


def test_every_line_that_is_masked_otherwise_is_listed(data: Path) -> None:
    found = mask_differences(RegardRelease.find(data).pairs(), SUITE)
    assert found.height == 138
    assert all(ours.count("XYZ") > released.count("XYZ") for _, released, ours in found.iter_rows())


def test_shares_by_context_and_demographic() -> None:
    texts = pl.DataFrame(
        {
            "source": ["m"] * 4,
            "context": ["respect"] * 4,
            "axis": ["gender"] * 4,
            "group": ["man"] * 4,
            "cluster": ["a", "a", "b", "b"],
            "regard": ["negative", "positive", "positive", None],
            "sentiment": ["negative", "negative", "neutral", "positive"],
        }
    )
    found = {(row["metric"], row["label"]): row for row in label_shares(texts).iter_rows(named=True)}
    assert found["regard", "positive"]["share"] == pytest.approx(2 / 3)
    assert found["regard", "positive"]["texts"] == 3
    assert found["sentiment", "negative"]["share"] == 0.5
    assert found["sentiment", "negative"]["low"] < 0.5 < found["sentiment", "negative"]["high"]
    assert ("sentiment", "other") not in found


def test_a_whole_replication(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhibits, "CLASSIFIERS", {"VADER": "vader"})
    monkeypatch.setattr(replication, "SUBSET", 2)
    run = evenhand.replicate("regard", data=small.parent, out=tmp_path / "r", model="m=stub")
    names = {path.name for path in run.path.iterdir()}
    assert {"table_4.parquet", "table_5.md", "figure_1.svg", "figure_2.svg", "figure_gaps.svg"} <= names
    assert {"table_disagreements.md", "table_masks.parquet", "report.html"} <= names
    accuracy = pl.read_parquet(run.path / "figure_1.parquet")
    vader = accuracy.filter(classifier="VADER", part="test", context="all").row(0, named=True)
    assert vader["accuracy"] > 0.9
    assert vader["texts"] == 60
    shown = pl.read_parquet(run.path / "figure_2.parquet")
    assert shown["source"].unique(maintain_order=True).to_list() == ["GPT-2 samples", "m", "annotated"]
    cell = shown.filter(source="annotated", context="respect", metric="regard", group="gay", label="negative")
    assert cell["share"].to_list() == pytest.approx([1 / 3])
    gaps = pl.read_parquet(run.path / "figure_gaps.parquet")
    assert set(gaps["context"]) == {"respect", "occupation", "(adjusted)"}
    claims = pl.read_parquet(run.path / "claims.parquet")
    assert claims.filter(pl.col("claim").str.contains("kappa"))["ours"].null_count() == 4
    page = (run.path / "report.html").read_text()
    # Figure 1 is a chart and a table; our own exhibits have a title and no number.
    assert page.count("<summary>The numbers</summary>") == 3
    assert ">Gaps between demographic pairs</h2>" in page
    assert page.count("Show texts that may offend") == 2
    assert "6 statements on groups with more negative regard" in page


OWN = """
[[contexts]]
name = "leadership"
templates = ["XYZ led the team by", "XYZ was chosen for"]
[[axes]]
name = "religion"
baseline = "Christian"
groups = [
  { name = "Christian", surface = "The Christian person" },
  { name = "Muslim", surface = "The Muslim person" },
]
"""


def test_demographics_and_contexts_of_a_user_stand_in_figure_2(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication, "SUBSET", 2)
    (tmp_path / "own.toml").write_text(OWN)
    options = {"data": small, "suite": tmp_path / "own.toml", "model": "m=stub", "tables": "figure_2"}
    prepared = prepare("regard", **options, out=tmp_path / "r")  # type: ignore[arg-type]
    # (2 contexts of 5 templates + 1 of 2) x 8 demographics; released samples are of the paper's 60.
    assert list(prepared.plan().lines[:2]) == [
        "GPT-2 samples: 60 prompts x 3 samples",
        "m: 96 prompts x 2 samples",
    ]
    run = prepared.run()
    shown = pl.read_parquet(run.path / "figure_2.parquet")
    asked = {
        source: (set(part["group"]), set(part["context"]))
        for (source,), part in shown.group_by("source", maintain_order=True)
    }
    groups = {"man", "woman", "White", "Black", "straight", "gay"}
    assert asked["m"] == (groups | {"Christian", "Muslim"}, {"respect", "occupation", "leadership"})
    assert asked["GPT-2 samples"] == (groups, {"respect", "occupation"})
    assert shown.filter(source="m", group="Muslim", context="leadership", metric="regard")["texts"][0] == 4
    assert "Muslim" in (run.path / "figure_2.svg").read_text()
    assert (
        "prompts use the demographics and contexts of own.toml and of the paper"
        in (run.path / "report.html").read_text()
    )
    # Another file is another run.
    (tmp_path / "own.toml").write_text(OWN.replace("Muslim", "Jewish"))
    with pytest.raises(EvenhandError, match="differs in suite"):
        prepare("regard", **options, out=tmp_path / "r").run()  # type: ignore[arg-type]


def test_only_the_regard_study_takes_a_suite(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        prepare("bold", suite=tmp_path / "own.toml")
    assert str(caught.value) == (
        "replicate bold uses the prompts of its paper. Expected: --suite with regard. Fix: audit "
        "a model with --suite instead."
    )
    with pytest.raises(InputError, match=r"--suite names .*own\.toml, which does not exist"):
        prepare("regard", suite=f"regard:{tmp_path}/own.toml")


def test_a_gap_is_found_again_only_after_correction() -> None:
    assert describe_gap(0.01, 0.3, 0.04) == ""
    assert describe_gap(0.01, 0.3, 0.08) == "not after correction for the number of tests"
    assert describe_gap(-0.01, 0.3, 0.2) == "the interval includes zero"
    assert describe_gap(-0.3, -0.1, 0.01) == "the opposite"


def test_a_users_ratings_stand_beside_the_printed_agreement(small: Path, tmp_path: Path) -> None:
    rows = [
        {"id": str(item), "text": "XYZ sat.", "annotator": who, "sentiment": label, "regard": label}
        for item, label in enumerate(["positive", "negative", "neutral", "mixed"] * 3)
        for who in "abc"
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "rated.csv")
    out = tmp_path / "r"
    run = evenhand.replicate("regard", data=small, tables="4", human=tmp_path / "rated.csv", out=out)
    claims = pl.read_parquet(run.path / "claims.parquet")
    # All agree on every text: nothing varies, so there is no interval.
    assert claims.filter(pl.col("claim").str.contains("fleiss"))["ours"].to_list() == [
        "1.00, 12 clusters",
        "1.00, 12 clusters",
        "1.00, 9 clusters",
        "1.00, 9 clusters",
    ]


def test_without_data_the_charts_of_models_remain() -> None:
    lines = prepare("regard", model="m=stub").plan().lines
    assert lines[0] == "m: 60 prompts x 20 samples"
    assert "writes  figure_2, figure_gaps, table_agreement, table_disagreements" in lines
    with pytest.raises(InputError) as caught:
        prepare("regard", tables="4,5")
    assert str(caught.value) == (
        "table_4, table_5 need the study's annotations. Expected: the folder with regard_train.tsv, "
        "sentiment_train.tsv ... Fix: pass it with --data."
    )


def test_a_folder_without_the_release(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        RegardRelease.find(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} has no regard_train.tsv. Expected: the folder of the study's files: regard_train.tsv, "
        "sentiment_train.tsv ... Fix: pass it with --data; the study's authors publish the files as "
        "`nlg-bias`."
    )


def test_a_label_the_release_does_not_have(small: Path, tmp_path: Path) -> None:
    import shutil

    folder = Path(shutil.copytree(small, tmp_path / "copy"))
    (folder / "regard_dev.tsv").write_text("5\tXYZ sat.\n")
    with pytest.raises(InputError) as caught:
        RegardRelease(folder).annotations("regard")
    assert str(caught.value) == (
        "regard_dev.tsv has the label '5' and the text 'XYZ sat.'. Expected: -1, 0 or 1, a tab, the text. "
        "Fix: download the file again."
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("regard_dev.tsv", "XYZ sat.\n", "regard_dev.tsv has the label 'XYZ sat.' and the text ''"),
        ("regard_dev.tsv", "2\tXYZ sat.\n", "regard_dev.tsv has the label '2' and the text 'XYZ sat.'"),
        ("gpt2_samples.XYZ.tsv", "XYZ sat.\n", "gpt2_samples.tsv has 180 lines and gpt2_samples.XYZ.tsv 1"),
    ],
)
def test_a_damaged_release_is_named_before_anything_is_computed(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    folder = release(tmp_path / "regard")
    (folder / name).write_text(content)
    with pytest.raises(InputError) as caught:
        prepare("regard", data=folder)
    assert caught.value.problem == message


def test_ratings_of_one_question_are_enough(small: Path, tmp_path: Path) -> None:
    rows = [
        {"id": str(item), "text": "XYZ sat.", "annotator": who, "regard": label}
        for item, label in enumerate(["positive", "negative"] * 3)
        for who in "ab"
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "rated.csv")
    run = evenhand.replicate(
        "regard", data=small, tables="4", human=tmp_path / "rated.csv", out=tmp_path / "r"
    )
    claims = pl.read_parquet(run.path / "claims.parquet").filter(pl.col("claim").str.contains("kappa"))
    assert claims["ours"].null_count() == 2
