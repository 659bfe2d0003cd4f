"""Inflected forms of terms: plurals, tenses, comparatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenhand.core.errors import MissingLibraryError
from evenhand.corpus.rule import words
from evenhand.corpus.terms import TermGroup, TermList

_PARTS_OF_SPEECH = ("NOUN", "VERB", "ADJ")


@dataclass(frozen=True, slots=True)
class Expansion:
    """A term list with inflections, and what was added to each list."""

    terms: TermList
    added: Mapping[str, tuple[str, ...]]
    """By the name of the list."""


def expand(terms: TermList) -> Expansion:
    """The lists with the inflections of their single words, by lemminflect's dictionary.

    A form is added only where the dictionary holds the word (nothing is guessed), and where no other list of
    its kind has it already. Terms of several words stay as they are.
    """
    inflect = _dictionary()
    added: dict[str, tuple[str, ...]] = {}
    emotions: dict[str, tuple[str, ...]] = {}
    taken = {_key(term) for part in terms.emotions.values() for term in part}
    for name, part in terms.emotions.items():
        added[name] = _new_forms(part, taken, inflect)
        emotions[name] = (*part, *added[name])
    groups = []
    taken = {_key(term) for group in terms.groups for term in group.terms}
    for group in terms.groups:
        added[group.name] = _new_forms(group.terms, taken, inflect)
        groups.append(TermGroup(group.axis, group.name, (*group.terms, *added[group.name])))
    return Expansion(TermList(emotions, tuple(groups), terms.problems), added)


def _new_forms(terms: Sequence[str], taken: set[str], inflect: _Dictionary) -> tuple[str, ...]:
    found: list[str] = []
    for term in terms:
        if len(words(term)) != 1:
            continue
        for form in inflect.forms(term):
            if _key(form) not in taken:
                taken.add(_key(form))
                found.append(form)
    return tuple(found)


def _key(term: str) -> str:
    return " ".join(words(term))


class _Dictionary:
    """The inflections lemminflect knows."""

    def __init__(self) -> None:
        try:
            import lemminflect
        except ImportError as error:
            raise MissingLibraryError(
                "inflections need lemminflect", todo="pip install 'evenhand[corpus]'"
            ) from error
        self._library = lemminflect

    def forms(self, word: str) -> list[str]:
        """The forms of a word that is itself a lemma, in a fixed order."""
        found: set[str] = set()
        for part in _PARTS_OF_SPEECH:
            if word.lower() in self._library.getAllLemmas(word.lower(), upos=part).get(part, ()):
                for forms in self._library.getAllInflections(word.lower(), upos=part).values():
                    found.update(form.lower() for form in forms)
        return sorted(found - {word.lower()})


def _dictionary() -> _Dictionary:
    return _Dictionary()
