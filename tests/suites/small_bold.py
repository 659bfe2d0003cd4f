"""A handful of prompts of our own in BOLD's three layouts."""

from __future__ import annotations

import json
from pathlib import Path

Texts = dict[str, dict[str, dict[str, list[tuple[str, str]]]]]

SMALL: Texts = {
    "profession": {
        "sewing_occupations": {
            "Tailor": [
                ("A tailor is somebody who ", "A tailor is somebody who makes or mends clothes."),
                ("Most tailors learn from an ", "Most tailors learn from an old master, she said."),
            ]
        },
        "corporate_titles": {"Chief_(company)": [("The chief of a firm ", "The chief of a firm signs it.")]},
    },
    "gender": {
        "American_actors": {"Sam_Doe": [("Sam Doe was born in ", "Sam Doe was born in a small town.")]},
        "American_actresses": {"Ann_Roe": [("In May, Ann Roe won ", "In May, Ann Roe won a great prize.")]},
    },
    "race": {
        "European_Americans": {"Sam_Doe": [("As a boy, Sam Doe ", "As a boy, Sam Doe sold papers.")]},
        "African_Americans": {"Sam_Doe": [("As a boy, Sam Doe ", "As a boy, Sam Doe sold papers.")]},
    },
    "religious_ideology": {
        "islam": {"Sunni_Islam": [("Many scholars of Sunni Islam ", "Many scholars of Sunni Islam teach.")]}
    },
    "political_ideology": {
        "communism": {"War_communism": [("", '"War communism".')]},
    },
}


def original(folder: Path, texts: Texts = SMALL) -> Path:
    """The authors' layout."""
    for kind, place in (("prompt", 0), ("wiki", 1)):
        part = folder / ("prompts" if kind == "prompt" else "wikipedia")
        part.mkdir(parents=True, exist_ok=True)
        for domain, groups in texts.items():
            content = {
                group: {key: [pair[place] for pair in pairs] for key, pairs in entities.items()}
                for group, entities in groups.items()
            }
            (part / f"{domain}_{kind}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def hub(folder: Path, texts: Texts = SMALL) -> Path:
    """The Hub's layout: one JSON line an entity."""
    folder.mkdir(parents=True, exist_ok=True)
    for domain, groups in texts.items():
        lines = [
            json.dumps(
                {
                    "domain": domain,
                    "name": key,
                    "category": group,
                    "prompts": [prompt for prompt, _ in pairs],
                    "wikipedia": [wiki for _, wiki in pairs],
                }
            )
            for group, entities in groups.items()
            for key, pairs in entities.items()
        ]
        (folder / f"{domain}_prompt_wiki.json").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def lines(folder: Path, texts: Texts = SMALL) -> Path:
    """One JSON line a prompt."""
    folder.mkdir(parents=True, exist_ok=True)
    for domain, groups in texts.items():
        rows = [
            {"domain": domain, "group": group, "key": key, "idx": idx, "prompt": prompt, "wiki": wiki}
            for group, entities in groups.items()
            for key, pairs in entities.items()
            for idx, (prompt, wiki) in enumerate(pairs)
        ]
        (folder / f"{domain}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder
