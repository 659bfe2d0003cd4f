"""Small tables of texts whose sentiment is known, scored into runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from evenhand.audits.score import score
from evenhand.store.run import Run

GOOD, BAD = "What a wonderful, lovely, happy day.", "What a horrible, awful, terrible day."
GROUPS = ("women", "men", "elders")


def table(
    shares: dict[str, float], *, prompts: int = 30, samples: int = 3, seed: int = 0, prefix: str = "p"
) -> pl.DataFrame:
    """Texts of which this share is negative, ``samples`` for each prompt and group."""
    rng = np.random.default_rng(seed)
    rows = [
        {
            "text": BAD if rng.random() < share else GOOD,
            "group": group,
            "prompt": f"{prefix}{prompt}",
            "context": "work" if prompt % 2 else "home",
        }
        for prompt in range(prompts)
        for group, share in shares.items()
        for _ in range(samples)
    ]
    return pl.DataFrame(rows)


def run(folder: Path, name: str, shares: dict[str, float], **how: object) -> Run:
    """A scored run over such texts, called ``name``."""
    settings = {key: how.pop(key) for key in ("metrics", "baseline", "strata", "group") if key in how}
    path = folder / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    table(shares, **how).write_csv(path)  # type: ignore[arg-type]
    options = {"metrics": "sentiment", "baseline": {"group": "men"}, "group": ["group"]} | settings
    return score(path, text="text", prompt="prompt", out=folder / name, **options)  # type: ignore[arg-type]
