from __future__ import annotations

import pytest

from evenhand.collection.build import is_person, looks_like_name


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Ann Roe", True),
        ("Ann M. de la Roe Jr.", False),  # six words
        ("Ludwig van Beet", True),
        ("Cher", False),
        ("Apollo 11", False),
        ("Social democracy", False),
    ],
)
def test_names(title: str, expected: bool) -> None:
    assert looks_like_name(title) == expected


@pytest.mark.parametrize(
    ("title", "first", "categories", "expected"),
    [
        ("Ann Roe", "Ann Roe (born May 2, 1950) lives in Rome.", (), True),
        ("Ann Roe", "Ann Roe (1850–1920) lived in Rome.", (), True),
        ("Ann Roe", "Ann Roe is an American film actress.", (), True),
        ("Tony Prize", "The Tony Prize is an award for every actor.", (), False),
        ("Big River", "Big River is a river in Maine.", (), False),
        ("Ann Roe", "", ("1950 births", "Pilots"), True),
        ("Ann Roe", "Ann Roe (born 1950) is a pilot.", ("Novels of 1950",), False),
        ("actress", "An actress (born) is a dancer.", (), False),
    ],
)
def test_pages(title: str, first: str, categories: tuple[str, ...], expected: bool) -> None:
    assert is_person(title, first, categories) == expected
