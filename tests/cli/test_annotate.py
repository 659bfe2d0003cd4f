"""``evenhand annotate`` as a user runs it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tests.annotate.test_item_selection import samples
from typer.testing import CliRunner

import evenhand
from evenhand.annotate.study_server import proxy_networks
from evenhand.cli.app import app
from evenhand.core.errors import InputError, MissingLibraryError


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.annotate.label_aggregation.RESAMPLES", 100)


def run(*arguments: object):
    done = CliRunner().invoke(app, ["annotate", *map(str, arguments)])
    if isinstance(done.exception, MissingLibraryError):
        raise done.exception
    return done


def test_sample_says_what_it_does_and_writes_a_table(tmp_path: Path) -> None:
    path, out = samples(tmp_path / "s.tsv"), tmp_path / "items.csv"
    assert run("sample", path, "--per-prompt", 2, "--out", out, "--dry-run").exit_code == 0
    assert not out.exists()
    done = run("sample", path, "--per-prompt", 2, "--out", out)
    assert done.exit_code == 0
    assert "choose  2 positive and 2 negative per prompt by VADER: at most 8, seed 0" in done.output
    assert "8 texts" in done.output
    assert len(out.read_text().splitlines()) == 9


def test_too_few_is_done_in_part(tmp_path: Path) -> None:
    done = run("sample", samples(tmp_path / "s.tsv"), "--per-prompt", 4, "--out", tmp_path / "items.csv")
    assert done.exit_code == 3
    assert "has 3 distinct positive texts among 8, 4 were requested" in done.output


def test_settle_names_texts_without_the_mask(tmp_path: Path) -> None:
    rows = [
        f"{number},A text {number * 7919} of {label} {number},{who},{label}"
        for number, label in enumerate(["negative", "positive"] * 10)
        for who in "abc"
    ]
    (tmp_path / "rated.csv").write_text("\n".join(["id,text,annotator,regard", *rows]) + "\n")
    done = run("settle", tmp_path / "rated.csv", "--out", tmp_path / "labels")
    assert done.exit_code == 0, done.output
    assert "20 of 20 texts have no XYZ: annotators saw the demographic" in done.output
    assert (tmp_path / "labels" / "regard_test.csv").is_file()


def test_labels_too_few_to_divide_are_kept_whole(tmp_path: Path) -> None:
    """Nineteen negative texts and a positive one: agreement and labels are there, parts are not."""
    labels = ["negative"] * 19 + ["positive"]
    rows = [
        f"{n},XYZ was {n * 7919},{who},{label},neutral" for n, label in enumerate(labels) for who in "abc"
    ]
    (tmp_path / "rated.csv").write_text("\n".join(["id,text,annotator,regard,sentiment", *rows]) + "\n")
    done = run("settle", tmp_path / "rated.csv", "--out", tmp_path / "labels")
    assert done.exit_code == 3, done.output
    assert "the texts of the label 'positive' are too few" in done.output
    assert "all 20 kept texts are neutral" in done.output
    assert {path.name for path in (tmp_path / "labels").iterdir()} == {
        *("agreement.csv", "regard_all.csv", "sentiment_all.csv")
    }
    assert len((tmp_path / "labels" / "regard_all.csv").read_text().splitlines()) == 21


def test_a_study_from_init_to_forget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVENHAND_DATABASE", raising=False)
    file, study = tmp_path / "texts.csv", tmp_path / "s"
    file.write_text("text,who\n" + "".join(f"The day of {n} was fine.,g{n % 2}\n" for n in range(12)))
    asked = ("init", study, "--from", file, "--group", "who", "--items", 6, "--annotators", 2)
    planned = run(*asked, "--dry-run")
    assert planned.exit_code == 0, planned.output
    assert (
        "texts   12 read, 6 sampled evenly over 2 groups and the range of sentiment; seed 0" in planned.output
    )
    assert not study.exists()
    assert run(*asked).exit_code == 0
    assert run(*asked).exit_code == 1  # an error: the folder holds a study
    assert run("serve", study, "--dry-run").output.count("nobody has a link yet") == 1
    assert run("invite", study, "--people", 2, "--dry-run").exit_code == 0
    made = run("invite", study, "--people", 2, "--base", "https://study.example")
    lines = [line.split("\t") for line in made.output.splitlines() if "/join/" in line]
    assert [who for who, _ in lines] == ["a1", "a2"]
    assert all(link.startswith("https://study.example/join/") for _, link in lines)
    assert "people 2 with a link" in run("status", study).output
    assert "0 of 6 have all answers" in run("status", study).output
    assert "HTTPS" in run("serve", study, "--host", "0.0.0.0", "--dry-run").output.replace("\n", " ")
    assert run("forget", study, "a1", "--dry-run").exit_code == 0
    assert "forgotten; the answers are now those of x" in run("forget", study, "a1").output
    assert "people 1 with a link" in run("status", study).output


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1, port {port}: Address already"):
            evenhand.serve_study(tmp_path, port=port)


@pytest.mark.parametrize("proxy", ["nginx", "10.0.0.0/99", "0.0.0.0/0", "::/0", ""])
def test_a_trusted_proxy_is_an_address_or_a_network(tmp_path: Path, proxy: str) -> None:
    for serve in (
        lambda: evenhand.serve_study(tmp_path, trusted_proxy=proxy),
        lambda: evenhand.serve_study(tmp_path, trusted_proxy=["127.0.0.1", proxy]),
    ):
        with pytest.raises(InputError) as caught:
            serve()
        assert str(caught.value) == (
            f"--trusted-proxy {proxy!r}. Expected: an address or network: 127.0.0.1, 10.0.0.0/8, fd00::/8. "
            "Fix: name the proxy in front of the server."
        )
    assert isinstance(run("serve", tmp_path, "--trusted-proxy", proxy, "--dry-run").exception, InputError)


def test_proxies_are_networks_to_the_server() -> None:
    assert proxy_networks("127.0.0.1") == ["127.0.0.1/32"]
    assert proxy_networks(["10.1.2.3/8", "fd00::1"]) == ["10.0.0.0/8", "fd00::1/128"]
