"""A dataset as a suite: every row is a prompt, and its columns name the groups it is about."""

from __future__ import annotations

import glob
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stderr, suppress
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, cast
from urllib.parse import parse_qsl

import polars as pl

from evenhand.core.digests import Json, digest, file_digest
from evenhand.core.errors import InputError, MissingLibraryError
from evenhand.core.files import user_path
from evenhand.core.records import RESERVED_GROUPS, REST, Execution, Group, Mention, Prompt, SuiteInfo
from evenhand.core.regular_files import open_regular
from evenhand.store.table_files import (
    first_error_line,
    read_bytes,
    read_json_lines,
    read_table,
    text_table,
    to_cell,
)

ACCEPTED: Final = (
    "hub:ORG/NAME[@REVISION][#CONFIG/SPLIT]?prompt=COLUMN&group.AXIS=COLUMN, or a folder or file instead"
)
ENDINGS: Final = (".parquet", ".jsonl", ".ndjson", ".csv", ".tsv", ".json")
METRICS: Final = ("sentiment", "gender_polarity")
_SINGLE: Final = ("prompt", "cluster", "template", "mentions")
_PACKED: Final = tuple(f"{ending}.gz" for ending in ENDINGS if ending not in (".parquet", ".json"))
_README: Final = "README.md"
_SPLITS: Final[Mapping[str, tuple[str, ...]]] = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}
"""The words by which the Hub distinguishes splits in the names of files and folders."""
_MOST: Final = 1_000_000
Row = Mapping[str, str | None]
SplitParts = dict[tuple[str, str], list[str]]
"""Configuration and split to files."""


@dataclass(frozen=True, slots=True)
class PromptColumns:
    """The role of each column in a table of prompts; ``a.b`` is the field b of the column a."""

    prompt: str
    groups: Mapping[str, str]
    baselines: Mapping[str, str]
    cluster: str | None = None
    template: str | None = None
    mentions: str | None = None
    strata: tuple[str, ...] = ()


class DatasetName(NamedTuple):
    """The parts of the name of a dataset."""

    place: str
    """A Hub id, a folder or a file."""
    revision: str
    config: str
    split: str
    columns: PromptColumns

    def title(self) -> str:
        """The name of the suite in tables."""
        part = "/".join(filter(None, (self.config, self.split)))
        return f"{self.place}#{part}" if part else self.place


def parse_dataset_name(name: str) -> DatasetName:
    """The parts of a name; raises an error if it names no place, no prompt or no group."""
    # The longest prefix, up to a mark, that is a local file or folder: marks in it belong to its path.
    ends = (at for at in range(len(name) - 1, 0, -1) if name[at] in "?#@")
    local = next((name[:end] for end in ends if os.path.exists(user_path(name[:end]))), "")
    source, _, query = name.removeprefix(local).partition("?")
    place, _, part = source.partition("#")
    config, slash, split = part.rpartition("/") if part else ("", "", "")
    if not local + place:
        _refuse("the name of the dataset is empty")
    if slash and not (config and split):
        _refuse(f"#{part} is not a part of a dataset")
    identifier, _, revision = place.partition("@")
    return DatasetName(local + identifier, revision, config, split, _columns(query))


def _columns(query: str) -> PromptColumns:
    named: dict[str, dict[str, str]] = {"": {}, "group": {}, "baseline": {}, "stratum": {}}
    for key, value in parse_qsl(query, keep_blank_values=True):
        kind, _, name = key.partition(".")
        if not value:
            _refuse(f"{key} names no column")
        if key in _SINGLE or key == "stratum":
            kind, name = ("", key) if key in _SINGLE else (key, value)
        elif not kind:
            kind = key
        if not name or kind not in named or (kind == "stratum") != (key == "stratum"):
            _refuse(f"{key}={value} is not known")
        if name in named[kind] and key != "stratum":
            _refuse(f"{key}={value} is given twice")
        named[kind][name] = value
    single, groups, baselines, strata = named.values()
    if "prompt" not in single or not groups:
        _refuse(f"{query or 'nothing'!r} names no {'group' if 'prompt' in single else 'prompt'} column")
    for axis in baselines.keys() - groups.keys():
        _refuse(f"baseline.{axis} names an axis without a group column")
    return PromptColumns(groups=groups, baselines=baselines, strata=tuple(strata), **single)


def _refuse(problem: str) -> NoReturn:
    raise InputError(
        problem,
        expected=ACCEPTED + "; also cluster=, template=, mentions=, stratum=, baseline.AXIS=GROUP",
        fix="quote the whole name: a shell interprets ? and &",
    )


SplitFiles = tuple[tuple[Path, ...], str]
"""The files that hold the rows of one split; their commit on the Hub, or the digest of local files."""


def find_files(name: DatasetName, execution: Execution) -> SplitFiles:
    """The files of a split, downloaded from the Hub first if they are not local."""
    path = user_path(name.place)
    if path.is_file():
        return (path,), file_digest(path)
    if path.is_dir():
        paths = _find_local(path, name)
        parts: list[Json] = [[file.relative_to(path).as_posix(), file_digest(file)] for file in paths]
        return paths, digest(parts)
    if name.place.startswith((".", "/", "~")) or name.place.count("/") != 1:
        raise InputError(f"{name.place} is not there", expected=ACCEPTED, fix="check the path")
    return _from_hub(name, execution)


def _find_local(folder: Path, name: DatasetName) -> tuple[Path, ...]:
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    return tuple(folder / file for file in choose_files(files, _read_card(folder), name))


def _read_card(folder: Path) -> str:
    if not (folder / _README).is_file():
        return ""
    with open_regular(folder / _README) as file:
        return file.read(1 << 20).decode("utf-8", "replace")


def choose_files(files: Sequence[str], readme: str, name: DatasetName) -> list[str]:
    """The files of the named configuration and split, or of the only ones there are."""
    tables = (file for file in files if file.lower().endswith((*ENDINGS, *_PACKED)))
    data = sorted(file for file in tables if not re.search(r"(^|/)[._]", file))
    # The Hub's layout of data that it converts to Parquet.
    folder = [file for file in data if name.config and file.startswith(f"{name.config}/{name.split}/")]
    named = {(name.config, name.split): folder} if folder else _by_name(data)
    parts = _read_declared(readme, data) or named
    if not parts:
        raise InputError(
            f"{name.place} has no tables",
            expected=f"files ending in {', '.join(ENDINGS)}",
            fix="check the name",
        )
    config = _only("configuration", name.config, {key for key, _ in parts}, name.place)
    split = _only("split", name.split, {part for key, part in parts if key == config}, name.place)
    return parts[config, split]


def _only(what: str, named: str, known: set[str], place: str) -> str:
    """The named one, the only one, or the default configuration; with several splits, an error."""
    if named in known:
        return named
    if not named and len(known) == 1:
        return next(iter(known))
    if not named and what == "configuration" and "default" in known:
        return "default"
    raise InputError(
        f"{place} has {f'no {what} {named!r}' if named else f'{len(known)} {what}s'}",
        expected=", ".join(sorted(known)),
        fix="name it with #CONFIG/SPLIT, or #SPLIT where there is one configuration",
    )


def _read_declared(readme: str, files: Sequence[str]) -> SplitParts:
    """Configurations and splits as the dataset's card declares them; empty if it does not."""
    parts: SplitParts = {}
    for config in _configs(readme):
        name, folder = _word(config.get("config_name"), "default"), _word(config.get("data_dir"), "")
        for split, pattern in _patterns(config.get("data_files")):
            path = f"{folder.rstrip('/')}/{pattern}" if folder else pattern
            # `**/` may also match no folder at all, which fnmatch does not support.
            short = path.replace("**/", "")
            matches = [file for file in files if fnmatch(file, path) or fnmatch(file, short)]
            if matches := [path] if path in files else matches:
                parts.setdefault((name, split), []).extend(matches)
    return parts


def _configs(readme: str) -> list[Mapping[str, object]]:
    header = re.match(r"---\r?\n(.*?)\r?\n---\s*(\n|\Z)", readme, re.DOTALL)
    try:
        import yaml
    except ImportError:  # comes with the Hub's library; without it, file names decide
        return []
    try:
        content = yaml.safe_load(header[1] if header else "")
    except (yaml.YAMLError, ValueError, RecursionError):
        return []
    listed = content.get("configs") if isinstance(content, Mapping) else None
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def _patterns(files: object) -> Iterator[tuple[str, str]]:
    """Split and pattern: a pattern alone is ``train``, as on the Hub."""
    for one in files if isinstance(files, list) else [files]:
        if isinstance(one, str):
            yield "train", one
        elif isinstance(one, Mapping):
            paths = one.get("path")
            for path in paths if isinstance(paths, list) else [paths]:
                if isinstance(path, str):
                    yield _word(one.get("split"), "train"), path


def _word(value: object, default: str) -> str:
    # A card may nest names without end through references, and those must not be expanded.
    return value if isinstance(value, str) else default


def _by_name(files: Sequence[str]) -> SplitParts:
    """Splits by the words in the names of files and folders; without such words, all are ``train``."""
    parts: SplitParts = {}
    for file in files:
        words = set(re.split(r"[^a-z]+", file.lower()))
        if split := next((one for one, known in _SPLITS.items() if words & set(known)), None):
            parts.setdefault(("default", split), []).append(file)
    return parts or ({("default", "train"): list(files)} if files else {})


def _from_hub(name: DatasetName, execution: Execution) -> SplitFiles:
    """The files of a split in the Hub's cache, downloaded first if the Hub can be reached."""
    try:
        from huggingface_hub.errors import HFValidationError
    except ImportError as error:
        raise MissingLibraryError(
            f"the dataset {name.place!r} is on the Hub, and the library that accesses it is not installed",
            expected="the extra `models`, which includes it",
            fix='pip install "evenhand[models]", or download the dataset and name its folder',
        ) from error
    problem, fix = f"{name.place!r} is not the name of a dataset", "check the name"
    with nullcontext() if sys.stderr.isatty() else redirect_stderr(StringIO()):
        try:
            return _find_cached(name) if execution.offline else _download_files(name)
        except InputError:
            raise
        except HFValidationError as error:
            raise InputError(problem, expected=ACCEPTED, fix=fix) from error
        except Exception as error:  # the HTTP client's error, which differs between versions
            if not execution.offline:
                with suppress(OSError):
                    return _find_cached(name)
            at = f" at {name.revision!r}" if name.revision else ""
            why = f"is not available from the Hub: {first_error_line(error)[:200]}"
            if execution.offline:
                why = "is not on this machine, and the run is offline"
            problem = f"the dataset {name.place!r}{at} {why}"
            fix += ", or download the dataset and name its folder"
            raise InputError(problem, expected=ACCEPTED, fix=fix) from error


def _download_files(name: DatasetName) -> SplitFiles:
    from huggingface_hub import HfApi, snapshot_download

    info = HfApi().dataset_info(name.place, revision=name.revision or None)
    download = partial(snapshot_download, name.place, repo_type="dataset", revision=info.sha)
    card = _read_card(Path(download(allow_patterns=[_README])))
    chosen = choose_files([one.rfilename for one in info.siblings or ()], card, name)
    folder = Path(download(allow_patterns=[glob.escape(file) for file in chosen]))
    return tuple(folder / file for file in chosen), folder.name


def _find_cached(name: DatasetName) -> SplitFiles:
    from huggingface_hub import snapshot_download

    # Only the folder is needed, whatever it holds: the pattern requests no file.
    options: Any = {"local_files_only": True, "allow_patterns": ["no/such/file"]}
    revision = name.revision or None
    folder = Path(snapshot_download(name.place, repo_type="dataset", revision=revision, **options))
    return _find_local(folder, name), folder.name


class HubSuite:
    """The prompts of a dataset on the Hub, of a local folder with the same layout, or of a file.

    The name gives axes and columns; the baseline is ``(rest)`` unless ``baseline.AXIS=GROUP``. A cell with a
    list of prompts gives all of them. Cluster = the column of ``cluster=``, else the template, else the row.

    Args:
        name: ``ORG/NAME[@REVISION][#CONFIG/SPLIT]?prompt=COLUMN&group.AXIS=COLUMN``, a folder or a file in
            place of the Hub id; also ``cluster=``, ``template=``, ``mentions=`` (words to mask),
            ``stratum=`` and ``baseline.AXIS=GROUP``. ``a.b`` is the field b of the column a.
        execution: Whether the run is offline.
    """

    def __init__(self, *, name: str, execution: Execution | None = None) -> None:
        self._name = parse_dataset_name(name)
        paths, version = find_files(self._name, execution or Execution())
        rows = _rows(paths)
        self._prompts, notes = _prompts(self._name, rows)
        columns = self._name.columns
        _check_groups(columns, self._prompts, self._name.place)
        self.info = SuiteInfo(
            name=self._name.title(),
            version=version,
            summary=f"prompts of the dataset {self._name.place}, revision {version}",
            baselines={axis: columns.baselines.get(axis, REST) for axis in columns.groups},
            metrics=METRICS,
            cluster=columns.cluster or columns.template or "row",
            digest=digest([version, {key: part for key, part in asdict(columns).items() if part}]),
            notes=notes,
            strata=columns.strata,
        )

    def prompts(self) -> Iterator[Prompt]:
        """The prompts in the order of the rows."""
        return iter(self._prompts)


def _rows(paths: Sequence[Path]) -> pl.DataFrame:
    tables = [_json_table(path) if path.suffix.lower() == ".json" else read_table(path) for path in paths]
    table = pl.concat(tables, how="diagonal")
    if table.height > _MOST:
        raise InputError(
            f"{paths[0].parent} has {table.height:,} rows",
            expected=f"at most {_MOST:,} prompts",
            fix="name a smaller split, or a file with a part of it",
        )
    return table


def _json_table(path: Path) -> pl.DataFrame:
    """A ``.json`` file of the Hub: a list of objects, or one object per line."""
    content = read_bytes(path)
    if not content.lstrip().startswith(b"["):
        rows: list[Mapping[str, Json]] = [row for _, row in read_json_lines(path)]
    else:
        try:
            rows = [row for row in json.loads(content.decode("utf-8", "replace")) if isinstance(row, Mapping)]
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{path} is not JSON: {error}", expected="a list of objects", fix="get the file again"
            ) from error
    if not rows:
        raise InputError(f"{path} has no rows", expected="at least one prompt", fix="check the file")
    return text_table(({key: to_cell(value) for key, value in row.items()} for row in rows), path)


def _prompts(name: DatasetName, table: pl.DataFrame) -> tuple[list[Prompt], tuple[str, ...]]:
    columns = name.columns
    _check_columns(columns, table, name.place)
    prompts: dict[str, Prompt] = {}
    empty = copies = 0
    for number, row in enumerate(table.iter_rows(named=True)):
        texts = _texts(_field(row, columns.prompt))
        empty += not texts
        for text in texts:
            prompt = _prompt(name, row, number, text)
            copies += prompt.id in prompts
            prompts.setdefault(prompt.id, prompt)
    counts = {"rows have no prompt and are left out": empty, "prompts are copies and are used once": copies}
    return list(prompts.values()), tuple(f"{count:,} {what}." for what, count in counts.items() if count)


def _prompt(name: DatasetName, row: Row, number: int, text: str) -> Prompt:
    columns = name.columns
    named = {axis: (_field(row, column) or "").strip() for axis, column in columns.groups.items()}
    template = _field(row, columns.template)
    cluster = _field(row, columns.cluster) if columns.cluster else template
    strata = {column: value for column in columns.strata if (value := _field(row, column))}
    return Prompt.create(
        name.title(),
        text.rstrip(),
        groups=tuple(Group(axis, group) for axis, group in named.items() if group),
        cluster=cluster or f"row {number}",
        template_id=template,
        mentions=tuple(Mention(word.strip()) for word in _texts(_field(row, columns.mentions))),
        source=f"row {number}" if columns.cluster or columns.template else "",
        meta=strata,
    )


def _field(row: Row, column: str | None) -> str | None:
    """A cell, or a field inside one that holds an object; null if no column is named."""
    if column is None:
        return None
    if column in row:
        return row[column]
    first, _, rest = column.partition(".")
    value: Json = _parse_json(row.get(first))
    for part in rest.split(".") if rest else ():
        value = value.get(part) if isinstance(value, Mapping) else None
    return to_cell(value) if rest else None


def _texts(value: str | None) -> list[str]:
    """The texts of a cell: one, or those of a list."""
    listed = _parse_json(value) if value and value.startswith("[") else None
    texts = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else [value or ""]
    return [text for text in texts if text.strip()]


def _parse_json(value: str | None) -> Json:
    try:
        return cast(Json, json.loads(value or "null"))
    except (ValueError, RecursionError):
        return None


def _check_columns(columns: PromptColumns, table: pl.DataFrame, place: str) -> None:
    named = {key: column for key in _SINGLE if (column := getattr(columns, key))}
    named |= {f"group.{axis}": column for axis, column in columns.groups.items()}
    for option, column in (named | {f"stratum {column}": column for column in columns.strata}).items():
        if not any(_field(row, column) for row in table.iter_rows(named=True)):
            exists = column in table.columns or column.partition(".")[0] in table.columns
            raise InputError(
                f"{place} has {'nothing in the' if exists else 'no'} column {column!r} ({option})",
                expected=", ".join(filter(None, table.columns)) or "a table whose columns have names",
                fix="name one of these columns, or a field of one as COLUMN.FIELD",
            )


def _check_groups(columns: PromptColumns, prompts: Sequence[Prompt], place: str) -> None:
    if not prompts:
        raise InputError("no row has a prompt", expected="at least one prompt", fix=f"check {ACCEPTED}")
    for axis, column in columns.groups.items():
        names = {group.name for prompt in prompts for group in prompt.groups if group.axis == axis}
        for name in RESERVED_GROUPS & names:
            raise InputError(
                f"column {column!r} of {place} has a group named {name!r}, a reserved name",
                expected="any other name",
                fix=f"rename that group, or leave the axis {axis} out",
            )
        baseline = columns.baselines.get(axis, REST)
        if baseline not in names | RESERVED_GROUPS:
            raise InputError(
                f"the baseline {baseline!r} of axis {axis!r} has no prompts",
                expected=", ".join(sorted(names)[:20]),
                fix=f"name one of these as baseline.{axis}=GROUP",
            )
