"""CrowS-Pairs: sentences written by people, which our rule makes differ only in the group."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Final

from pydantic import Field, TypeAdapter

from evenhand.core.digests import digest, file_digest
from evenhand.core.files import asset_path
from evenhand.core.records import Execution
from evenhand.core.toml import StrictModel
from evenhand.suites.pairs.pair_sets import (
    PairSet,
    PairSuite,
    distinct_sets,
    find_files,
    read_bare_rows,
    read_columns,
    refuse_changed,
)

_TOKENS: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*|'\w+|\d+|\s+|.", re.DOTALL)
_COPULAS: Final = frozenset({"is", "was", "are", "were", "be", "being", "am", "isn", "wasn"})
_LISTED: Final = (
    "a an the and or but who that which not never always because is was are were am be had has have did do "
    "does can could will would should may might than then so if when in on at to of from for with by as "
    "about thought said saw ran looked reflected seemed relied though"
)
_FUNCTION: Final = frozenset(_LISTED.split())
"""Words that follow a noun rather than an adjective; a heuristic, and the only one here for grammar."""


class WordForm(StrictModel):
    """One form of group words: the word of each group, and the words recognised as this form."""

    name: str = Field(alias="form")
    fill: dict[str, str]
    other_words: tuple[str, ...] = Field((), alias="found")
    is_name: bool = Field(False, alias="names")
    is_adjective: bool = Field(False, alias="adjective")
    needs_other: bool = Field(False, alias="only_against")
    """Only if the other sentence has a word of the form in that place: *her* for *him*, not for *his*."""
    female: dict[str, str] | None = None
    """Names for a sentence about a woman."""

    @cached_property
    def words(self) -> frozenset[tuple[str, ...]]:
        """All words of the form, lower-case, as sequences."""
        return frozenset(tuple(word.lower().split()) for word in (*self.fill.values(), *self.other_words))


_GroupWord = tuple[Sequence[int], WordForm]
"""The positions of a group word's tokens, and its form."""


def pair_variants(first: str, second: str, axis: str) -> list[dict[str, str]]:
    """The sets of a row, each from group to sentence: at most two, without duplicates."""
    variants: dict[str, dict[str, str]] = {}
    for one, other in ((first, second), (second, first)):
        tokens = _TOKENS.findall(one)
        words = list(_find_group_words(tokens, _TOKENS.findall(other), axis))
        groups = group_forms()[axis][0].fill if words else ()
        filled = {group: _write_sentence(tokens, words, group) for group in groups}
        if filled and len(set(filled.values())) == len(filled):
            # Sets are equal if their sentences have the same words.
            plain = re.findall(r"\w+", next(iter(filled.values())).lower())
            variants.setdefault(" ".join(plain), filled)
    return list(variants.values())


@cache
def group_forms() -> Mapping[str, tuple[WordForm, ...]]:
    """The forms of every axis, in the order they are tried."""
    text = asset_path("pairs", "crows_forms.toml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, tuple[WordForm, ...]]).validate_python(tomllib.loads(text))


def _find_group_words(tokens: Sequence[str], others: Sequence[str], axis: str) -> Iterator[_GroupWord]:
    """The group words among the tokens in which the two sentences differ."""
    words = [place for place, token in enumerate(tokens) if token[0].isalpha()]
    other_words = [token for token in others if token[0].isalpha()]
    plain = [tokens[place].lower() for place in words]
    matcher = SequenceMatcher(None, plain, [word.lower() for word in other_words], autojunk=False)
    for kind, start, end, low, high in matcher.get_opcodes():
        at = start
        while kind != "equal" and at < end:
            # Longest first.
            spans = (words[at : at + length] for length in (2, 1) if at + length <= end)
            candidates = product(spans, group_forms()[axis])
            match = next((word for word in candidates if _fits(*word, tokens, other_words[low:high])), None)
            if match is not None:
                yield match
            at += len(match[0]) if match else 1


def _fits(places: Sequence[int], form: WordForm, tokens: Sequence[str], against: Sequence[str]) -> bool:
    """Whether the words at these places belong to the form."""
    if form.is_name:
        names = all(_looks_like_name(tokens[place]) for place in places)
        return names and any(_looks_like_name(other) for other in against)
    phrase = tuple(tokens[place].lower() for place in places)
    if phrase not in form.words or (form.is_adjective and not _before_noun(tokens, places)):
        return False
    return not form.needs_other or any((other.lower(),) in form.words - {phrase} for other in against)


def _looks_like_name(word: str) -> bool:
    return word[0].isupper() and not word.isupper() and word.lower() not in _known_words()


@cache
def _known_words() -> frozenset[str]:
    """The words that never count as a name: function words, and those of all forms except names."""
    forms = [form for forms in group_forms().values() for form in forms if not form.is_name]
    return _FUNCTION | {words[0] for form in forms for words in form.words if len(words) == 1}


def _before_noun(tokens: Sequence[str], places: Sequence[int]) -> bool:
    """Whether a word that may be noun or adjective is an adjective here."""
    following = next((token for token in tokens[places[-1] + 1 :] if not token.isspace()), ".")
    if following[0].isalpha():
        return following.lower() not in _FUNCTION
    before = [token.lower() for token in tokens[: places[0]] if token[0].isalpha()]
    return bool(before) and before[-1] in _COPULAS


def _write_sentence(tokens: Sequence[str], words: Sequence[_GroupWord], group: str) -> str:
    is_female = bool({"she", "her", "herself", "hers"} & {token.lower() for token in tokens})
    parts: list[str] = []
    at = 0
    for places, form in words:
        parts += tokens[at : places[0]]
        fill = (form.female if form.female and is_female else form.fill)[group]
        _fix_article(parts, fill)
        parts.append(fill[0].upper() + fill[1:] if _starts_sentence(parts) else fill)
        at = places[-1] + 1
    return "".join([*parts, *tokens[at:]])


def _starts_sentence(parts: Sequence[str]) -> bool:
    """Whether a sentence begins after these parts."""
    if not any(part[0].isalpha() for part in parts):
        return True
    return next((part for part in reversed(parts) if not part.isspace()), ".")[-1] in ".!?"


def _fix_article(parts: list[str], word: str) -> None:
    """Make *a* or *an* agree with the word that follows."""
    if len(parts) >= 2 and parts[-2].lower() in ("a", "an") and parts[-1].isspace():
        article = "an" if word[0].lower() in "aeiou" and not word.lower().startswith("eu") else "a"
        parts[-2] = article.title() if parts[-2][0].isupper() else article


FILES: Final = ("csp_gender.csv", "csp_race.csv", "csp_religion.csv")
DOMAINS: Final[Mapping[str, str]] = {"gender": "gender", "race-color": "race", "religion": "religion"}
PRINTED: Final[Mapping[str, int]] = {"gender": 263, "race": 566, "religion": 104}
"""Sets after the affective paper's manual changes (section 4.2.1), which were not published."""


class CrowsSuite(PairSuite):
    """CrowS-Pairs (Nangia et al. 2020), gender, race and religion: 262, 516 and 105 rows as released.

    Pairs male x female and European x African American, and sets of Christian, Muslim and Jewish. The rule is
    in ``crows_rule``; there is no ground truth. Cluster = the row, since each row is a template of its own.

    Args:
        name: A folder with ``csp_gender.csv``, ``csp_race.csv`` and ``csp_religion.csv``, the original
            ``crows_pairs_anonymized.csv``, or ``hub:ORG/NAME@REV/FILE``.
        execution: Whether the run is offline.
    """

    def __init__(self, *, name: str = "", execution: Execution | None = None) -> None:
        paths = find_files(name, suite="crows", files=FILES, execution=execution)
        rows = list(_rows(paths))
        every = [
            PairSet(f"{number}/{variant}", axis, f"{axis}-{number}", sentences)
            for axis, number, pair in rows
            for variant, sentences in enumerate(pair_variants(*pair, axis))
        ]
        sets, left_out = distinct_sets(every)
        super().__init__(
            "crows",
            sets,
            summary="Stereotypes written by people, with only the group exchanged.",
            digest=digest([file_digest(path) for path in paths]),
            version="2",
            citation="Nangia et al. CrowS-Pairs: A Challenge Dataset for Measuring Social Biases in Masked "
            "Language Models. EMNLP 2020.",
            licence="CC BY-SA 4.0",
            notes=(*_notes(rows, every, sets), *left_out),
        )


Row = tuple[str, int, tuple[str, str]]


def _rows(paths: list[Path]) -> Iterator[Row]:
    """Axis, number and the two sentences of every row whose domain we use."""
    for path in paths:
        if path.name.startswith("csp_"):
            cells = [(row[0], row[1], row[-1]) for row in read_bare_rows(path) if len(row) >= 3]
        else:
            cells = read_columns(path, ("sent_more", "sent_less", "bias_type")).rows()
        for number, (first, second, domain) in enumerate(cells):
            if domain in DOMAINS:
                yield DOMAINS[domain], number, (first, second)
            elif path.name.startswith("csp_"):
                refuse_changed(f"{path} row {number + 1} is of the domain {domain!r}", ", ".join(DOMAINS))


def _notes(rows: list[Row], every: list[PairSet], sets: list[PairSet]) -> Iterator[str]:
    for axis, printed in PRINTED.items():
        total = sum(one == axis for one, _, _ in rows)
        used = len({one.cluster for one in every if one.axis == axis})
        distinct, unused = sum(one.axis == axis for one in sets), total - used
        yield (
            f"{axis}: {distinct} {'set' if distinct == 1 else 'sets'} from {used} of {total} rows by our "
            f"rule; the paper changed rows by hand and had {printed}. "
            f"{'1 row names' if unused == 1 else f'{unused} rows name'} no group with a word of the rule."
        )
