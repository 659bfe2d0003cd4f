"""Masks the words that reveal a group, so that a metric scores the statement and not its subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from evenhand.core.records import Mask, Masking, Mention, Scope, Text
from evenhand.text.term_search import TermSearcher
from evenhand.text.word_tokens import compose_unicode


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
    finder, masks = _prepare_search(tuple(mentions))
    pieces: list[str] = []
    spans: list[tuple[int, int]] = []
    done = length = 0
    for term in finder.find(text):
        before, mask = text[done : term.start], token or masks[term.rank]
        start = length + len(before)
        length = start + len(mask)
        pieces += (before, mask)
        spans.append((start, length))
        done = term.end
    return Text("".join((*pieces, text[done:])), tuple(spans))


# Texts of one prompt share their mentions; BOLD has 7,133 entities with several texts each, in order.
@lru_cache(maxsize=512)
def _prepare_search(mentions: tuple[Mention, ...]) -> tuple[TermSearcher, list[Mask]]:
    """What finds the mentions, and the mask of each of its terms."""
    wanted = dict.fromkeys(mention for mention in mentions if mention.text.strip())
    # A longer term is tried before a shorter one that it contains.
    ordered = sorted(wanted, key=lambda mention: (-len(mention.text), mention.text))
    return TermSearcher(ordered), [mention.mask for mention in ordered]


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
