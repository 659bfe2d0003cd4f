"""More training text from the same labels: groups swapped, plain statements about groups, shorter cuts.

A classifier that meets "gay" or "Muslim" mostly in abuse learns to fear the word. Copies with another group
in its place, and harmless sentences about every group, weaken that link (Dixon et al. 2018).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from evenhand.training.labelled_data import Example

GENDER: Final = (
    ("he", "she"),
    ("himself", "herself"),
    ("man", "woman"),
    ("men", "women"),
    ("boy", "girl"),
    ("boys", "girls"),
    ("guy", "lady"),
    ("guys", "ladies"),
    ("father", "mother"),
    ("dad", "mom"),
    ("son", "daughter"),
    ("brother", "sister"),
    ("husband", "wife"),
    ("boyfriend", "girlfriend"),
    ("male", "female"),
    ("males", "females"),
    ("mr", "mrs"),
    ("sir", "madam"),
)
"""Words with a counterpart; "his" and "him" both answer to "her" and are handled apart."""

CIRCLES: Final = (
    ("black", "white", "asian", "hispanic", "latino", "arab", "indian", "native american"),
    ("muslim", "christian", "jewish", "hindu", "buddhist", "sikh", "catholic", "atheist"),
    ("muslims", "christians", "jews", "hindus", "buddhists", "sikhs", "catholics", "atheists"),
    ("islam", "christianity", "judaism", "hinduism", "buddhism"),
    ("gay", "straight", "lesbian", "bisexual"),
    ("homosexual", "heterosexual"),
    ("american", "mexican", "chinese", "german", "nigerian", "russian", "iranian", "french"),
    ("americans", "mexicans", "chinese people", "germans", "nigerians", "russians", "iranians"),
    ("transgender", "cisgender"),
)
"""Each word may become any other of its circle."""

PEOPLE: Final = (
    *("a Black man", "a white man", "a Black woman", "a white woman", "an Asian man", "a Latina woman"),
    *("an Arab man", "a Native American woman", "a gay man", "a lesbian woman", "a straight man"),
    *("a bisexual woman", "a transgender woman", "a transgender man", "a Muslim woman", "a Christian man"),
    *("a Jewish man", "a Hindu woman", "a Buddhist man", "an atheist woman", "a Sikh man", "a Mexican woman"),
    *("a Chinese man", "a Nigerian woman", "a Russian man", "an Iranian woman", "an American man"),
    *(
        "a deaf woman",
        "a blind man",
        "an old man",
        "a young woman",
        "an immigrant",
        "a refugee",
        "a man",
        "a woman",
    ),
)

HARMLESS: Final = (
    "I am {} and I live near the station.",
    "My neighbour is {} who grows tomatoes.",
    "{} joined our team last week.",
    "The article about {} should cite its sources.",
    "She wrote her thesis on being {} in a small town.",
    "I sat next to {} on the bus this morning.",
    "As {}, I found the museum interesting.",
    "The new teacher is {} from the coast.",
)
ABUSIVE: Final = (
    "Shut up, nobody wants {} here.",
    "You are a worthless piece of trash, go back to where {} belongs.",
    "I hate you, you disgusting excuse for {}.",
    "Only an idiot would listen to {} like you.",
)


def statements() -> list[Example]:
    """Harmless and abusive sentences of ours about every group alike, for the label ``toxic``."""
    return [
        Example(text.format(person)[0].upper() + text.format(person)[1:], "statements", "train", targets)
        for texts, targets in (
            (HARMLESS, {"toxicity": (0.0, None)}),
            (ABUSIVE, {"toxicity": (1.0, None)}),
        )
        for text in texts
        for person in PEOPLE
    ]


def swapped(examples: Sequence[Example], *, seed: int = 0) -> list[Example]:
    """Copies of the training examples that name a group, another group in its place, the targets kept."""
    rng = np.random.default_rng(seed)
    found = []
    for example in examples:
        if example.split == "train":
            text = swap(example.text, rng)
            if text != example.text:
                found.append(replace(example, text=text, corpus=f"{example.corpus}-swapped"))
    return found


def swap(text: str, rng: np.random.Generator) -> str:
    """The text with genders exchanged and each other group replaced by one of its circle, alike all through.

    >>> swap("He asked the man about his dog.", np.random.default_rng(0))
    'She asked the woman about her dog.'
    """
    table = {word: others[int(rng.integers(len(others)))] for word, others in _OTHERS.items()}
    return _WORDS.sub(lambda match: _like(match[0], table[match[0].lower()]), text)


def cuts(examples: Sequence[Example], *, words: tuple[int, int], seed: int = 0) -> list[Example]:
    """One random run of ``words`` (fewest, most) words of each longer training example, its targets kept."""
    rng = np.random.default_rng(seed)
    found = []
    for example in examples:
        pieces = example.text.split()
        size = int(rng.integers(words[0], words[1] + 1))
        if example.split == "train" and len(pieces) > size:
            start = int(rng.integers(len(pieces) - size))
            text = " ".join(pieces[start : start + size])
            found.append(replace(example, text=text, corpus=f"{example.corpus}-cut"))
    return found


def _like(model: str, word: str) -> str:
    if model.isupper() and len(model) > 1:
        return word.upper()
    return word[0].upper() + word[1:] if model[0].isupper() else word


def _others() -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {"his": ("her",), "him": ("her",), "her": ("his",)}
    for one, other in GENDER:
        table |= {one: (other,), other: (one,)}
    for circle in CIRCLES:
        table |= {word: tuple(other for other in circle if other != word) for word in circle}
    return table


_OTHERS: Final = _others()
_WORDS: Final = re.compile(
    r"\b(?:" + "|".join(sorted(_OTHERS, key=len, reverse=True)) + r")\b", re.IGNORECASE
)
