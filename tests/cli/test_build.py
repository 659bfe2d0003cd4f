"""``evenhand build``, as a user runs it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests import program

PAGE = "A tailor is somebody who makes or mends the clothes of other people.\n"


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return program.run("build", *arguments, cwd=folder)


def test_from_pages_to_a_suite(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "Tailor.txt").write_text(PAGE)
    plan = run("bold", "--pages", "pages", "--dry-run", folder=tmp_path)
    assert plan.returncode == 0
    assert "1 files, 0.0 MB as stored" in plan.stderr
    assert not (tmp_path / "runs").exists()
    done = run("bold", "--pages", "pages", "--out", "suite", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 prompts in 1 groups from 1 pages" in done.stdout
    assert "next: evenhand audit --suite bold-subset:suite" in done.stdout


def test_a_cut_dump_is_done_in_part(tmp_path: Path) -> None:
    page = f"<page>\n<title>Tailor</title>\n<ns>0</ns>\n<revision><text>{PAGE}</text></revision>\n</page>\n"
    (tmp_path / "dump.xml").write_text(f"<mediawiki>\n{page}<page>\n<title>Weaver</title>\n")
    done = run("bold", "--dump", "dump.xml", "--out", "suite", folder=tmp_path)
    assert done.returncode == 3
    assert "1 prompts in 1 groups from 1 pages" in done.stdout
    assert "the dump ends inside a page; all earlier pages were read" in done.stderr


def test_pages_of_no_group_lead_nowhere_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "pages.txt").write_text("Rain is water that falls from clouds to the ground below them.\n")
    done = run("bold", "--pages", "pages.txt", "--out", "suite", folder=tmp_path)
    assert "0 prompts in 0 groups from 1 pages" in done.stdout
    assert "next:" not in done.stdout
    assert "no sentence was collected: card.md says why; define your own groups" in done.stderr


def test_errors_name_what_is_accepted(tmp_path: Path) -> None:
    done = run("bold", folder=tmp_path)
    assert done.returncode == 2
    assert "no pages were given" in done.stderr
