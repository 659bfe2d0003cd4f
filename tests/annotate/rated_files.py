"""Files of ratings."""

from __future__ import annotations

from pathlib import Path


def rated(path: Path, rows: list[tuple[str, str, str]], question: str = "regard") -> Path:
    lines = [f"{item},XYZ number {item},{who},{label}" for item, who, label in rows]
    path.write_text("\n".join([f"id,text,annotator,{question}", *lines]) + "\n")
    return path


WORDS = {"n": "negative", "p": "positive", "m": "mixed", "u": "neutral", "x": "nonsense"}


def of(path: Path, *letters: str) -> Path:
    rows = [
        (str(item), who, WORDS[said])
        for item, row in enumerate(letters)
        for who, said in zip("abc", row, strict=False)
    ]
    return rated(path, rows)
