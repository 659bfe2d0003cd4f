"""EEC, BITS and CrowS-Pairs as published: exact counts, order and selections (affective paper, 4.2.1)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from evenhand.core.errors import InputError
from evenhand.core.records import Execution
from evenhand.probes.probe import _suites
from evenhand.suites.pairs.bits import BitsSuite
from evenhand.suites.pairs.crows import CrowsSuite
from evenhand.suites.pairs.eec import EecSuite
from evenhand.suites.pairs.pair_sets import count_sets


def test_eec_has_the_papers_pairs(data: Path) -> None:
    suite = EecSuite(name=str(data / "affective" / "eec.csv"))
    assert count_sets(suite.sets) == {"gender": (1400, 1400), "race": (2800, 2800)}
    assert suite.info.notes == ("240 sentences without an emotion word are left out.",)
    prompts = list(suite.prompts())
    assert len(prompts) == 8400 == len({prompt.id for prompt in prompts})
    # 2,100 sentences an emotion: a quarter of all.
    assert Counter(prompt.meta["emotion"] for prompt in prompts) == dict.fromkeys(
        ("anger", "fear", "joy", "sadness"), 2100
    )
    assert len({one.cluster for one in suite.sets}) == 7
    assert all(list(one.sentences) == ["male", "female"] for one in suite.sets if one.axis == "gender")
    races = ["European American", "African American"]
    assert all(list(one.sentences) == races for one in suite.sets if one.axis == "race")


def test_eec_pairs_differ_in_the_person_alone(data: Path) -> None:
    suite = EecSuite(name=str(data))
    for one in suite.sets:
        first, second = (text.split() for text in one.sentences.values())
        # "her mother" against "himself" never: at most person, pronoun and its reflexive differ.
        assert abs(len(first) - len(second)) == 0


def test_bits_has_sets_of_three_and_five(data: Path) -> None:
    suite = BitsSuite(name=str(data))
    # 120 sets of 3 groups are 3 pairs each, 72 sets of 5 groups 10 pairs each.
    assert count_sets(suite.sets) == {"gender": (120, 360), "race": (72, 720)}
    assert suite.info.baselines == {"gender": "male", "race": "European American"}
    assert Counter(one.emotion for one in suite.sets if one.axis == "gender") == dict.fromkeys(
        ("anger", "fear", "joy", "sadness"), 30
    )


def test_crows_counts_stand_beside_the_papers(data: Path) -> None:
    suite = CrowsSuite(name=str(data))
    assert count_sets(suite.sets) == {"gender": (280, 280), "race": (585, 585), "religion": (103, 309)}
    assert suite.info.notes == (
        "gender: 280 sets from 246 of 262 rows by our rule; the paper changed rows by hand and had 263. "
        "16 rows name no group with a word of the rule.",
        "race: 585 sets from 508 of 516 rows by our rule; the paper changed rows by hand and had 566. "
        "8 rows name no group with a word of the rule.",
        "religion: 103 sets from 102 of 105 rows by our rule; the paper changed rows by hand and had 104. "
        "3 rows name no group with a word of the rule.",
        "3 sets repeat others and are left out",
    )
    assert {tuple(one.sentences) for one in suite.sets if one.axis == "religion"} == {
        ("Christian", "Muslim", "Jewish")
    }


def test_the_original_crows_file_gives_the_same_sets(data: Path) -> None:
    folder = CrowsSuite(name=str(data))
    whole = CrowsSuite(name=str(data / "affective" / "crows_pairs_anonymized.csv"))
    # One row of the released subset has damaged quotes, so that the sentences are not compared.
    assert count_sets(whole.sets) == count_sets(folder.sets)


def eec_file(path: Path, *rows: str) -> Path:
    head = "ID,Sentence,Template,Person,Gender,Race,Emotion,Emotion word"
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def test_a_group_eec_does_not_have_is_refused(tmp_path: Path) -> None:
    path = eec_file(tmp_path / "eec.csv", "1,They ran.,t,they,nonbinary,,joy,glad")
    with pytest.raises(InputError) as raised:
        EecSuite(name=str(path))
    assert str(raised.value) == (
        f"{path} row 1 has 'nonbinary' in the column 'Gender'. Expected: male, female. Fix: use the "
        "file as published, or pass it as pairs of your own."
    )


def test_an_eec_row_without_a_sentence_is_refused(tmp_path: Path) -> None:
    path = eec_file(tmp_path / "eec.csv", "1,He is glad.,t,he,male,,joy,glad", "2,,t,she,female,,joy,glad")
    with pytest.raises(InputError) as raised:
        EecSuite(name=str(path))
    assert str(raised.value) == (
        f"{path} row 2 has no sentence, or no gender. Expected: both in every row. Fix: use the file "
        "as published, or pass it as pairs of your own."
    )


def test_an_eec_sentence_without_its_other_side_makes_no_pair(tmp_path: Path) -> None:
    path = eec_file(
        tmp_path / "eec.csv",
        "1,He is glad.,t,he,male,,joy,glad",
        "2,She is glad.,t,she,female,,joy,glad",
        "3,He is sad.,t,he,male,,sadness,sad",
    )
    assert count_sets(EecSuite(name=str(path)).sets) == {"gender": (1, 1)}


def test_repeated_pairs_of_a_published_file_count_once_and_are_said(tmp_path: Path) -> None:
    path = eec_file(
        tmp_path / "eec.csv",
        "1,He is glad.,t,he,male,,joy,glad",
        "2,She is glad.,t,she,female,,joy,glad",
        "3,He is glad.,t,he,male,,joy,glad",
        "4,She is glad.,t,she,female,,joy,glad",
    )
    suite = EecSuite(name=str(path))
    assert count_sets(suite.sets) == {"gender": (1, 1)}
    assert suite.info.notes == ("1 set repeats another and is left out",)
    rows = ["The man ran.,The woman ran.,stereo,gender"] * 3
    for name in ("csp_gender.csv", "csp_race.csv", "csp_religion.csv"):
        (tmp_path / name).write_text("\n".join(rows) + "\n" if "gender" in name else "", encoding="utf-8")
    crows = CrowsSuite(name=str(tmp_path))
    assert count_sets(crows.sets) == {"gender": (1, 1)}
    assert crows.info.notes[0].startswith("gender: 1 set from 3 of 3 rows by our rule")
    assert crows.info.notes[-1] == "2 sets repeat others and are left out"


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "eec.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError) as raised:
        EecSuite(name=str(path))
    assert str(raised.value) == (
        f"{path} has no column 'Sentence'. Expected: Sentence, Template, Person, Gender, Race, Emotion, "
        "Emotion word. Fix: use the file as published, or pass it as pairs of your own."
    )


def test_bits_of_unequal_lengths_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bits_gender.csv"
    path.write_text(
        ",Template,Sentence,Gender,Sentiment\n"
        "1,T6,A man.,Male,joy\n2,T6,A boy.,Male,joy\n3,T6,A girl.,Female,joy\n",
        encoding="utf-8",
    )
    with pytest.raises(InputError) as raised:
        BitsSuite(name=str(path))
    assert str(raised.value) == (
        f"{path} has groups that do not match: male 2 sentences, female 1 sentences. Expected: the same "
        "templates and emotions in the same order for every group. Fix: use the file as "
        "published, or pass it as pairs of your own."
    )


def test_pairs_that_are_not_here_name_their_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("EVENHAND_DATA", raising=False)
    with pytest.raises(InputError) as raised:
        EecSuite()
    assert str(raised.value) == (
        "the pairs 'eec' are published by others and are not part of this package. Expected: --pairs "
        "eec:PATH, "
        "or EVENHAND_DATA naming a folder with affective/eec.csv. Fix: download them (see the "
        "how-to on "
        "probing), or leave --pairs out to use our own."
    )
    with pytest.raises(InputError) as raised:
        BitsSuite(name=str(tmp_path))
    assert str(raised.value) == (
        f"{tmp_path} has no bits_gender.csv and bits_race.csv. Expected: the file of bits, or a folder that "
        "holds bits_gender.csv, bits_race.csv. Fix: name it with --pairs bits:PATH."
    )


def test_a_file_of_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = eec_file(
        tmp_path / "eec.csv", "1,He is glad.,t,he,male,,joy,glad", "2,She is glad.,t,she,female,,joy,glad"
    )
    asked: list[object] = []

    def download(
        repo: str, file: str, *, repo_type: str, revision: str | None, local_files_only: bool
    ) -> str:
        asked.append((repo, file, repo_type, revision, local_files_only))
        return str(path)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    suite = EecSuite(name="hub:org/eec@abc/data/eec.csv")
    assert asked.pop() == ("org/eec", "data/eec.csv", "dataset", "abc", False)
    _suites("eec:hub:org/eec@abc/data/eec.csv", Execution(offline=True))
    assert asked == [("org/eec", "data/eec.csv", "dataset", "abc", True)]
    assert count_sets(suite.sets) == {"gender": (1, 1)}
    with pytest.raises(InputError) as raised:
        EecSuite(name="hub:org/eec")
    assert str(raised.value) == (
        "hub:org/eec. Expected: hub:ORG/NAME@REVISION/FILE. Fix: name the file in the dataset."
    )
