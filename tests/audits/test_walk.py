"""One text passes few files and functions, and the documentation draws which."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.audits.walk import Step, draw_walk, measure_walk

MOST_FILES, MOST_FUNCTIONS = 60, 340
"""What holds today; lower it with every change that shortens the way."""
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


@pytest.fixture(scope="module")
def walk() -> list[Step]:
    return measure_walk()


def test_a_text_passes_few_files_and_functions(walk: list[Step]) -> None:
    assert len({file for file, _ in walk}) <= MOST_FILES
    assert len(walk) <= MOST_FUNCTIONS


def test_the_architecture_page_draws_the_walk(walk: list[Step]) -> None:
    """`python -m tests.audits.walk` puts it there."""
    assert f"```text\n{draw_walk(walk)}\n```" in PAGE.read_text(encoding="utf-8")


def test_comprehensions_and_lambdas_belong_to_their_function(walk: list[Step]) -> None:
    assert not [function for _, function in walk if function.endswith(">")]
