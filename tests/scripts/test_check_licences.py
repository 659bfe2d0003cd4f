"""Licences are read from metadata as packages really write it, and what is unknown fails."""

from __future__ import annotations

from email.message import Message

import pytest
from tests.scripts.loading import script

licences = script("check_licences")


def metadata(**fields: str | list[str]) -> Message:
    found = Message()
    for name, values in fields.items():
        for value in [values] if isinstance(values, str) else values:
            found[name.replace("_", "-")] = value
    return found


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"License_Expression": "BSD-3-Clause AND MIT", "License": "GPL"}, "BSD-3-Clause AND MIT"),
        ({"Classifier": ["Topic :: X", "License :: OSI Approved :: MIT License"]}, "MIT"),
        (
            {
                "Classifier": [
                    "License :: OSI Approved :: BSD License",
                    "License :: OSI Approved :: Apache Software License",
                ]
            },
            "BSD-3-Clause OR Apache-2.0",
        ),
        ({"Classifier": ["License :: OSI Approved"], "License": "BSD"}, "BSD-3-Clause"),
        ({"License": "MPL-2.0 AND MIT"}, "MPL-2.0 AND MIT"),
        ({"License": "Copyright (c) 2020 somebody. All rights reserved."}, ""),
        ({"License": "UNKNOWN LICENCE TEXT"}, ""),
        ({}, ""),
    ],
)
def test_what_a_package_states(fields: dict[str, str | list[str]], said: str) -> None:
    assert licences.stated(metadata(**fields)) == said


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("Apache-2.0 WITH LLVM-exception AND BSD-2-Clause", True),
        ("GPL-3.0-only OR MIT", True),
        ("(GPL-3.0-only) OR (LGPL-2.1)", False),
        ("MIT AND GPL-3.0-or-later", False),
        ("Proprietary", False),
    ],
)
def test_any_choice_but_every_part_must_be_on_the_list(expression: str, allowed: bool) -> None:
    assert licences.is_allowed(expression) is allowed


class Package:
    def __init__(self, **fields: str) -> None:
        self.metadata = metadata(**fields)


def test_the_unknown_is_complained_of_and_the_reviewed_is_not() -> None:
    found = licences.check(
        [
            Package(Name="good", License_Expression="MIT"),
            Package(Name="silent"),
            Package(Name="strict", License_Expression="GPL-3.0-only"),
            Package(Name="hypothesis", License_Expression="MPL-2.0"),
            Package(Name="nvidia-cublas", License_Expression="LicenseRef-NVIDIA-Proprietary"),
        ]
    )
    assert [(one.package, one.complaint) for one in found] == [
        ("good", ""),
        ("hypothesis", ""),
        ("nvidia-cublas", ""),
        ("silent", "states no licence that we can read"),
        ("strict", "is not on the list"),
    ]
