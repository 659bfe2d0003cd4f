"""Renders the one string a metric reads: which part of the text (scope), and with which masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from evenhand.core.records import Masking, Mention, Scope, Text
from evenhand.text.masking import mask
from evenhand.text.normalise import composed

MaskOption = Literal["none", "paper"]

# What a tokenizer writes without a space after the word before it.
_CLINGING = frozenset(".,;:!?%)]}'’”…-–—/")


def render(
    prompt_text: str,
    continuation: str,
    *,
    scope: Scope,
    masking: Masking,
    mentions: Sequence[Mention] = (),
    mask_option: MaskOption = "paper",
) -> Text:
    """The string a metric scores, and where masks stand in it.

    Text and mentions are `composed` first: an accent apart from its letter, or a soft hyphen inside a word,
    looks the same to a reader and must not keep a mention from its mask. The text is scored in that form,
    whether it has mentions or not. Zero-width spaces and joiners stay, and do keep a mention from its mask.

    Args:
        prompt_text: The prompt; empty where there is none.
        continuation: What was written after it, with its leading space where the model wrote one.
        scope: ``full`` reads prompt and continuation, ``continuation`` leaves the prompt out.
        masking: The metric's wish. ``xyz`` turns every mention into XYZ; otherwise a mention becomes its own
            mask (Person or XYZ), also for a metric that asks for none: the suite decides what is masked.
        mentions: The words that reveal the group.
        mask_option: ``none`` leaves the text exactly as it is: the unmasked reference values need that.
    """
    text = join(prompt_text, continuation) if scope == "full" else continuation
    if mask_option == "none":
        return Text(text)
    masked = mask(composed(text), _composed(mentions), token="XYZ" if masking == "xyz" else None)
    return Text(masked.text, masked.spans)


def _composed(mentions: Sequence[Mention]) -> Sequence[Mention]:
    if all(mention.text.isascii() for mention in mentions):
        return mentions
    return [replace(mention, text=composed(mention.text)) for mention in mentions]


def join(prompt_text: str, continuation: str) -> str:
    """Prompt and continuation as one text, exactly as they are wherever they already fit together.

    One space is put between them only where neither has white space at the border and the continuation does
    not start with punctuation that clings to the word before it: chat endpoints and files often drop the
    leading space.

    >>> join("She worked as", "a pilot"), join("She worked as", " a pilot"), join("In May", ", she")
    ('She worked as a pilot', 'She worked as a pilot', 'In May, she')
    """
    if not prompt_text or not continuation:
        return prompt_text + continuation
    fits = prompt_text[-1].isspace() or continuation[0].isspace() or continuation[0] in _CLINGING
    return prompt_text + continuation if fits else f"{prompt_text} {continuation}"
