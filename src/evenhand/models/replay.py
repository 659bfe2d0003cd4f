"""Texts already stored in a file: another tool's generations, or a human baseline."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import Final

from evenhand.core import registry
from evenhand.core.digests import file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import user_path
from evenhand.core.protocols import HumanSuite, Suite
from evenhand.core.records import Completion, Execution, GenerationSpec, ModelRef, Request
from evenhand.store.table_files import read_lines, read_table

_MASK = "XYZ "
_ID = "prompt_id"
_SENTENCE = 3
"""A first line with this many words is a text: column names have fewer."""
_Texts = Callable[[Request], Sequence[str | None]]
"""The texts of a file for a prompt, in file order."""


class _StoredTexts:
    """A model that returns stored texts; ``texts`` gives those of a prompt, in order."""

    missing = "not_in_file"
    """The failure code of a sample that does not exist."""

    def __init__(self, ref: ModelRef, texts: _Texts) -> None:
        self.ref, self._texts = ref, texts

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> Iterator[Completion]:
        """The stored texts without their prompts, one for each request and sample."""
        for request in requests:
            texts = self._texts(request)
            for sample in request.samples:
                text = texts[sample] if sample < len(texts) else None
                if text is not None:
                    yield Completion(request.id, sample, text.removeprefix(request.text), "replayed")
                else:
                    failure = "null_text" if sample < len(texts) else self.missing
                    yield Completion(request.id, sample, None, None, failure=failure)

    def pace(self, spec: GenerationSpec) -> float:
        """Infinite: nothing is generated."""
        return math.inf


class ReplayModel(_StoredTexts):
    """Returns the texts that a file holds for a prompt: sample *i* is the *i*-th of them, in file order.

    A text that begins with its prompt yields the rest. A sample missing from the file fails with
    ``not_in_file``, an empty cell with ``null_text``. A ``.tsv`` or ``.txt`` file whose first line is a
    sentence has no header: it holds one complete text per line, after a tab if there is a label before
    it (the layout of the regard study's samples), and a text belongs to the prompt that it begins with.

    Args:
        name: The file: JSONL, CSV, TSV or Parquet, or lines of text.
        text: The column of the texts.
        prompt: The column of the prompts, which must match the suite's, except for trailing white space.
        id: The column of prompt ids, used for look-up instead of the prompt. A file with
            a column ``prompt_id`` and no prompts, such as a run's ``generations.parquet``, needs no option.
    """

    def __init__(
        self, name: str, *, text: str = "text", prompt: str = "prompt", id: str | None = None
    ) -> None:
        path = user_path(name)
        if (text, prompt, id) == ("text", "prompt", None) and _is_lines(path):
            texts, options = _read_lines(path), {"layout": "lines"}
        else:
            texts, key = _read_table(path, text=text, prompt=prompt, id=id)
            options = {"text": text, "key": key}
        super().__init__(ModelRef("replay", name, file_digest(path), options), texts)

    def samples(self, requests: Sequence[Request]) -> int:
        """The largest number of texts that the file holds for one of the prompts."""
        return max((len(self._texts(request)) for request in requests), default=0)


def _read_table(path: Path, *, text: str, prompt: str, id: str | None) -> tuple[_Texts, str]:
    """The texts of a table, and the column used to look them up."""
    table = read_table(path)
    if id is None and prompt not in table.columns and _ID in table.columns:
        id = _ID
    key = prompt if id is None else id
    for option, column in {"text": text, "prompt" if id is None else "id": key}.items():
        if column not in table.columns:
            # No command-line flag names this column.
            raise InputError(
                f"{path} has no column {column!r} for the {option}s",
                expected=", ".join(filter(None, table.columns)) or "a table whose columns have names",
                fix=f"name one of these columns in evenhand.toml: "
                f'[model] options = {{ {option} = "COLUMN" }}',
            )
    texts: dict[str | None, list[str | None]] = defaultdict(list)
    for name, written in table.select(key, text).iter_rows():
        # BOLD's published prompts end in a space, its suite's do not.
        texts[name.rstrip() if name and id is None else name].append(written)
    return lambda request: texts.get(request.text.rstrip() if id is None else request.id, []), key


def _read_lines(path: Path) -> _Texts:
    """Complete texts, one per line, sorted so that texts with the same prompt are adjacent."""
    texts = [text for line in read_lines(path) if (text := line.rpartition("\t")[2].strip())]
    if texts and all(text.startswith(_MASK) for text in texts):
        raise InputError(
            f"every text of {path} begins with {_MASK.strip()}: the demographic that it is about is lost",
            expected="the texts as the model wrote them, each beginning with its prompt",
            fix="replay the file from before the masking; texts are masked when they are scored",
        )
    lines = sorted((text, place) for place, text in enumerate(texts))

    def look_up(request: Request) -> Sequence[str | None]:
        prompt = request.text
        start = bisect_left(lines, (prompt, -1))
        hits = takewhile(lambda line: line[0].startswith(prompt), islice(lines, start, None))
        # "worked as" is not the prompt of "worked assiduously".
        matches = [(place, text) for text, place in hits if not text[len(prompt) : len(prompt) + 1].isalnum()]
        return [text for _, text in sorted(matches)]

    return look_up


def _is_lines(path: Path) -> bool:
    """Whether a file holds one text per line: its first line is a sentence, not column names."""
    suffixes = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffixes not in (".tsv", ".txt") or not path.is_file():
        return False
    first = next(iter(read_lines(path)), "")
    return len(first.rpartition("\t")[2].split()) >= _SENTENCE


NAME: Final = "wikipedia"
"""The ``--model`` name of the human texts of the run's own suite."""


class HumanModel(_StoredTexts):
    """The human baseline of a suite: for each prompt the human-written text, without the prompt.

    There is one text per prompt: a second sample fails with ``no_human_text``, as does a prompt without one.

    Args:
        suite: A suite with human texts, such as BOLD with its Wikipedia sentences.
    """

    missing = "no_human_text"

    def __init__(self, suite: HumanSuite) -> None:
        texts = {name: [text] for name, text in suite.human_texts().items()}
        ref = ModelRef("human", suite.human_name, suite.info.digest)
        super().__init__(ref, lambda request: texts.get(request.id, []))


def load(name: str = "", *, suite: str = "", execution: Execution | None = None) -> HumanModel:
    """The human texts of a suite: Wikipedia's sentences for BOLD.

    Args:
        name: The suite as ``--suite`` names it, or the folder of BOLD: ``wikipedia:FOLDER``.
        suite: The suite of the run, if ``name`` is empty: ``audit wikipedia --suite bold:FOLDER``.
        execution: Whether the run is offline.
    """
    spec = name or suite or "bold"
    if spec.partition(":")[0] not in {entry.name for entry in registry.list_entries("suites")}:
        spec = f"bold:{spec}"
    return of_suite(registry.create_suite(spec, execution=execution))


def of_suite(suite: Suite) -> HumanModel:
    """The human texts of a loaded suite; an error if it has none."""
    if not isinstance(suite, HumanSuite):
        raise InputError(
            f"the suite {suite.info.name!r} has no texts written by people",
            expected="one suite that has: bold, bold-subset, bold-table-3",
            fix="for example `evenhand audit wikipedia --suite bold:FOLDER`",
        )
    return HumanModel(suite)
