"""How a row of CrowS-Pairs becomes sentences that differ in the group alone.

The two sentences of a row often differ in more than the group: in a negation, in another word, in
punctuation. The rule, for each of the two: among the words in which it differs from the other, every group
word (or name) is replaced by the word of the same form of each group of the axis. So a row gives one set
where its two sentences come to the same, two where they differ in polarity or in another word (the negated
and the plain variant), and none where neither names a group by a word of ``assets/pairs/crows_forms.toml``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final, NamedTuple, cast

from evenhand.core.assets import asset

_TOKENS: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*|'\w+|\d+|\s+|.", re.DOTALL)
_COPULAS: Final = frozenset({"is", "was", "are", "were", "be", "being", "am", "isn", "wasn"})
_FUNCTION: Final = frozenset(
    {"a", "an", "the", "and", "or", "but", "who", "that", "which", "not", "never", "always", "because"}
    | {"is", "was", "are", "were", "am", "be", "had", "has", "have", "did", "do", "does"}
    | {
        "can",
        "could",
        "will",
        "would",
        "should",
        "may",
        "might",
        "than",
        "then",
        "so",
        "if",
        "when",
        "because",
    }
    | {"in", "on", "at", "to", "of", "from", "for", "with", "by", "as", "about"}
    | {"thought", "said", "saw", "ran", "looked", "reflected", "seemed", "relied", "though"}
)
"""Words that follow a noun rather than an adjective; a heuristic, and the only one here about grammar."""


@dataclass(frozen=True, slots=True)
class Form:
    """One form of group words: what each group gets, and which words are taken for it."""

    name: str
    fill: Mapping[str, str]
    words: frozenset[tuple[str, ...]]
    """Lower-case, as sequences."""
    is_name: bool = False
    is_adjective: bool = False
    needs_other: bool = False
    """Only where the other sentence has a word of the form in that place: *her* for *him*, not for *his*."""
    female: Mapping[str, str] | None = None
    """Names for a sentence that speaks of her."""


class _Found(NamedTuple):
    start: int
    end: int
    form: Form


def variants(first: str, second: str, axis: str) -> list[dict[str, str]]:
    """The sets a row gives: group to sentence, at most two, equal ones once."""
    found: dict[str, dict[str, str]] = {}
    for one, other in ((first, second), (second, first)):
        filled = _filled(one, other, axis)
        if filled and len(set(filled.values())) == len(filled):
            found.setdefault(_plain(next(iter(filled.values()))), filled)
    return list(found.values())


@lru_cache(maxsize=1)
def forms() -> Mapping[str, tuple[Form, ...]]:
    """The forms of every axis, in the order they are tried."""
    text = asset("pairs", "crows_forms.toml").read_text(encoding="utf-8")
    contents = cast("Mapping[str, Sequence[Mapping[str, object]]]", tomllib.loads(text))
    return {axis: tuple(_form(entry) for entry in entries) for axis, entries in contents.items()}


def _form(entry: Mapping[str, object]) -> Form:
    fill = cast("Mapping[str, str]", entry["fill"])
    words = [*fill.values(), *cast("Sequence[str]", entry.get("found", ()))]
    return Form(
        name=str(entry["form"]),
        fill=fill,
        words=frozenset(tuple(word.lower().split()) for word in words),
        is_name=bool(entry.get("names")),
        is_adjective=bool(entry.get("adjective")),
        needs_other=bool(entry.get("only_against")),
        female=cast("Mapping[str, str] | None", entry.get("female")),
    )


def _filled(sentence: str, other: str, axis: str) -> dict[str, str]:
    tokens, others = _TOKENS.findall(sentence), _TOKENS.findall(other)
    places = list(_places(tokens, others, axis))
    if not places:
        return {}
    groups = forms()[axis][0].fill
    return {group: _said(tokens, places, group) for group in groups}


def _places(tokens: Sequence[str], others: Sequence[str], axis: str) -> Iterator[_Found]:
    """The group words among the tokens in which the two sentences differ."""
    words = [place for place, token in enumerate(tokens) if token[0].isalpha()]
    their = [token for token in others if token[0].isalpha()]
    plain = [tokens[place].lower() for place in words]
    matcher = SequenceMatcher(None, plain, [word.lower() for word in their], autojunk=False)
    for kind, start, end, low, high in matcher.get_opcodes():
        at = start
        while kind != "equal" and at < end:
            found = _at(tokens, words, (at, end), their[low:high], axis)
            if found is not None:
                yield found
            at = at + 1 if found is None else next(k for k in range(at, end + 1) if _past(words, k, found))


def _past(words: Sequence[int], at: int, found: _Found) -> bool:
    return at == len(words) or words[at] >= found.end


def _at(
    tokens: Sequence[str], words: Sequence[int], span: tuple[int, int], against: Sequence[str], axis: str
) -> _Found | None:
    """The form of the words that start here, longest first."""
    at, end = span
    for length in (2, 1):
        if at + length > end:
            continue
        places = words[at : at + length]
        said = tuple(tokens[place].lower() for place in places)
        for form in forms()[axis]:
            if _fits(form, said, tokens, places, against):
                return _Found(places[0], places[-1] + 1, form)
    return None


def _fits(
    form: Form, said: tuple[str, ...], tokens: Sequence[str], places: Sequence[int], against: Sequence[str]
) -> bool:
    if form.is_name:
        return _is_name(tokens, places) and _name_against(against)
    if said not in form.words or (form.is_adjective and not _before_noun(tokens, places)):
        return False
    return not form.needs_other or any((word.lower(),) in form.words - {said} for word in against)


def _is_name(tokens: Sequence[str], places: Sequence[int]) -> bool:
    return all(_looks_like_name(tokens[place]) for place in places)


def _name_against(against: Sequence[str]) -> bool:
    return any(_looks_like_name(word) for word in against)


def _looks_like_name(word: str) -> bool:
    said = word.lower()
    return (
        word[0].isupper() and not word.isupper() and said not in _FUNCTION and (said,) not in _group_words()
    )


@lru_cache(maxsize=1)
def _group_words() -> frozenset[tuple[str, ...]]:
    """The words of all forms but names: none of them is taken for a name."""
    listed = [form.words for of_axis in forms().values() for form in of_axis if not form.is_name]
    return frozenset().union(*listed)


def _before_noun(tokens: Sequence[str], places: Sequence[int]) -> bool:
    """Whether a word that may be noun or adjective is an adjective here."""
    following = next((token for token in tokens[places[-1] + 1 :] if not token.isspace()), ".")
    if following[0].isalpha():
        return following.lower() not in _FUNCTION
    before = [token.lower() for token in tokens[: places[0]] if token[0].isalpha()]
    return bool(before) and before[-1] in _COPULAS


def _said(tokens: Sequence[str], places: Sequence[_Found], group: str) -> str:
    is_female = bool({"she", "her", "herself", "hers"} & {token.lower() for token in tokens})
    parts: list[str] = []
    at = 0
    for place in places:
        parts += tokens[at : place.start]
        fill = place.form.female if place.form.female and is_female else place.form.fill
        _fix_article(parts, fill[group])
        parts.append(_cased(fill[group], starts=_starts(parts)))
        at = place.end
    return "".join([*parts, *tokens[at:]])


def _starts(parts: Sequence[str]) -> bool:
    """Whether a sentence begins here."""
    if not any(part[0].isalpha() for part in parts):
        return True
    return next((part for part in reversed(parts) if not part.isspace()), ".")[-1] in ".!?"


def _fix_article(parts: list[str], word: str) -> None:
    """Make *a* or *an* fit the word that follows."""
    if len(parts) >= 2 and parts[-2].lower() in ("a", "an") and parts[-1].isspace():
        article = "an" if word[0].lower() in "aeiou" and not word.lower().startswith("eu") else "a"
        parts[-2] = article.title() if parts[-2][0].isupper() else article


def _cased(word: str, *, starts: bool) -> str:
    return word[0].upper() + word[1:] if starts else word


def _plain(sentence: str) -> str:
    """What tells two sentences apart: their words."""
    return " ".join(re.findall(r"\w+", sentence.lower()))
