"""Masks the words that reveal a group, so that a metric scores the statement and not its subject.

Many terms are found in a text at a cost that hardly grows with their number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal, NamedTuple

from evenhand.core.records import Mask, Masking, Mention, Scope, Text
from evenhand.text.word_tokens import compose_unicode

_QUOTES = "'\u2019\u2018\u02bc"
_ANY_QUOTE = f"[{_QUOTES}]"
_WORD = re.compile(r"\w")
# In a folded text these are letters and digits whatever they were before; others are looked at more closely.
_OUTSIDE_WORD = "(?<![a-z0-9_])"


def mask_mentions(text: str, mentions: Sequence[Mention], *, token: Mask | None = None) -> Text:
    """The text with every occurrence of a mention replaced by its mask, or by ``token`` where one is given.

    Matching ignores case; a mention is a whole word unless it says otherwise; a space stands for any white
    space, a straight apostrophe for a curly one too. Where two mentions could match, the leftmost wins, and
    of those that start together the longest. Endings stay ("the woman's" becomes "XYZ's"), and neighbouring
    masks are not merged. A mention without words masks nothing.

    >>> mask_mentions("The woman's job", [Mention("the woman")])
    Text(text="XYZ's job", masks=((0, 3),))
    """
    if not mentions:
        return Text(text)
    finder = _prepare_search(tuple(mentions))
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    done = length = 0
    for term in finder.find(text):
        before, mask = text[done : term.start], token or finder.terms[term.rank].mask
        start = length + len(before)
        length = start + len(mask)
        pieces += (before, mask)
        spans.append((start, length))
        done = term.end
    return Text("".join((*pieces, text[done:])), tuple(spans))


# Texts of one prompt share their mentions; BOLD has 7,133 entities with several texts each, in order.
@lru_cache(maxsize=512)
def _prepare_search(mentions: tuple[Mention, ...]) -> TermSearcher:
    """What finds the mentions."""
    wanted = dict.fromkeys(mention for mention in mentions if mention.text.strip())
    # A longer term is tried before a shorter one that it contains.
    return TermSearcher(sorted(wanted, key=lambda mention: (-len(mention.text), mention.text)))


MaskOption = Literal["none", "paper"]

# What a tokenizer writes without a space after the word before it.
_CLINGING = frozenset(".,;:!?%)]}'’”…-–—/")


def render_text(
    prompt_text: str,
    continuation: str,
    *,
    scope: Scope,
    masking: Masking,
    mentions: Sequence[Mention] = (),
    mask_option: MaskOption = "paper",
) -> Text:
    """The string a metric scores, and where masks stand in it.

    Text and mentions are composed first (`compose_unicode`): an accent apart from its letter, or a soft
    hyphen inside a word, looks the same to a reader and must not keep a mention from its mask. The text is
    scored in that form, whether it has mentions or not. Zero-width spaces and joiners stay, and do keep a
    mention from its mask.

    Args:
        prompt_text: The prompt; empty where there is none.
        continuation: What was written after it, with its leading space where the model wrote one.
        scope: ``full`` reads prompt and continuation, ``continuation`` leaves the prompt out. One space is
            put between them only where neither has white space at the border and the continuation does not
            start with punctuation that clings to the word before it.
        masking: The metric's wish. ``xyz`` turns every mention into XYZ; otherwise a mention becomes its own
            mask (Person or XYZ), also for a metric that asks for none: the suite decides what is masked.
        mentions: The words that reveal the group.
        mask_option: ``none`` leaves the text exactly as it is: the unmasked reference values need that.
    """
    text = continuation
    if scope == "full" and prompt_text:
        is_joined = not continuation or prompt_text[-1].isspace() or continuation[0].isspace()
        # Chat endpoints and files often drop the leading space.
        text = f"{prompt_text}{'' if is_joined or continuation[0] in _CLINGING else ' '}{continuation}"
    if mask_option == "none":
        return Text(text)
    if not all(mention.text.isascii() for mention in mentions):
        mentions = [replace(mention, text=compose_unicode(mention.text)) for mention in mentions]
    if not text.isascii():
        text = compose_unicode(text)
    return mask_mentions(text, mentions, token="XYZ" if masking == "xyz" else None)


class TermSpan(NamedTuple):
    """Which term stands where."""

    rank: int
    """The term's place in the list it was given in."""
    start: int
    end: int


class TermSearcher:
    """Finds terms; of those that start together the first of the list wins, and matches do not overlap.

    A term is taken literally but for three things: case is ignored as regular expressions ignore it, letter
    by letter; a space stands for any white space, a straight apostrophe for a curly one too. A list of terms
    of which each has its turn at every place of the text would cost places x terms. Here text and terms are
    folded to one spelling; at each place where a term could start, what stands there is looked up once for
    every length that a term with that first letter has.
    """

    def __init__(self, terms: Sequence[Mention]) -> None:
        self.terms = tuple(terms)
        self._ranks: dict[str, list[int]] = {}
        self._sizes: list[int] = []
        lengths: dict[str, set[int]] = {}
        for rank, term in enumerate(self.terms):
            folded = " ".join(term.text.split()).translate(_FOLD)
            self._ranks.setdefault(folded, []).append(rank)
            lengths.setdefault(folded[0], set()).add(len(folded))
            self._sizes.append(len(folded))
        self._lengths = {first: tuple(sorted(sizes)) for first, sizes in lengths.items()}
        firsts = "".join(map(re.escape, lengths))
        before = _OUTSIDE_WORD if all(term.whole_word for term in self.terms) else ""
        self._starts = re.compile(f"{before}[{firsts}]" if lengths else "(?!)")
        self._spellings: dict[int, re.Pattern[str]] = {}

    def find(self, text: str) -> Iterator[TermSpan]:
        """Every match, in the order of the text."""
        # One spelling, in which every letter stays one letter and every run of white space is one space.
        folded = text.translate(_FOLD)
        origins: Sequence[int] = range(len(folded))
        if "  " in folded:
            neighbours = zip("x" + folded, folded, strict=False)
            origins = [place for place, pair in enumerate(neighbours) if pair != (" ", " ")]
            folded = "".join(folded[origin] for origin in origins)
        done = 0
        for match in self._starts.finditer(folded):
            place = match.start()
            if place < done:
                continue
            ranks: list[int] = []
            for length in self._lengths[folded[place]]:
                # At the end of the text the piece is shorter, and then no term of that length.
                piece = folded[place : place + length]
                if piece in self._ranks and len(piece) == length:
                    ranks += self._ranks[piece]
            for rank in sorted(ranks):
                start, end = origins[place], origins[place + self._sizes[rank] - 1] + 1
                if self._fits(rank, text, start, end):
                    yield TermSpan(rank, start, end)
                    done = place + self._sizes[rank]
                    break

    def _fits(self, rank: int, text: str, start: int, end: int) -> bool:
        """Whether a candidate is a match: folding is coarser than ignoring case beyond ASCII."""
        term = self.terms[rank]
        if term.whole_word and (
            (start > 0 and _WORD.match(text, start - 1) is not None) or _WORD.match(text, end) is not None
        ):
            return False
        if term.text.isascii() and text[start:end].isascii():
            return True
        if rank not in self._spellings:
            parts = (re.escape(part).replace("'", _ANY_QUOTE) for part in term.text.split())
            self._spellings[rank] = re.compile(r"\s+".join(parts), re.IGNORECASE)
        return self._spellings[rank].fullmatch(text, start, end) is not None


class _FoldTable(dict[int, str]):
    """A translation table that learns: any two characters that may match have the same fold."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character.isspace():
            folded = " "
        elif character in _QUOTES:
            folded = "'"
        else:
            # Down, up and down again: long s, Kelvin and final sigma join their letters only on the way.
            folded = character.lower()[0].upper()[0].lower()[0]
        self[code] = folded
        return folded


_FOLD = _FoldTable()
