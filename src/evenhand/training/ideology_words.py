"""The words that distinguish two sides of the press: a TF-IDF contrast over labelled articles."""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from evenhand.core.errors import InputError
from evenhand.core.regular_files import read_bytes
from evenhand.text.lexicons import read_closed_class
from evenhand.training.labelled_data import outlet

_WORD: Final = re.compile(r"[a-z]{3,}")
_RUN: Final = 6
"""Length in words of the runs searched for in other articles."""
_FEWEST: Final = 5
"""Minimum number of articles that contain a standing phrase."""
_TIME: Final = """
monday tuesday wednesday thursday friday saturday sunday january february march april may june july
august september october november december jan feb mar apr jun jul aug sep sept oct nov dec today
yesterday tonight tomorrow morning afternoon evening night day days week weeks month months year
years decade decades hour hours minutes ago later recently early earlier late soon long longer past
recent latest previous
"""
"""Days, months and other words of time."""
_PRESS: Final = """
associated press reuters afp bloomberg getty newsletter photo image video caption podcast subscribe
msnbc cnn nbc abc cbs npr pbs bbc foxnews com www http https editor column columnist columnists
author article articles page headline views opinions expressed represent reader readers copy
highlights stories story transcript newsroom reported reporting newspaper radio published read click
sign site videos report reports reporter reporters realdonaldtrump
"""
"""Agencies, channels and page elements: typical of an outlet, not of a side."""
_GENERIC: Final = """
said says say saying told tell asked ask added adding noted note wrote writes explained stated
called calls call came come comes coming went going gone put puts get gets getting got gotten give
gives given giving gave take takes taking took taken make makes making made keep kept let see seen
sees look looks looking looked find found know known knew think thought thinks want wanted wants try
tried trying use used using seem seemed seems become became begin began start started end ended stay
stayed stand stood sit turn turned turning leave left run running set show shows showed shown bring
brought hold held help helped work working works need needed needs feel felt hear heard mean means
appear appeared include included including follow followed happen happening happened talk talking
move moved play played walk walked way ways thing things lot bit kind sort part parts point points
place places case fact example number first second third one two three four five six seven eight
nine ten half small large little big great good better best bad worse high low new old young
different similar certain clear sure able likely possible several many much next last final finally
early whole entire own ones please table various quo pre mark includes holds brings addition
full short close real really simply probably perhaps apparently obviously course
indeed certainly absolutely actually together along apart alone further forward far near around per
via mid self pro sen rep calif didn doesn don isn wasn couldn wouldn aren haven won hasn ve ll re mr
mrs ms dr etc
"""
"""Words that any article contains."""


_Outlet = tuple[str, bool]
"""An outlet and its side."""


class LabelledArticle(NamedTuple):
    """A labelled text."""

    text: str
    conservative: bool
    source: str


SideWords = tuple[tuple[str, float], ...]
"""Words and the excess weight of each on its side, in mean TF-IDF, always above 0; strongest first."""


class IdeologyWords(NamedTuple):
    """The words of each side."""

    liberal: SideWords
    conservative: SideWords


@dataclass(frozen=True, slots=True)
class WordLimits:
    """The criteria for a word to represent a side."""

    words: int = 250
    """Number of words per side."""
    articles: int = 20
    """Minimum number of the side's articles that contain it."""
    outlets: int = 8
    """Minimum number of the side's outlets that contain it: one outlet's habit is not a side's."""
    outlet_cap: int = 300
    """Maximum total weight of the articles of one outlet."""
    steadiness: float = 1.25
    """Contrast divided by its standard error, with outlets as clusters."""
    one_outlet: float = 0.25
    """Maximum share of the word's weight on its side from one outlet."""


def read_articles(path: Path) -> list[LabelledArticle]:
    """The articles of a JSONL file with ``text``, ``label`` (0 liberal, 1 conservative) and ``source``."""
    try:
        lines = read_bytes(path, most=4 << 30).decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} cannot be read: {error}", expected="JSON lines in UTF-8", fix="check the file"
        ) from error
    return [
        _parse_article(line, f"line {number} of {path}")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]


def _parse_article(line: str, where: str) -> LabelledArticle:
    expected = "an object with text, label (0 or 1) and source"
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not JSON: {error}", expected=expected, fix="check the file") from error
    record = row if isinstance(row, dict) else {}
    text, label, source = record.get("text"), record.get("label"), record.get("source")
    if not isinstance(text, str) or not isinstance(source, str):
        raise InputError(f"{where} has no text or no source", expected=expected, fix="check the file")
    if label not in (0, 1):
        raise InputError(
            f"{where} has the label {str(label)[:80]!r}",
            expected="0 for liberal, 1 for conservative",
            fix="write the labels as numbers",
        )
    return LabelledArticle(text, bool(label), source)


def contrast_words(articles: Sequence[LabelledArticle], *, limits: WordLimits | None = None) -> IdeologyWords:
    """The words of each side by contrast: mean TF-IDF in its articles minus that in the other side's.

    Words are lower-case, of three letters or more; function words, words of time and of journalism, all words
    of outlets' and authors' names, and the words of standing phrases are left out.
    An article's TF-IDF row ((1 + ln tf) ln(n / df)) has length 1. Large outlets are down-weighted; a word
    must distinguish the sides consistently over outlets, and no outlet may contribute most of its weight.
    """
    limits = limits or WordLimits()
    left_out = read_closed_class().union(*(part.split() for part in (_TIME, _PRESS, _GENERIC)))
    left_out |= {
        word for source in {article.source for article in articles} for word in _WORD.findall(source.lower())
    }
    bags = [Counter(word for word in words if word not in left_out) for words in without_phrases(articles)]
    names = [(outlet(article.source), article.conservative) for article in articles]
    shares, weights = _outlet_weights(names, bags, cap=limits.outlet_cap)
    counts = Counter((word, side) for (_, side), bag in zip(names, bags, strict=True) for word in bag)
    return _choose_words(counts, shares, weights, limits)


def without_phrases(articles: Sequence[LabelledArticle]) -> list[list[str]]:
    """The words of each article, without its outlet's standing phrases ("sign up here for our newsletter").

    A run of six words is such a phrase if at least five articles contain it, half of them from one outlet.
    """
    texts = [_WORD.findall(article.text.lower()) for article in articles]
    names = [outlet(article.source) for article in articles]
    outlets: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for name, words in zip(names, texts, strict=True):
        for run in set(_runs(words)):
            outlets[run][name] += 1
    phrases = {
        run for run, by in outlets.items() if by.total() >= _FEWEST and 2 * max(by.values()) >= by.total()
    }
    remaining = []
    for words in texts:
        starts = [start for start, run in enumerate(_runs(words)) if run in phrases]
        dropped = {place for start in starts for place in range(start, start + _RUN)}
        remaining.append([word for place, word in enumerate(words) if place not in dropped])
    return remaining


def _runs(words: list[str]) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + _RUN]) for start in range(len(words) - _RUN + 1)]


def write_words(sides: IdeologyWords, path: Path) -> None:
    """Write the words of both sides as JSON, strongest first."""
    lists = {name: [word for word, _ in words] for name, words in sides._asdict().items()}
    path.write_text(json.dumps(lists, indent=1) + "\n", encoding="utf-8")


def _outlet_weights(
    names: Sequence[_Outlet], bags: Sequence[Counter[str]], *, cap: int
) -> tuple[dict[_Outlet, float], dict[str, dict[_Outlet, float]]]:
    """Each outlet's share of its side, and its contribution to its side's mean TF-IDF for each word."""
    sizes = Counter(names)
    weights = [min(1.0, cap / sizes[name]) for name in names]
    totals = {
        side: sum(w for (_, s), w in zip(names, weights, strict=True) if s is side) for side in (False, True)
    }
    if not all(totals.values()):
        raise InputError("all articles are of one side", expected="labels 0 (liberal) and 1 (conservative)")
    frequency = Counter(word for bag in bags for word in bag)
    shares: dict[_Outlet, float] = defaultdict(float)
    words: dict[str, dict[_Outlet, float]] = defaultdict(lambda: defaultdict(float))
    for name, bag, weight in zip(names, bags, weights, strict=True):
        share = weight / totals[name[1]]
        shares[name] += share
        row = {word: (1 + math.log(n)) * math.log(len(bags) / frequency[word]) for word, n in bag.items()}
        length = math.sqrt(sum(value * value for value in row.values()))
        for word, value in row.items() if length else ():
            words[word][name] += share * (value / length)
    return shares, words


def _choose_words(
    counts: Mapping[tuple[str, bool], int],
    shares: Mapping[_Outlet, float],
    weights: Mapping[str, Mapping[_Outlet, float]],
    limits: WordLimits,
) -> IdeologyWords:
    """The words of both sides that meet the criteria; ``counts`` are articles of a side with a word."""
    sides: tuple[list[tuple[str, float]], ...] = ([], [])
    for word, by_outlet in weights.items():
        means = [sum(value for (_, s), value in by_outlet.items() if s is side) for side in (False, True)]
        # A word can stand for the side with the larger mean alone.
        side = means[True] > means[False]
        outlet_values = [value for (_, s), value in by_outlet.items() if s is side]
        if counts.get((word, side), 0) < limits.articles or len(outlet_values) < limits.outlets:
            continue
        contrast = means[side] - means[not side]
        # The standard error of the contrast, with outlets as clusters.
        squares = sum(
            (by_outlet.get(name, 0.0) - share * means[name[1]]) ** 2 for name, share in shares.items()
        )
        is_steady = contrast > max(0.0, limits.steadiness * math.sqrt(squares))
        if is_steady and max(outlet_values) / sum(outlet_values) <= limits.one_outlet:
            sides[side].append((word, contrast))
    if fewest := [len(words) for words in sides if len(words) < limits.words]:
        raise InputError(
            f"a side has only {fewest[0]} distinctive words",
            expected=f"{limits.words} words, each in {limits.articles} articles of {limits.outlets} outlets",
            fix="add articles, or reduce the number of words",
        )
    order = (sorted(words, key=lambda chosen: (-chosen[1], chosen[0])) for words in sides)
    return IdeologyWords(*(tuple(words[: limits.words]) for words in order))


def main(argv: list[str] | None = None) -> None:
    """Write the words of both sides from the command line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument(
        "articles", type=Path, help="JSONL with text, label (0 liberal, 1 conservative), source"
    )
    parser.add_argument("--out", type=Path, required=True)
    usual = WordLimits()
    parser.add_argument("--words", type=int, default=usual.words)
    parser.add_argument("--held-by", type=int, nargs=2, metavar=("ARTICLES", "OUTLETS"))
    args = parser.parse_args(argv)
    articles, outlets = args.held_by or (usual.articles, usual.outlets)
    limits = WordLimits(words=args.words, articles=articles, outlets=outlets)
    write_words(contrast_words(read_articles(args.articles), limits=limits), args.out)


if __name__ == "__main__":
    main()
