"""The judge and its rivals (section 5): classifiers of articles, trained alike, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from evenhand.api.train import Training, prepare
from evenhand.api.train_options import TrainOptions
from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import InputError
from evenhand.core.protocols import Progress
from evenhand.papers.records import Table
from evenhand.papers.replicate import Request
from evenhand.training.articles import SHARES, Rival, read_openings, rivals

ARTICLES: Final = "articles"
"""The folder of ``--data`` with what ``evenhand.training.articles prepare`` wrote."""
JUDGES: Final[Mapping[str, TrainOptions]] = {
    "TF-IDF, linear": {"preset": "political-linear"},
    "fastText-style": {"preset": "political-fasttext"},
    "RNN with attention": {"preset": "political-attention"},
    "transformer, from nothing": {"preset": "political-transformer"},
    "masked model (builtin:masked)": {"backbone": "builtin:masked", "epochs": 3},
}
PUBLISHED: Final[Mapping[str, TrainOptions]] = {
    "BERT": {"preset": "political-bert"},
    "XLNet": {"preset": "political-xlnet"},
}
"""With ``--full``: fetched from the Hub."""
ALL: Final = "(all)"
_PRINTED: Final = {"source": "paper", "classifier": "XLNet", "outlet": ALL, "f1": 0.984}


@dataclass(frozen=True, slots=True)
class Judges:
    """The trainings of one table, on the parts of a folder of articles."""

    folder: Path
    request: Request

    @classmethod
    def found(cls, request: Request) -> Judges | None:
        """The articles of ``--data``; None where it has none."""
        folder = request.data / ARTICLES if request.data else None
        if folder is None or not folder.is_dir():
            return None
        for part in SHARES:
            if not (folder / f"{part}.csv").is_file():
                raise InputError(
                    f"{folder} has no {part}.csv",
                    accepted=", ".join(f"{name}.csv" for name in SHARES),
                    todo=f"python -m evenhand.training.articles prepare ARTICLES.jsonl --out {folder}",
                )
        return cls(folder, request)

    def identity(self) -> Json:
        """What the table depends on."""
        return {part: file_digest(self.folder / f"{part}.csv") for part in SHARES}

    def table(self, folder: Path, progress: Progress) -> Table:
        """Train what is not trained yet, and compare on the test articles."""
        runs = {
            name: self._training(options, folder / _safe(name)).run(progress).folder
            for name, options in self.names().items()
        }
        found = rivals(read_openings(self.folder / "test.csv"), runs)
        rows = [_PRINTED, *(row for rival in found for row in _rows(rival))]
        return Table(
            id="judges",
            title="The judge's rivals on articles none of them has met",
            frame=pl.DataFrame(rows, infer_schema_length=None),
            notes=(
                "Macro-F1 over all articles, with an interval from resampling articles; by outlet it is F1 "
                "of the outlet's own side. Trained on 70 % of the articles, the epoch chosen on 15 %, tested "
                "on 15 %; sides balanced, first 100 tokens, press names removed.",
                "The paper's articles are not public: its 0.984 is on others, and prints no rival's.",
            ),
            decimals=3,
        )

    def names(self) -> dict[str, TrainOptions]:
        """Name in the table to how it is trained."""
        return {**JUDGES, **(PUBLISHED if self.request.full else {})}

    def _training(self, options: TrainOptions, out: Path) -> Training:
        whole: TrainOptions = {
            **options,
            "valid": self.folder / "valid.csv",
            "test": self.folder / "test.csv",
            "out": out,
            "seed": self.request.seed,
            "device": self.request.device,
            "offline": self.request.offline,
        }
        return prepare("ideology", self.folder / "train.csv", **whole)


def _rows(rival: Rival) -> list[dict[str, object]]:
    own = {"source": "ours", "classifier": rival.name}
    whole = {**own, "outlet": ALL, "f1": rival.f1, "low": rival.low, "high": rival.high, "n": rival.n}
    by_outlet = sorted(rival.by_outlet.items(), key=lambda item: (-item[1][1], item[0]))
    return [whole, *({**own, "outlet": name, "f1": f1, "n": n} for name, (f1, n) in by_outlet)]


def _safe(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower()).strip("-")
