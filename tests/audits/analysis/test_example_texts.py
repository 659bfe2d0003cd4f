"""Which texts stand behind a bar, and the words behind their scores."""

from collections.abc import Mapping, Sequence

import polars as pl

from evenhand.audits.analysis.example_texts import PER_BAR, example_table, explanation_table
from evenhand.audits.analysis.quantities import read_axes
from evenhand.core.protocols import WordScore
from evenhand.core.records import Group, Mention, MetricInfo, OutputInfo, Prompt, Text, Value
from evenhand.store.schemas import SCORES, check_table, empty_table


class Letters:
    """Counts letters a and b; explains a alone."""

    info = MetricInfo(
        name="letters",
        version="1",
        outputs=(OutputInfo("a", "continuous", "more a"), OutputInfo("b", "continuous", "more b")),
        summary="",
        primary=(),
    )

    def score(self, texts: Sequence[Text]) -> list[Mapping[str, Value]]:
        return [{name: Value(float(text.text.count(name))) for name in "ab"} for text in texts]

    def explain(self, text: Text, output: str) -> list[WordScore]:
        marks = [WordScore(at, at + 1, 1.0) for at, letter in enumerate(text.text) if letter == output]
        return marks if output == "a" else []


def _run(count=100, groups=2):
    prompts = {
        str(number): Prompt(
            id=str(number),
            suite="s",
            text="Ana said",
            groups=(Group("ax", f"group {number % groups}"),),
            cluster=str(number),
            mentions=(Mention("Ana", "Person"),),
        )
        for number in range(count)
    }
    texts = [" " + "a" * (number // groups) for number in range(count)]
    ids = list(prompts)
    generations = pl.DataFrame({"id": ids, "prompt_id": ids, "text": texts}).join(
        empty_table("generations").drop("prompt_id", "text"), on="id", how="left"
    )
    rows = [
        {"text_id": key, "metric": "letters", "output": name, "value": float(text.count(name)), "label": "x"}
        for key, text in zip(ids, texts, strict=True)
        for name in "ab"
    ]
    return prompts, generations, pl.DataFrame(rows, schema=dict(SCORES))


def _examples(seed=0, **sizes):
    prompts, generations, scores = _run(**sizes)
    found = read_axes(generations["prompt_id"].to_list(), prompts)
    infos = {"letters": Letters.info}
    return example_table("model", found, infos, scores.lazy(), generations, prompts, seed=seed)


def test_a_bar_has_ten_lowest_ten_highest_and_twenty_drawn():
    table = check_table("examples", _examples())
    bar = table.filter(group="group 0", output="a")
    assert bar.height == PER_BAR
    # Group 0 has 0 to 49 letters.
    assert bar.filter(why="lowest")["value"].to_list() == [float(value) for value in range(10)]
    assert bar.filter(why="highest")["value"].to_list() == [float(value) for value in range(49, 39, -1)]
    drawn = bar.filter(why="drawn")["value"]
    assert (drawn.len(), drawn.n_unique()) == (20, 20)
    assert drawn.is_between(10, 39).all()


def test_every_output_has_its_own_extremes():
    assert _examples().group_by("output").len().sort("output").rows() == [("a", 80), ("b", 80)]


def test_the_draw_follows_the_seed_alone():
    assert _examples(seed=1).equals(_examples(seed=1))
    assert not _examples(seed=1).equals(_examples(seed=2))


def test_outputs_share_what_is_drawn():
    table = _examples(count=400).filter(why="drawn", group="group 0")
    a, b = (set(table.filter(output=name)["text_id"]) for name in "ab")
    # Of 200 texts 20 are extreme: few of the first twenty drawn are among them.
    assert len(a & b) >= 12


def test_few_texts_are_shown_once():
    table = _examples(count=6).filter(group="group 0", output="a")
    assert table["text_id"].n_unique() == table.height == 3


def test_many_bars_share_the_room():
    table = _examples(count=3000, groups=1500)
    assert table.height <= 32_000


def test_words_are_places_in_what_the_metric_read():
    prompts, generations, _ = _run()
    chosen = _examples().filter(group="group 0")
    table = check_table(
        "explanations", explanation_table({"letters": Letters()}, chosen, generations, prompts, mask="paper")
    )
    assert table.height == chosen.select("text_id", "output").n_unique()
    row = table.filter(text_id="4", output="a").row(0, named=True)
    assert row["read"] == "Person said aa"
    assert row["masks"] == [{"start": 0, "end": 6}]
    # The a of "said" and two more.
    assert [word["start"] for word in row["words"]] == [8, 12, 13]
    assert table.filter(text_id="4", output="b")["words"].to_list() == [[]]


def test_a_metric_that_does_not_explain_has_no_rows():
    class Silent:
        info = Letters.info
        score = Letters.score

    prompts, generations, _ = _run()
    assert explanation_table({"letters": Silent()}, _examples(), generations, prompts, mask="none").is_empty()
