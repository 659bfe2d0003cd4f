"""Texts that users supply: table rows as prompts and generations, with problems counted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

import polars as pl

from evenhand.core.digests import Json, canonical_json
from evenhand.core.errors import InputError
from evenhand.core.records import RESERVED_GROUPS, Group, Mask, Mention, Prompt
from evenhand.store.schemas import EVERY_SCHEMA
from evenhand.store.table_files import require_columns


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """The columns of a file, by meaning."""

    text: str
    groups: Mapping[str, str]
    prompt: str | None = None
    cluster: str | None = None
    id: str | None = None
    mentions: str | None = None
    join_prompt: bool = False
    """Prepend the prompt to texts that do not start with it."""
    strata: tuple[str, ...] = ()
    """Columns within which gaps are also compared."""
    failure: str | None = None
    """Column with the reason that a text is missing."""

    def columns(self) -> dict[str, str | None]:
        """The columns, by the option that names each."""
        return {
            "--text": self.text,
            "--prompt": self.prompt,
            "--cluster": self.cluster,
            "--id": self.id,
            "--mentions": self.mentions,
            **{f"--stratum {column}": column for column in self.strata},
            **{f"--group {axis}": column for axis, column in self.groups.items()},
        }

    def identity(self) -> dict[str, Json]:
        """The settings that are part of a run's identity."""
        unused = {name for name in ("strata", "failure") if not getattr(self, name)}
        return {name: value for name, value in asdict(self).items() if name not in unused}


@dataclass(slots=True)
class IngestedTexts:
    """The texts of a file as prompts and generations, with problems counted."""

    prompts: dict[str, Prompt] = field(default_factory=dict)
    rows: list[dict[str, object]] = field(default_factory=list)
    without_group: dict[str, int] = field(default_factory=dict)
    """For each axis, the number of texts without a group."""

    def generations(self) -> pl.DataFrame:
        """The texts as a table of generations."""
        return pl.DataFrame(self.rows, schema=EVERY_SCHEMA["generations"])


def check_layout(table: pl.DataFrame, layout: ColumnLayout, path: Path) -> None:
    """Raise an error for the first column, group name or id that cannot be used."""
    require_columns(table.columns, layout.columns(), path)
    for column in layout.groups.values():
        names = group_names(table, column)
        if not names:
            raise InputError(
                f"column {column!r} of {path} is empty",
                expected="a group name per row",
                fix="check the column",
            )
        for name in RESERVED_GROUPS & names:
            raise InputError(
                f"column {column!r} of {path} has a group named {name!r}, a reserved name",
                expected="any other name",
                fix="rename that group",
            )
    ids = table[layout.id] if layout.id else pl.Series(dtype=pl.String)
    if ids.null_count():
        raise InputError(
            f"column {layout.id!r} of {path} has {ids.null_count()} empty ids",
            expected="one id per row",
            fix="fill in the missing ids",
        )
    doubled = ids.filter(ids.is_duplicated())
    if not doubled.is_empty():
        raise InputError(
            f"column {layout.id!r} of {path} has {doubled.n_unique()} duplicate ids, first {doubled[0]!r}",
            expected="unique ids",
            fix="choose another column with --id, or leave it out to number the rows",
        )


def group_names(table: pl.DataFrame, column: str) -> set[str]:
    """The groups in a column; white space around a name does not make it another group."""
    return set(table[column].drop_nulls().str.strip_chars().unique()) - {""}


def count_copies(table: pl.DataFrame, layout: ColumnLayout) -> int:
    """The number of rows that duplicate a text of the same groups, unless they are known to belong together.

    If clusters and prompts are both known, it counts rows that repeat prompt and text in another cluster.
    """
    columns = list(dict.fromkeys([layout.text, *layout.groups.values()]))
    if not layout.cluster and not layout.prompt:
        rows = table.drop_nulls(layout.text).select(columns)
        return rows.height - rows.n_unique()
    if not layout.cluster or not layout.prompt:
        return 0
    rows = table.drop_nulls([layout.text, layout.prompt, layout.cluster])
    first = pl.col(layout.cluster).first().over([*columns, layout.prompt])
    return rows.filter(pl.col(layout.cluster) != first).height


def read_texts(table: pl.DataFrame, layout: ColumnLayout, name: str) -> IngestedTexts:
    """The prompts and texts of a table; an empty or damaged text is kept with a reason."""
    texts = IngestedTexts()
    for number, row in enumerate(table.iter_rows(named=True)):
        prompt, continuation = _prompt(row, number, layout, name)
        texts.prompts.setdefault(prompt.id, prompt)
        for axis, column in layout.groups.items():
            if not (row[column] or "").strip():
                texts.without_group[axis] = texts.without_group.get(axis, 0) + 1
        failure = row[layout.failure] if layout.failure else None
        if continuation is None or not continuation.strip():
            failure = failure or "empty_text"
        elif "\ufffd" in continuation:
            failure = failure or "invalid_utf8"
        texts.rows.append(
            {
                "id": row[layout.id] if layout.id else str(number),
                "prompt_id": prompt.id,
                "model": name,
                "sample": number,
                "text": None if failure else continuation,
                "finish": "replayed",
                "failure": failure,
            }
        )
    return texts


def _prompt(
    row: Mapping[str, str | None], number: int, layout: ColumnLayout, name: str
) -> tuple[Prompt, str | None]:
    """The prompt of a row, and the text that follows it.

    A prompt that the text does not start with is only a cue: it is kept, but metrics do not read it.
    """
    text, cue = row[layout.text], (row[layout.prompt] if layout.prompt else None) or ""
    starts = bool(text) and bool(cue) and cast(str, text).startswith(cue)
    start = cue if starts or layout.join_prompt else ""
    cluster = row[layout.cluster] if layout.cluster else cue if layout.prompt else None
    groups = tuple(
        Group(axis, value) for axis, column in layout.groups.items() if (value := (row[column] or "").strip())
    )
    strata = {column: value for column in layout.strata if (value := (row[column] or "").strip())}
    prompt = Prompt.create(
        name,
        start,
        groups=groups,
        cluster=cluster or f"row {number}",
        mentions=tuple(_mentions(row[layout.mentions] if layout.mentions else None)),
        # Meta is not part of a prompt's id, and texts of one prompt may be in several strata.
        source=canonical_json(strata) if strata else "",
        meta=({"cue": cue} if cue and not start else {}) | strata,
    )
    return prompt, text[len(cue) :] if starts and text else text


def _mentions(cell: str | None) -> Iterator[Mention]:
    """The words to mask: a JSON list of words or objects, or words separated by semicolons."""
    if not cell:
        return
    words: object = None
    if cell.startswith("["):
        with suppress(json.JSONDecodeError):
            words = json.loads(cell)
    listed = words if isinstance(words, list) else cell.split(";")
    yield from (mention for word in listed if (mention := parse_mention(word)).text)


def parse_mention(word: object) -> Mention:
    """A word, or an object that also says how it is masked, as in tasks made from a suite."""
    if not isinstance(word, Mapping):
        return Mention(str(word).strip())
    mask: Mask = "Person" if word.get("mask") == "Person" else "XYZ"
    return Mention(
        str(word.get("text") or "").strip(), mask=mask, whole_word=bool(word.get("whole_word", True))
    )
