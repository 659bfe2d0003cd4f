"""What a wheel and an sdist may hold; CI builds the real ones."""

from __future__ import annotations

from tests.scripts.loading import ROOT, script

package = script("check_package")
INSIDE = [*package.NEEDED, "evenhand/__init__.py", "evenhand-0.2.0.dist-info/METADATA"]
METADATA = """\
Metadata-Version: 2.4
Name: evenhand
Summary: One line.
License-Expression: Apache-2.0
Requires-Python: >=3.11
Requires-Dist: numpy>=2.0
Requires-Dist: torch>=2.6; extra == 'models'
Description-Content-Type: text/markdown

# evenhand
"""


def test_a_whole_wheel_has_no_complaint() -> None:
    assert package.wheel_complaints(INSIDE, 1000) == []


def test_what_is_missing_foreign_or_too_much_is_named() -> None:
    names = [*INSIDE[1:], "shared/data.csv", "evenhand/__pycache__/a.pyc", "tests/test_x.py"]
    assert package.wheel_complaints(names, 1 << 30) == [
        "the wheel lacks evenhand/py.typed",
        "the wheel holds evenhand/__pycache__/a.pyc",
        "the wheel holds shared/data.csv",
        "the wheel holds tests/test_x.py",
        "the wheel has 1,073,741,824 bytes",
    ]


def test_an_sdist_holds_what_git_knows() -> None:
    assert package.sdist_complaints(["README.md", "PKG-INFO"], ["README.md", "LICENSE"]) == []
    assert package.sdist_complaints(["notes.txt"], ["README.md"]) == [
        "the sdist holds notes.txt, which git does not"
    ]


def test_metadata_an_index_takes() -> None:
    assert package.metadata_complaints(METADATA) == []
    wrong = METADATA.replace("Apache-2.0", "MIT").replace(
        "Requires-Dist: numpy>=2.0", "Requires-Dist: torch>=2.6"
    )
    assert package.metadata_complaints(wrong) == [
        "License-Expression is 'MIT', not 'Apache-2.0'",
        "the core needs torch>=2.6",
    ]


def test_what_is_needed_is_in_the_tree() -> None:
    assert [name for name in package.NEEDED if not (ROOT / "src" / name).is_file()] == []
