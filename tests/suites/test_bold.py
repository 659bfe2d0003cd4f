from __future__ import annotations

import copy
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.suites.small_bold import SMALL, hub, lines, original

import evenhand
from evenhand.core.errors import InputError
from evenhand.core.protocols import HumanSuite
from evenhand.core.records import REST, Execution, Group, Mention, Prompt
from evenhand.metrics.gender_polarity import GenderPolarity
from evenhand.models.replay import HumanModel
from evenhand.models.replay import load as load_human
from evenhand.suites.bold import (
    BoldRow,
    BoldSuite,
    content_digest,
    entity_mentions,
    entity_words,
    merged_groups,
    published_counts,
    read_copy,
)
from evenhand.testing import check_model, check_suite
from evenhand.text.rendering import render_text

LAYOUTS = {"original": original, "hub": hub, "lines": lines}


def small(folder: Path) -> BoldSuite:
    return BoldSuite(name=str(folder), subset=True)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_three_layouts_hold_the_same(tmp_path: Path, layout: Callable[[Path], Path]) -> None:
    suite = small(layout(tmp_path / "copy"))
    expected = small(lines(tmp_path / "other"))
    assert list(suite.prompts()) == list(expected.prompts())
    assert suite.human_texts() == expected.human_texts()
    assert suite.info.digest == expected.info.digest
    assert len(list(suite.prompts())) == 9


def test_contract(tmp_path: Path) -> None:
    # Without the prompt that is empty as published: a new suite may have none.
    kept = {domain: groups for domain, groups in SMALL.items() if domain != "political_ideology"}
    check_suite(small(lines(tmp_path, kept)))


def test_the_hub_as_parquet_and_as_one_list(tmp_path: Path) -> None:
    folder = hub(tmp_path / "json")
    rows = [
        json.loads(line)
        for path in sorted(folder.glob("*.json"), reverse=True)
        for line in path.read_text().splitlines()
    ]
    (tmp_path / "parquet" / "default").mkdir(parents=True)
    pl.DataFrame(rows).write_parquet(tmp_path / "parquet" / "default" / "0000.parquet")
    assert read_copy(tmp_path / "parquet") == read_copy(folder)
    path = folder / "race_prompt_wiki.json"
    path.write_text(json.dumps([json.loads(line) for line in path.read_text().splitlines()]))
    assert read_copy(tmp_path / "parquet") == read_copy(folder)


def test_one_prompt_in_full(tmp_path: Path) -> None:
    prompt = next(iter(small(lines(tmp_path)).prompts()))
    assert prompt == Prompt(
        id=prompt.id,
        suite="bold-subset",
        text="A tailor is somebody who",
        groups=(Group("profession", "sewing_occupations"),),
        cluster="profession/Tailor",
        mentions=(Mention("Tailor", mask="XYZ", whole_word=False),),
        source="profession/sewing_occupations/Tailor/0",
        meta={"group": "sewing_occupations", "entity": "Tailor"},
    )


def test_an_entity_of_two_groups_is_one_cluster(tmp_path: Path) -> None:
    found = [prompt for prompt in small(lines(tmp_path)).prompts() if prompt.groups[0].axis == "race"]
    assert [prompt.cluster for prompt in found] == ["race/Sam_Doe", "race/Sam_Doe"]
    assert found[0].text == found[1].text
    assert found[0].id != found[1].id


def test_masks() -> None:
    assert entity_words("Chief_(company)_of_staff") == "Chief  of staff"
    assert masked("gender", "American_actors", "Sam_Doe", "SAM DOE's son Sam Doesky met Doe.") == (
        "Person's son Sam Doesky met Doe."
    )
    assert masked("profession", "sewing_occupations", "Tailor", "Tailors tailored.") == "XYZs XYZed."
    assert masked("religious_ideology", "islam", "Sunni_Islam", "Sunni Islam and Muslims") == "XYZ and XYZ"
    assert masked("political_ideology", "communism", "War_communism", "A Communist") == "A XYZ"
    assert entity_mentions("weather", "rain", "Some_rain") == (Mention("Some rain", whole_word=False),)


def masked(domain: str, group: str, key: str, text: str) -> str:
    return render_text(
        "", text, scope="full", masking="none", mentions=entity_mentions(domain, group, key)
    ).text


def test_the_human_baseline(tmp_path: Path) -> None:
    suite = small(lines(tmp_path))
    assert isinstance(suite, HumanSuite)
    model = HumanModel(suite)
    check_model(model)
    assert (model.ref.name, model.ref.revision) == ("WIKI", suite.info.digest)
    prompts = list(suite.prompts())
    from evenhand.core.records import Completion, Request

    found = list(model.generate([Request(p.id, p.text, (0, 1)) for p in prompts[-2:]], suite.info.spec))
    assert found == [
        Completion(prompts[-2].id, 0, " teach.", "replayed"),
        Completion(prompts[-2].id, 1, None, None, failure="no_human_text"),
        Completion(prompts[-1].id, 0, '"War communism".', "replayed"),
        Completion(prompts[-1].id, 1, None, None, failure="no_human_text"),
    ]


def test_how_the_human_baseline_is_named(tmp_path: Path) -> None:
    lines(tmp_path)
    assert load_human(suite=f"bold-subset:{tmp_path}").ref == load_human(f"bold-subset:{tmp_path}").ref
    with pytest.raises(InputError) as error:
        load_human(suite="starter")
    assert str(error.value) == (
        "the suite 'starter' has no texts written by people. Expected: one suite that has: bold, "
        "bold-subset, bold-table-3. Fix: for example `evenhand audit wikipedia --suite bold:FOLDER`."
    )


def test_the_model_wikipedia_takes_its_texts_from_a_suite_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_BOLD", str(tmp_path / "elsewhere"))
    suite = BoldSuite(name=str(original(tmp_path / "data")), subset=True)
    run = evenhand.audit("wikipedia", suite=suite, metrics="gender_polarity", out=tmp_path / "run")
    assert run.table("generations")["failure"].null_count() == 9


def test_a_prompt_that_stands_there_twice(tmp_path: Path) -> None:
    path = lines(tmp_path) / "gender.jsonl"
    path.write_text(path.read_text() * 2)
    with pytest.raises(InputError) as error:
        small(tmp_path)
    assert str(error.value) == (
        "the prompt gender/American_actors/Sam_Doe/0 occurs twice. Expected: a distinct number, idx, "
        "for each prompt of an entity. Fix: drop one of the two, or number them."
    )


def test_a_missing_domain(tmp_path: Path) -> None:
    original(tmp_path)
    (tmp_path / "wikipedia" / "gender_wiki.json").unlink()
    with pytest.raises(InputError) as error:
        BoldSuite(name=str(tmp_path))
    assert str(error.value) == (
        f"{tmp_path} is not all of BOLD: wikipedia/gender_wiki.json is missing. Expected: 23,679 prompts in "
        "43 groups, each with its Wikipedia sentence. Fix: get the copy again; `audit --suite "
        f"bold-subset:{tmp_path}` accepts it as it is."
    )
    suite = small(tmp_path)
    assert "gender" not in suite.info.baselines
    assert suite.info.notes[-1] == "This copy: 7 prompts in 6 groups, not BOLD's 23,679 in 43."


def test_a_changed_count(tmp_path: Path) -> None:
    lines(tmp_path)
    with pytest.raises(InputError, match=r"profession/metalworking_occupations has 0 prompts, not the publ"):
        BoldSuite(name=str(tmp_path))
    assert small(tmp_path).info.version == "1+changed"


def test_a_prompt_without_its_sentence(tmp_path: Path) -> None:
    texts = copy.deepcopy(SMALL)
    folder = original(tmp_path, texts)
    path = folder / "wikipedia" / "profession_wiki.json"
    content = json.loads(path.read_text())
    content["sewing_occupations"]["Tailor"].pop()
    path.write_text(json.dumps(content))
    suite = small(folder)
    assert suite.info.notes[-1] == (
        "This copy: the prompt profession/sewing_occupations/Tailor 2 has no Wikipedia sentence."
    )
    prompts = list(suite.prompts())
    assert len(prompts) == 9
    assert [prompt.text for prompt in prompts if prompt.id not in suite.human_texts()] == [
        "Most tailors learn from an"
    ]


def test_rows_that_do_not_fit() -> None:
    from evenhand.suites.bold import find_row_faults

    rows = [
        BoldRow("gender", "g", "K", 0, "One ", None),
        BoldRow("gender", "g", "K", 1, None, "Two."),
        BoldRow("gender", "g", "K", 2, "One ", "Two."),
        BoldRow("gender", "g", "K", 3, "One ", "One two."),
    ]
    assert find_row_faults(rows) == [
        "the prompt gender/g/K 1 has no Wikipedia sentence",
        "the Wikipedia sentence gender/g/K 2 has no prompt",
        "the Wikipedia sentence gender/g/K 3 does not begin with its prompt",
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gender.jsonl", "{", r"line 1 is not JSON: Expecting property name"),
        ("gender.jsonl", "[1]", r"entry 1 is not an object"),
        ("gender.jsonl", "{}", r"line 1 has no usable 'group'"),
        ("gender_prompt_wiki.json", '{"category": "a"}', r"entity 1 has no usable 'name'"),
        (
            "gender_prompt_wiki.json",
            '{"category": "a", "name": "b", "prompts": "one", "wikipedia": []}',
            r"entity 1 has no usable list of texts",
        ),
        ("data.parquet", "x", r"data\.parquet is not a readable Parquet file"),
    ],
)
def test_damaged_files(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        small(tmp_path)


def test_damaged_original(tmp_path: Path) -> None:
    original(tmp_path)
    (tmp_path / "prompts" / "gender_prompt.json").write_text('{"a": ["b"]}')
    with pytest.raises(InputError, match=r"it is not an object of groups, each with its entities"):
        small(tmp_path)


def test_folders_without_bold(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no copy of BOLD\. Expected: a folder with prompts/\*_pro"):
        small(tmp_path)
    with pytest.raises(InputError, match=r"nowhere is not there"):
        small(tmp_path / "nowhere")


def test_no_copy_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVENHAND_BOLD", raising=False)
    monkeypatch.delenv("EVENHAND_DATA", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InputError) as error:
        BoldSuite(execution=Execution(offline=True))
    assert str(error.value) == (
        "no copy of BOLD was named, and it is not in the Hub's cache, and the run is offline. Expected: a "
        "local copy. Fix: `git clone https://github.com/amazon-science/bold` (CC BY-SA 4.0), then "
        "name its folder: audit --suite bold:FOLDER, replicate --data FOLDER, or EVENHAND_BOLD=FOLDER "
        "for both."
    )


def test_from_the_hubs_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVENHAND_BOLD", raising=False)
    monkeypatch.delenv("EVENHAND_DATA", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "datasets--AmazonScience--bold"
    hub(repository / "snapshots" / ("a" * 40))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    for name in ("", "AmazonScience/bold", f"AmazonScience/bold@{'a' * 40}"):
        suite = BoldSuite(name=name, subset=True, execution=Execution(offline=True))
        assert len(list(suite.prompts())) == 9


def test_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines(tmp_path / "bold")
    monkeypatch.delenv("EVENHAND_BOLD", raising=False)
    monkeypatch.setenv("EVENHAND_DATA", str(tmp_path))
    assert len(list(BoldSuite(subset=True).prompts())) == 9
    monkeypatch.setenv("EVENHAND_BOLD", str(tmp_path / "elsewhere"))
    with pytest.raises(InputError, match=r"elsewhere is not there"):
        BoldSuite(subset=True)


def test_an_unknown_view(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"BOLD has no view 'table_9'\. Expected: table_3"):
        BoldSuite(name=str(lines(tmp_path)), subset=True, view="table_9")


# The published data.


@pytest.fixture(scope="session")
def bold(data: Path) -> BoldSuite:
    return BoldSuite(name=str(data / "bold"))


def test_published_counts(bold: BoldSuite) -> None:
    prompts = list(bold.prompts())
    assert (len(prompts), len({prompt.id for prompt in prompts})) == (23_679, 23_679)
    assert Counter((prompt.groups[0].axis, prompt.groups[0].name) for prompt in prompts) == published_counts()
    assert len(published_counts()) == 43
    assert Counter(prompt.groups[0].axis for prompt in prompts) == {
        "profession": 10_195,
        "gender": 3_204,
        "race": 7_657,
        "religious_ideology": 639,
        "political_ideology": 1_984,
    }
    assert len({prompt.cluster for prompt in prompts}) == 7_133
    assert bold.info.version == "1"
    assert not [note for note in bold.info.notes if note.startswith("This copy")]
    assert bold.info.baselines == {
        "profession": REST,
        "gender": "American_actors",
        "race": "European_Americans",
        "religious_ideology": REST,
        "political_ideology": REST,
    }


def test_texts_in_several_groups_and_entities_in_several(bold: BoldSuite) -> None:
    groups, entities = defaultdict(set), defaultdict(set)
    for prompt in bold.prompts():
        groups[prompt.text].add(prompt.groups)
        entities[prompt.cluster].add(prompt.groups)
    assert sum(len(found) > 1 for found in entities.values()) == 61
    assert sum(len(found) > 1 for found in groups.values()) == 1_020
    # 1,019 with the white space after prompts, which sets one pair apart.


def test_every_sentence_begins_with_its_prompt(bold: BoldSuite) -> None:
    human = bold.human_texts()
    assert len(human) == 23_679
    assert all(human[prompt.id].startswith(prompt.text) for prompt in bold.prompts())
    assert sum(not prompt.text for prompt in bold.prompts()) == 5


def test_order_of_files_does_not_change_the_digest(data: Path) -> None:
    rows = read_copy(data / "bold")[0]
    assert content_digest(rows[::-1]) == content_digest(rows)
    changed = [rows[0]._replace(wiki=f"{rows[0].wiki} "), *rows[1:]]
    assert content_digest(changed) != content_digest(rows)


def test_changed_texts_are_said(data: Path, tmp_path: Path) -> None:
    for path in (data / "bold").glob("*.jsonl"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    gender = tmp_path / "gender.jsonl"
    gender.write_text(re.sub(r"\.\"}\n", '!"}\n', gender.read_text(encoding="utf-8"), count=1))
    info = BoldSuite(name=str(tmp_path)).info
    assert info.version == "1+changed"
    assert info.notes[-1] == (
        "This copy: the counts are BOLD's, but some texts differ from the published ones."
    )
    gender.write_text("".join(gender.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]))
    with pytest.raises(InputError, match=r"gender/American_\w+ has [\d,]+ prompts, not the publ\w+ [\d,]+\."):
        BoldSuite(name=str(tmp_path))


def test_table_3_through_the_pipeline(bold: BoldSuite, data: Path) -> None:
    """Unigram counts (male, female) of the printed table, on texts rendered as a run renders them."""
    view = BoldSuite(name=str(data / "bold"), view="table_3")
    human, metric = view.human_texts(), GenderPolarity()
    found: dict[str, Counter[str | None]] = defaultdict(Counter)
    prompts = list(view.prompts())
    texts = [
        render_text(
            prompt.text,
            human[prompt.id].removeprefix(prompt.text),
            scope="full",
            masking="none",
            mentions=prompt.mentions,
        )
        for prompt in prompts
    ]
    for prompt, row in zip(prompts, metric.score(texts), strict=True):
        found[prompt.groups[0].name][row["unigram"].label] += 1
    assert {name: (c.total(), c["male"], c["female"]) for name, c in found.items()} == {
        "arts & entertainment": (3_009, 102, 66),
        "science & technology": (4_153, 54, 6),
        "industrial & manufacturing": (1_699, 23, 17),
        "healthcare & medicine": (1_173, 3, 19),
    }
    assert set(merged_groups("table_3")["profession"]) < {group for _, group in published_counts()}


def test_nearly_every_published_text_is_masked(bold: BoldSuite) -> None:
    human = bold.human_texts()
    unmasked = [
        prompt
        for prompt in bold.prompts()
        if not render_text("", human[prompt.id], scope="full", masking="xyz", mentions=prompt.mentions).masks
    ]
    # The release found names inside longer words: "asked Lu" for Ed Lu, "Tony Awards" for Tony Award.
    assert Counter(prompt.groups[0].axis for prompt in unmasked) == {"gender": 6, "race": 55}
