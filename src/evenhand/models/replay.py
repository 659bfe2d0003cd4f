"""Texts that are in a file already: another tool's generations, or a human baseline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError
from evenhand.core.records import Completion, GenerationSpec, ModelRef, Request
from evenhand.store.files import read_table


class ReplayModel:
    """Gives back the texts a file holds for a prompt: sample *i* is the *i*-th of them, in the file's order.

    A text that begins with its prompt gives what follows it. A sample the file does not have fails with
    ``not_in_file``, an empty cell with ``null_text``.

    Args:
        name: The file: JSONL, CSV, TSV or Parquet.
        text: The column of the texts.
        prompt: The column of the prompts, which must be the suite's to the letter.
        id: The column of prompt ids; where it is given, it and not the prompt finds the text.
    """

    def __init__(
        self, name: str, *, text: str = "text", prompt: str = "prompt", id: str | None = None
    ) -> None:
        path = Path(name).expanduser()
        table = read_table(path)
        key = prompt if id is None else id
        _require(table.columns, {"text": text, "prompt" if id is None else "id": key}, path)
        self._by_id = id is not None
        self._texts: dict[str | None, list[str | None]] = defaultdict(list)
        for found, written in table.select(key, text).iter_rows():
            self._texts[found].append(written)
        self.ref = ModelRef("replay", name, file_digest(path), {"text": text, "key": key})

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        """The stored texts, one for each request and sample."""
        for request in requests:
            texts = self._texts.get(request.id if self._by_id else request.text, [])
            for sample in request.samples:
                yield _completion(request, sample, texts)


def _require(columns: Sequence[str], named: Mapping[str, str], path: Path) -> None:
    """An error for the first column the file lacks, and where its name is set: no flag of a command does."""
    for option, column in named.items():
        if column not in columns:
            raise InputError(
                f"{path} has no column {column!r} for the {option}s",
                accepted=", ".join(columns),
                todo=f"name one of these columns in evenhand.toml: "
                f'[model] options = {{ {option} = "COLUMN" }}',
            )


def _completion(request: Request, sample: int, texts: Sequence[str | None]) -> Completion:
    if sample >= len(texts):
        return Completion(request.id, sample, None, None, failure="not_in_file")
    text = texts[sample]
    if text is None:
        return Completion(request.id, sample, None, None, failure="null_text")
    return Completion(request.id, sample, text.removeprefix(request.text), "replayed")
