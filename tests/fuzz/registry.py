"""Every reader, by the part of the program it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.fuzz import app, lists, logs, models, papers, runs, tables
from tests.fuzz.harness import Reader

FAMILIES: Final[Mapping[str, tuple[Reader, ...]]] = {
    "texts, tables and corpora": tables.READERS,
    "suites, settings, word lists and vectors": lists.READERS,
    "models, classifiers and endpoints": models.READERS,
    "runs, studies and labels": runs.READERS,
    "logs of other tools": logs.READERS,
    "data of the papers and of trainings": papers.READERS,
    "requests to the annotation app, texts and labels of a study": app.READERS,
}
READERS: Final = tuple(reader for family in FAMILIES.values() for reader in family)
