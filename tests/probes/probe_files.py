"""A small file of pairs, and predictions for them: what the tests of probing share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

GROUPS = ("female", "male", "non-binary")
EMOTIONS = ("anger", "fear", "joy", "sadness")


def sentence(group: str, template: int, emotion: str) -> str:
    return f"The {group} one was in mood {template} of {emotion}."


def pairs_file(path: Path, *, groups: tuple[str, ...] = GROUPS, templates: int = 6) -> Path:
    """One set a template and emotion, said of every group."""
    lines = ["axis,set,template,emotion,group,text"]
    lines += [
        f"gender,{template}-{emotion},t{template},{emotion},{group},{sentence(group, template, emotion)}"
        for template in range(templates)
        for emotion in EMOTIONS
        for group in groups
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def intensities(group: str, template: int, emotion: str) -> dict[str, float]:
    """The emotion's own is 0.7 and more; women get 0.1 more anger than men, the rest varies a little."""
    own = 0.7 + 0.02 * template + (0.1 if (group, emotion) == ("female", "anger") else 0.0)
    own += 0.003 * ((template + len(group)) % 3)
    others = [name for name in EMOTIONS if name != emotion]
    return {emotion: round(own, 4), **dict.fromkeys(others, round((1 - own) / 3, 4))}


def predictions_file(path: Path, *, templates: int = 6, flip: Mapping[str, str] | None = None) -> Path:
    """A column for each emotion; ``flip`` maps a sentence to the emotion that leads there instead."""
    lines = ["text,anger,fear,joy,sadness"]
    for template in range(templates):
        for emotion in EMOTIONS:
            for group in GROUPS:
                text = sentence(group, template, emotion)
                found = intensities(group, template, emotion)
                if flip and text in flip:
                    found[emotion], found[flip[text]] = found[flip[text]], found[emotion]
                lines.append(",".join([text, *(str(found[name]) for name in EMOTIONS)]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
