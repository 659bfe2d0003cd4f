"""``evenhand debias`` as a user runs it, and its Python twin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import evenhand
from evenhand.core.errors import InputError
from evenhand.store.run import Run

PROMPT = "About voting, people from Texas will"
SHORT = ("--max-new-tokens", 8, "--device", "cpu")


def test_a_prompt_is_continued_with_and_without(evenhand):
    done = evenhand("debias", "--prompt", PROMPT, "--vanilla", "--samples", 2, *SHORT)
    assert done.returncode == 0, done.stderr
    assert "mode    embedding: calibration:embedding" in done.stderr
    assert "of the listed words are several tokens: each counts as the mean of its tokens" in done.stderr
    lines = done.stdout.splitlines()
    assert [line[:11] for line in lines] == ["vanilla:   ", "mitigated: "] * 2
    assert all(PROMPT in line for line in lines)


def test_a_dry_run_writes_nothing(evenhand):
    done = evenhand("debias", "--prompt", PROMPT, "--mode", "naive", "--dry-run", *SHORT)
    assert (done.returncode, done.stdout) == (0, "")
    assert "texts   1, at most 8 tokens" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "neither a prompt nor a suite was given"),
        (("--prompt", "x", "--suite", "starter"), "both a prompt and a suite were given"),
        (("--prompt", "x", "--mode", "glove"), "there is no mode 'glove'"),
        (("--prompt", "x", "--strength", -1), "strength is -1.0"),
        (("--prompt", "x", "--mitigate-option", "strength"), "the option 'strength'"),
        (("--prompt", "x", "--mitigate-option", "force=1"), "mitigation 'calibration' has no option 'force'"),
        (
            ("--prompt", "x", "--metrics", "regard", "--out", "o"),
            "--metrics, --out, and the texts are of prompts",
        ),
        (("--prompt", "x", "--fresh"), "--fresh, and the texts are of prompts"),
        (("--suite", "starter", "--vanilla"), "--vanilla, and the texts are of suites"),
        (("--prompt", "doctor " * 400), "no text could be generated: prompt_too_long"),
    ],
)
def test_what_cannot_be_done_ends_with_2(evenhand, arguments, message):
    done = evenhand("debias", "builtin", *arguments, *SHORT)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_suite_is_audited_with_the_mitigation_on(evenhand, tmp_path):
    common = ("--suite", "political", "--limit", 13, "--samples", 1, "--metrics", "sentiment", *SHORT)
    done = evenhand("debias", "builtin", "--mode", "embedding", *common, "--out", "on")
    assert done.returncode == 0, done.stderr
    run = Run.open(tmp_path / "on")
    assert run.table("generations").height == 13
    options = run.manifest["identity"]["model"]["options"]
    assert options["mitigation"] == "calibration:embedding"
    assert options["mitigation.strength"] == "0.6"
    again = evenhand(
        "audit",
        "builtin",
        "--mitigate",
        "calibration:embedding",
        "--mitigate-option",
        "strength=0.1",
        *common,
        "--out",
        "on",
    )
    assert again.returncode == 2
    assert "belongs to another configuration" in again.stderr


def test_the_python_twin(tmp_path: Path) -> None:
    words = tmp_path / "words.json"
    words.write_text(json.dumps({"one": ["vote"], "two": ["voters"]}))
    found = evenhand.debias(
        "stub", mode="naive", prompt=["One", "Two"], samples=2, options={"words": str(words), "share": 1.0}
    )
    assert [(text.prompt, text.sample) for text in found.texts] == [
        ("One", 0),
        ("One", 1),
        ("Two", 0),
        ("Two", 1),
    ]
    assert found.run is None
    assert all(text.text and text.vanilla is None for text in found.texts)
    by_keyword = evenhand.debias(
        "stub", mode="naive", prompt=["One", "Two"], samples=2, words=str(words), options={"share": 1.0}
    )
    assert by_keyword.texts == found.texts
    with pytest.raises(InputError, match=r"^there is no mode 'none'\."):
        evenhand.debias("stub", mode="none", prompt="One")
