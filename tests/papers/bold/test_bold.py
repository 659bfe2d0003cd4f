"""BOLD's tables from a handful of texts, and from the published sentences."""

import json

import polars as pl
import pytest

import evenhand
from evenhand.core.errors import InputError
from evenhand.papers import svg_figures
from evenhand.papers.bold import replication, tables
from evenhand.papers.replicate import PaperSource, prepare
from evenhand.papers.replication_pages import load_published
from evenhand.testing.stub import StubModel

NORMS = ("valence", "arousal", "dominance", "joy", "anger", "sadness", "fear", "disgust")


def texts(*rows, source="WIKI"):
    """Rows of (domain, group, labels); every text is its own cluster."""
    columns = ("sentiment", "toxicity", "regard", "unigram", "wavg", "max", *NORMS)
    out = []
    for place, (domain, group, labels) in enumerate(rows):
        row = {"source": source, "domain": domain, "group": group, "cluster": f"c{place}"}
        row |= {"prompt_id": f"p{place}", "text_id": f"t{place}", "prompt": "Ann Lee is", "text": " a pilot"}
        row["mentions"] = [{"text": "Ann Lee", "mask": "Person", "whole_word": True}]
        row |= {name: labels.get(name) for name in columns}
        row |= {f"{name}_value": labels.get(f"{name}_value") for name in columns}
        out.append(row)
    schema = {f"{name}_value": pl.Float64 for name in columns} | dict.fromkeys(columns, pl.String)
    return pl.DataFrame(out, schema_overrides=schema, infer_schema_length=None)


def professions(group, male, female, neutral):
    labels = ["male"] * male + ["female"] * female + ["neutral"] * neutral
    return [("profession", group, {"max": label, "wavg": label, "unigram": label}) for label in labels]


def test_ratios_are_cut_and_missing_where_no_text_is_female():
    rows = professions("dance_occupations", 5, 3, 2) + professions("nursing_specialties", 2, 0, 1)
    frame = tables.table_3(texts(*rows)).frame.filter(pl.col("source") == "WIKI")
    arts, health = frame.to_dicts()
    assert (arts["group"], arts["total"], arts["gender_max_male"], arts["gender_max_ratio"]) == (
        "arts & entertainment",
        10,
        5,
        1.66,  # 5 / 3 = 1.666..., cut as the paper cuts
    )
    assert (health["group"], health["unigram_ratio"]) == ("healthcare & medicine", None)
    assert tables.gender_ratios(texts(*rows)) == {"WIKI": None}


def test_the_paper_s_averages_are_means_of_four_ratios():
    rows = professions("dance_occupations", 2, 1, 0) + professions("engineering_branches", 6, 1, 0)
    rows += professions("industrial_occupations", 1, 1, 0) + professions("nursing_specialties", 1, 2, 0)
    assert tables.gender_ratios(texts(*rows)) == {"WIKI": (2 + 6 + 1 + 0.5) / 4}


def test_printed_averages_follow_from_printed_ratios():
    table = (
        load_published("bold", "table_3")
        .group_by("source")
        .agg(pl.col("gender_max_ratio").mean().alias("mean"))
    )
    for source, mean in table.iter_rows():
        assert mean == pytest.approx(replication.RATIOS[source.removeprefix("paper: ")], abs=0.011)


def test_figure_2_is_male_minus_female():
    figure = tables.figure_2(texts(*professions("dance_occupations", 3, 1, 4)))
    assert figure.frame["difference"].to_list() == [(3 - 1) / 8]


def test_gaps_are_male_minus_female_in_points():
    rows = [("gender", "American_actors", {"anger": "present" if i < 2 else "absent"}) for i in range(8)]
    rows += [("gender", "American_actresses", {"anger": "present" if i < 1 else "absent"}) for i in range(8)]
    row = (
        tables.gap_table("table_4", texts(*rows)).frame.filter(pl.col("source") == "WIKI").row(0, named=True)
    )
    assert row["anger"] == pytest.approx(12.5)
    assert row["anger_low"] < 12.5 < row["anger_high"]
    assert row["valence_negative"] is None  # nothing was scored: missing, not zero


def test_the_mean_row_is_over_sources():
    def source(name, present):
        rows = [
            ("race", "Asian_Americans", {"joy": "present" if i < present else "absent"}) for i in range(4)
        ]
        return texts(*rows, source=name)

    frame = tables.share_table("table_9", pl.concat([source("a", 1), source("b", 3)])).frame
    assert frame.filter(pl.col("source") == "mean")["joy"].to_list() == [50.0]
    assert frame.filter(pl.col("source") == "paper: mean").height == 4


def test_regard_shares_name_label_and_group():
    rows = [
        ("race", "African_Americans", {"regard": label})
        for label in ("negative", "neutral", "positive", "other")
    ]
    row = tables.table_5(texts(*rows)).frame.filter(pl.col("source") == "WIKI").row(0, named=True)
    assert row["negative_african_american"] == 0.25
    assert row["positive_male"] is None


def test_figures_hold_their_numbers():
    rows = [("gender", "American_actors", {"sentiment": "negative", "toxicity": "toxic"})] * 2
    rows += [("race", "Asian_Americans", {"sentiment": "neutral", "toxicity": "nontoxic"})] * 2
    figure = tables.figure_3(texts(*rows))
    assert figure.frame.filter(pl.col("group") == "male")["negative"].drop_nulls().to_list() == [1.0]
    assert figure.frame.filter(pl.col("group") == "male")["toxic"].drop_nulls().to_list() == [1.0]
    assert figure.svg.startswith("<?xml")


def test_extreme_texts_are_redacted_and_behind_a_notice():
    labels = {"sentiment": "negative", "sentiment_value": -0.9}
    table = tables.table_7(texts(("gender", "American_actors", labels)))
    assert table.is_offensive
    assert table.frame["text"].to_list() == ["[Person] is – a pilot"]
    assert table.frame["label"].to_list() == ["negative sentiment"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a Person of XYZ, a Personality", "[Person] is – a Person of XYZ, a Personality"),
        ("here; Lee's leer, Ann. ann lee", "[Person] is – here; [Person]'s leer, [Person]. [Person]"),
    ],
)
def test_names_are_redacted_and_nothing_else(text, shown):
    labels = {"sentiment": "negative", "sentiment_value": -0.9}
    frame = texts(("gender", "American_actors", labels)).with_columns(text=pl.lit(f" {text}"))
    assert tables.table_7(frame).frame["text"].to_list() == [shown]


def test_tests_over_sources_are_of_models():
    rows = [
        ("gender", "American_actors", {"sentiment": "positive" if i < 4 else "negative"}) for i in range(8)
    ]
    frame = pl.concat([texts(*rows), texts(*rows, source="a"), texts(*rows, source="b")])
    found = replication.test_table(frame).frame.filter(pl.col("section") == "6.2")
    shares = "a 0.5000, b 0.5000"
    assert found["shares"].to_list() == ["", shares, shares]


def test_tests_without_texts_say_so():
    frame = replication.test_table(texts(("gender", "American_actors", {"sentiment": "positive"}))).frame
    assert frame["p_ours"].null_count() == frame.height
    assert frame["null_reason"].null_count() == 0


def test_claims_carry_interval_and_n():
    rows = [
        ("gender", "American_actors", {"sentiment": "neutral" if i < 6 else "positive"}) for i in range(8)
    ]
    found = {claim.claim: claim for claim in replication.claims(texts(*rows))}
    ours = found["texts with neutral sentiment"].ours
    assert ours.startswith("75.00 % [")
    assert ours.endswith("n = 8")
    assert found["toxic texts, atheism"].ours is None


def test_the_polar_share_is_of_table_3_as_its_printed_counts_show():
    table = load_published("bold", "table_3")
    polar = table["gender_max_male"].sum() + table["gender_max_female"].sum()
    assert (polar, table["total"].sum()) == (3956, 60204)  # 6.571 %
    rows = professions("dance_occupations", 1, 0, 3) + professions("corporate_titles", 4, 0, 0)
    claim = replication.claims(texts(*rows))[0]
    assert claim.paper == "6.57 %"
    assert claim.ours.startswith("25.00 % [")
    assert claim.ours.endswith("n = 4")


def test_every_number_of_the_text_is_claimed():
    rows = [("religious_ideology", "islam", {"toxicity": "toxic"})] * 2
    rows += [("religious_ideology", "hinduism", {"toxicity": "nontoxic"})]
    rows += [
        (domain, group, {"sentiment": label})
        for domain, group in (("gender", "American_actors"), ("gender", "American_actresses"))
        for label in ("positive", "negative", "neutral")
    ]
    found = replication.claims(texts(*rows))
    ours = {claim.claim: claim.ours for claim in found}
    assert ours["prompts about hinduism"] == "1"
    assert ours["beliefs with toxic texts"] == "1 of 2"
    assert ours["toxic texts, religious ideology"] == "islam 2, n = 3"
    assert ours["p, sentiment positive: male against female, sources pooled"] == "1"  # equal shares
    printed_p = [claim.paper for claim in found if claim.claim.startswith("p, ")]
    assert printed_p == ["0.204", "< 0.01", "< 0.001", "< 0.001", "< 0.0002", "< 0.001", "< 0.001"]


def test_a_share_of_one_entity_says_why_it_has_no_interval():
    frame = texts(*[("religious_ideology", "atheism", {"toxicity": "nontoxic"})] * 3)
    one = {claim.claim: claim for claim in replication.claims(frame.with_columns(cluster=pl.lit("c")))}
    assert one["toxic texts, atheism"].ours == "0.00 %, n = 3"
    assert one["toxic texts, atheism"].remark.startswith("no interval: ")


def test_people_are_compared_with_metrics(tmp_path):
    file = tmp_path / "human.jsonl"
    rows = [
        ("She sewed her dress", "female"),
        ("He is a man", "male"),
        ("It rained", "neutral"),
        ("He left", "neutral"),
    ]
    file.write_text(
        "\n".join(json.dumps({"task": "gender", "text": text, "label": label}) for text, label in rows)
    )
    found = tables.build_exhibits(tables.read_labels(file))
    table = found["table_8"].frame.filter((pl.col("source") == "ours") & (pl.col("metric") == "unigram"))
    whole = table.filter(pl.col("label") == "(weighted)").row(0, named=True)
    assert (whole["accuracy"], whole["n"]) == (75.0, 4)
    assert table.filter(pl.col("label") == "male")["precision"].to_list() == [50.0]
    assert found["figure_6"].svg.startswith("<?xml")
    file.write_text('{"task": "gender", "text": "x", "label": "woman"}')
    with pytest.raises(InputError, match="has the label 'woman' for the task 'gender'"):
        tables.read_labels(file)
    file = tmp_path / "empty.csv"
    file.write_text("task,text,label\ngender,,female\n")
    # Before any model is run: a replication takes hours.
    with pytest.raises(InputError, match=r"empty\.csv has no labels\."):
        prepare("bold", human=file, data=tmp_path)


def test_people_judge_the_metric_that_was_put_in_place(monkeypatch):
    asked = []
    known = tables.registry.create_metric
    monkeypatch.setattr(
        tables.registry,
        "create_metric",
        lambda spec, *rest: (asked.append(spec), known("gender_polarity", *rest))[1],
    )
    labels = pl.DataFrame({"task": ["gender"] * 2, "text": ["He left", "She"], "label": ["male", "female"]})
    tables.build_exhibits(labels, ["sentiment", "gender_polarity=mine.vec"])
    assert asked == ["gender_polarity=mine.vec"]


def test_tables_of_people_need_people():
    with pytest.raises(InputError, match=r"^table_8, figure_6 requested without human labels\."):
        prepare("bold", tables="8,figure_6")


def test_pooling_uses_prompts_that_all_sources_have():
    a = texts(("gender", "American_actors", {}), ("gender", "American_actors", {}), source="a")
    b = texts(("gender", "American_actors", {}), source="b")
    assert replication.select_shared(pl.concat([a, b]))["prompt_id"].unique().to_list() == ["p0"]


def test_published_sentences_give_the_paper_s_counts(data, tmp_path, monkeypatch):
    monkeypatch.setattr(replication, "SUBSET", 86)
    run = evenhand.replicate("bold", data=data, tables="1,3", model="mine=stub", out=tmp_path / "r")
    ours = pl.read_parquet(run.path / "table_3.parquet").filter(pl.col("source") == "WIKI")
    counts = {
        row["group"]: (row["total"], row["unigram_male"], row["unigram_female"]) for row in ours.to_dicts()
    }
    assert counts == {
        "arts & entertainment": (3009, 102, 66),
        "science & technology": (4153, 54, 6),
        "industrial & manufacturing": (1699, 23, 17),
        "healthcare & medicine": (1173, 3, 19),
    }
    first = pl.read_parquet(run.path / "table_1.parquet")
    assert (
        first.filter(pl.col("source") == "this copy")
        .drop("source")
        .equals(first.filter(pl.col("source") != "this copy").drop("source"))
    )
    assert "86 prompts that all sources have" in (run.path / "report.html").read_text()
    assert (run.path / "runs" / "mine" / "report.html").exists()


def test_twins_are_refused(data):
    with pytest.raises(InputError, match="two sources have the name 'stub', or nearly the same name"):
        prepare("bold", data=data, model="stub,stub")
    with pytest.raises(InputError, match="two sources have the name 'A-b', or nearly the same name"):
        prepare("bold", data=data, model="a/b=stub,A-b=stub")


def test_a_source_stays_in_its_folder():
    assert PaperSource("../x", StubModel()).folder == "x"
    assert PaperSource("..", StubModel()).folder == "source"


def test_metrics_may_be_put_in_place(data):
    prepared = prepare("bold", data=data, model="stub", metrics="toxicity=org/toxic-bert").job
    assert prepared.metrics == ("sentiment", "toxicity=org/toxic-bert", "regard", "gender_polarity", "norms")
    with pytest.raises(InputError, match="--metrics names 'emotion', which BOLD does not use"):
        prepare("bold", data=data, model="stub", metrics="emotion")
    with pytest.raises(InputError, match="replicate regard uses the metrics of its paper"):
        prepare("regard", metrics="emotion")
    with pytest.raises(InputError, match="replicate regard uses the text length of its paper"):
        prepare("regard", max_new_tokens=9)


def test_labels_in_other_columns_say_what_is_there_and_what_is_needed(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("task,sentence,answer\ngender,XYZ is a nurse,female\n")
    with pytest.raises(InputError, match=r"has no column text, label; it has task, sentence, answer\."):
        tables.read_labels(file)


def test_a_colour_of_figure_3_has_one_meaning():
    assert not set(svg_figures.SERIES) & set(svg_figures.POLARITY.values())
    rows = [("gender", "American_actors", {"sentiment": "negative", "toxicity": "toxic"})] * 2
    rows += [("race", "Asian_Americans", {"sentiment": "neutral", "toxicity": "nontoxic"})] * 2
    figure = tables.figure_3(pl.concat([texts(*rows), texts(*rows, source="a")]))
    for drawn in (figure.svg, figure.narrow):
        assert all(colour in drawn for colour in (*svg_figures.SERIES[:2], *svg_figures.POLARITY.values()))
        assert svg_figures.SERIES[2] not in drawn
    # The narrow one is drawn at the width of a telephone.
    assert f'width="{svg_figures.NARROW * 72:g}pt"' in figure.narrow
