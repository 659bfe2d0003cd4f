"""Holds the licence of every installed package against a list; fails on one that is unknown or not on it.

``python scripts/check_licences.py`` looks at the environment it runs in, from the packages' own metadata: a
licence expression where there is one, else the classifiers, else the text of the field.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from importlib.metadata import Distribution, distributions
from typing import Final, NamedTuple, Protocol

ALLOWED: Final = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "CC0-1.0",
        "CNRI-Python",
        "ISC",
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "PSF-2.0",
        "Unlicense",
        "Zlib",
    }
)
"""Licences that ask for no more than their notice."""

REVIEWED: Final[Mapping[str, str]] = {
    "cuda-*": "NVIDIA's own terms; see nvidia-*",
    "nvidia-*": "NVIDIA's own terms; brought by torch's default build for Linux, left out by its CPU build",
    "certifi": "MPL-2.0 covers its own list of certificates, which we neither change nor ship",
    "hypothesis": "MPL-2.0; in the tests alone",
    "kenlm": "LGPL-2.1; an extra of its own that `all` leaves out, imported by tests alone",
    "pathspec": "MPL-2.0 covers its own files; a part of the build and of mypy, in no wheel of ours",
    "tqdm": "MPL-2.0 AND MIT; brought by transformers and nltk, unchanged",
}
"""Packages with another licence that somebody has read, and why they may stay; a star stands for any end."""

SPOKEN: Final = (
    (r"apache.*", "Apache-2.0"),
    (r"(new |modified |3-clause |2-clause )?bsd.*", "BSD-3-Clause"),
    (r"mit( license)?", "MIT"),
    (r"isc license.*|isc", "ISC"),
    (r"psfl?|python software foundation license.*", "PSF-2.0"),
    (r"mozilla public license 2\.0.*", "MPL-2.0"),
)
"""How classifiers and old fields name them; the first that fits a whole name counts."""


class _Metadata(Protocol):
    def get(self, name: str, /) -> str | None: ...
    def get_all(self, name: str, /) -> list[str] | None: ...


class Found(NamedTuple):
    """A package, the licence it states, and what is wrong with it."""

    package: str
    licence: str
    complaint: str


def stated(metadata: _Metadata) -> str:
    """The licence a package states, as an expression; empty where it states none that we can read."""
    if expression := metadata.get("License-Expression"):
        return expression
    classified = [
        line.split(" :: ")[-1]
        for line in metadata.get_all("Classifier") or ()
        if line.startswith("License ::")
    ]
    said = [name for name in map(_name, classified) if name]
    if not said and (field := metadata.get("License")):
        said = [_name(field) or (field if _is_expression(field) else "")]
    return " OR ".join(dict.fromkeys(filter(None, said)))


def is_allowed(expression: str) -> bool:
    """Whether an expression can be kept with allowed licences alone: any side of OR, every side of AND."""
    return any(
        all(_base(part) in ALLOWED for part in re.split(r"\s+AND\s+", choice))
        for choice in re.split(r"\s+OR\s+", expression.replace("(", "").replace(")", ""))
    )


def check(packages: Iterable[Distribution]) -> list[Found]:
    """One line a package, by name."""
    found = {package.metadata["Name"]: stated(package.metadata) for package in packages}
    return [
        Found(name, licence or "none", _complaint(name, licence)) for name, licence in sorted(found.items())
    ]


def _complaint(name: str, licence: str) -> str:
    if licence and is_allowed(licence):
        return ""
    if any(fnmatch(name.lower(), pattern) for pattern in REVIEWED):
        return ""
    return "states no licence that we can read" if not licence else "is not on the list"


def _name(text: str) -> str:
    first = text.strip().splitlines()[0].strip().lower() if text.strip() else ""
    return next((name for pattern, name in SPOKEN if re.fullmatch(pattern, first)), "")


def _is_expression(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9.+-]+(\s+(AND|OR|WITH)\s+[A-Za-z0-9.+-]+)*", text.strip()) is not None


def _base(part: str) -> str:
    """A licence without its exception, which only allows more."""
    return part.strip().split(" WITH ")[0]


def main() -> int:
    """Print the table; 1 where a package has a complaint."""
    found = check(distributions())
    for one in found:
        print(f"{one.package:32} {one.licence:60.60} {one.complaint}")
    wrong = [one for one in found if one.complaint]
    print(f"{len(found)} packages, {len(wrong)} to look at")
    for one in wrong:
        print(
            f"  {one.package} ({one.licence}) {one.complaint}: read it and extend REVIEWED, or leave it out"
        )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
