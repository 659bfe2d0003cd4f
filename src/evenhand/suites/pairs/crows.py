"""CrowS-Pairs: written by people, and made to differ in the group alone by our rule."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, cast

from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.records import Execution
from evenhand.suites.pairs.pair_sets import (
    PairSet,
    PairSuite,
    distinct_sets,
    find_files,
    read_bare_rows,
    read_columns,
    suite_info,
)

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
class WordForm:
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


class _GroupWord(NamedTuple):
    start: int
    end: int
    form: WordForm


def pair_variants(first: str, second: str, axis: str) -> list[dict[str, str]]:
    """The sets a row gives: group to sentence, at most two, equal ones once."""
    found: dict[str, dict[str, str]] = {}
    for one, other in ((first, second), (second, first)):
        filled = _fill_groups(one, other, axis)
        if filled and len(set(filled.values())) == len(filled):
            found.setdefault(_plain(next(iter(filled.values()))), filled)
    return list(found.values())


@lru_cache(maxsize=1)
def group_forms() -> Mapping[str, tuple[WordForm, ...]]:
    """The forms of every axis, in the order they are tried."""
    text = asset_path("pairs", "crows_forms.toml").read_text(encoding="utf-8")
    contents = cast("Mapping[str, Sequence[Mapping[str, object]]]", tomllib.loads(text))
    return {axis: tuple(_form(entry) for entry in entries) for axis, entries in contents.items()}


def _form(entry: Mapping[str, object]) -> WordForm:
    fill = cast("Mapping[str, str]", entry["fill"])
    words = [*fill.values(), *cast("Sequence[str]", entry.get("found", ()))]
    return WordForm(
        name=str(entry["form"]),
        fill=fill,
        words=frozenset(tuple(word.lower().split()) for word in words),
        is_name=bool(entry.get("names")),
        is_adjective=bool(entry.get("adjective")),
        needs_other=bool(entry.get("only_against")),
        female=cast("Mapping[str, str] | None", entry.get("female")),
    )


def _fill_groups(sentence: str, other: str, axis: str) -> dict[str, str]:
    tokens, others = _TOKENS.findall(sentence), _TOKENS.findall(other)
    places = list(_places(tokens, others, axis))
    if not places:
        return {}
    groups = group_forms()[axis][0].fill
    return {group: _write_sentence(tokens, places, group) for group in groups}


def _places(tokens: Sequence[str], others: Sequence[str], axis: str) -> Iterator[_GroupWord]:
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
            at = (
                at + 1
                if found is None
                else next(k for k in range(at, end + 1) if _skip_past(words, k, found))
            )


def _skip_past(words: Sequence[int], at: int, found: _GroupWord) -> bool:
    return at == len(words) or words[at] >= found.end


def _at(
    tokens: Sequence[str], words: Sequence[int], span: tuple[int, int], against: Sequence[str], axis: str
) -> _GroupWord | None:
    """The form of the words that start here, longest first."""
    at, end = span
    for length in (2, 1):
        if at + length > end:
            continue
        places = words[at : at + length]
        said = tuple(tokens[place].lower() for place in places)
        for form in group_forms()[axis]:
            if _fits(form, said, tokens, places, against):
                return _GroupWord(places[0], places[-1] + 1, form)
    return None


def _fits(
    form: WordForm,
    said: tuple[str, ...],
    tokens: Sequence[str],
    places: Sequence[int],
    against: Sequence[str],
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
    listed = [form.words for of_axis in group_forms().values() for form in of_axis if not form.is_name]
    return frozenset().union(*listed)


def _before_noun(tokens: Sequence[str], places: Sequence[int]) -> bool:
    """Whether a word that may be noun or adjective is an adjective here."""
    following = next((token for token in tokens[places[-1] + 1 :] if not token.isspace()), ".")
    if following[0].isalpha():
        return following.lower() not in _FUNCTION
    before = [token.lower() for token in tokens[: places[0]] if token[0].isalpha()]
    return bool(before) and before[-1] in _COPULAS


def _write_sentence(tokens: Sequence[str], places: Sequence[_GroupWord], group: str) -> str:
    is_female = bool({"she", "her", "herself", "hers"} & {token.lower() for token in tokens})
    parts: list[str] = []
    at = 0
    for place in places:
        parts += tokens[at : place.start]
        fill = place.form.female if place.form.female and is_female else place.form.fill
        _fix_article(parts, fill[group])
        parts.append(_match_case(fill[group], starts=_starts(parts)))
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


def _match_case(word: str, *, starts: bool) -> str:
    return word[0].upper() + word[1:] if starts else word


def _plain(sentence: str) -> str:
    """What tells two sentences apart: their words."""
    return " ".join(re.findall(r"\w+", sentence.lower()))


FILES: Final = ("csp_gender.csv", "csp_race.csv", "csp_religion.csv")
DOMAINS: Final[Mapping[str, str]] = {"gender": "gender", "race-color": "race", "religion": "religion"}
PRINTED: Final[Mapping[str, int]] = {"gender": 263, "race": 566, "religion": 104}
"""Sets after the affective paper's changes by hand (section 4.2.1), which were not published."""


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
        made = [one for axis, number, pair in rows for one in _sets(axis, number, pair)]
        sets, left_out = distinct_sets(made)
        info = suite_info(
            "crows",
            sets,
            summary="Stereotypes written by people, with the group exchanged and nothing else.",
            digest=digest([file_digest(path) for path in paths]),
            version="2",
            citation="Nangia et al. CrowS-Pairs: A Challenge Dataset for Measuring Social Biases in Masked "
            "Language Models. EMNLP 2020.",
            licence="CC BY-SA 4.0",
            notes=(*_notes(rows, made, sets), *left_out),
        )
        super().__init__(info, sets)


Row = tuple[str, int, tuple[str, str]]


def _rows(paths: list[Path]) -> Iterator[Row]:
    """Axis, number and the two sentences of every row of a domain we use."""
    for path in paths:
        if path.name.startswith("csp_"):
            found = [(row[0], row[1], row[-1]) for row in read_bare_rows(path) if len(row) >= 3]
        else:
            columns = ("sent_more", "sent_less", "bias_type")
            found = list(read_columns(path, columns).select(columns).iter_rows())
        for number, (first, second, domain) in enumerate(found):
            if domain in DOMAINS:
                yield DOMAINS[domain], number, (first or "", second or "")
            elif path.name.startswith("csp_"):
                raise InputError(
                    f"{path} row {number + 1} is of the domain {domain!r}",
                    expected=", ".join(DOMAINS),
                    fix="name the file as it was published, or bring it as pairs of your own",
                )


def _sets(axis: str, number: int, pair: tuple[str, str]) -> Iterator[PairSet]:
    for variant, sentences in enumerate(pair_variants(*pair, axis)):
        yield PairSet(f"{number}/{variant}", axis, f"{axis}-{number}", sentences)


def _notes(rows: list[Row], made: list[PairSet], sets: list[PairSet]) -> Iterator[str]:
    for axis, printed in PRINTED.items():
        total = sum(one == axis for one, _, _ in rows)
        used = len({one.cluster for one in made if one.axis == axis})
        kept = sum(one.axis == axis for one in sets)
        yield (
            f"{axis}: {kept} {'set' if kept == 1 else 'sets'} from {used} of {total} rows by our rule; the "
            f"paper changed rows by hand and had {printed}. {_rows_name(total - used)} no group by a word "
            "the rule knows."
        )


def _rows_name(amount: int) -> str:
    return "1 row names" if amount == 1 else f"{amount} rows name"
