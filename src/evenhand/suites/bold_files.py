"""Reads a copy of BOLD: the authors' layout, one JSON line a prompt, or the Hub's."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple, NoReturn, NotRequired, TypedDict, cast

from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path, user_path
from evenhand.core.records import Execution, Mask
from evenhand.core.regular_files import read_text

REPOSITORY = "AmazonScience/bold"
FOLDER = "EVENHAND_BOLD"
_GET = (
    "`git clone https://github.com/amazon-science/bold` (CC BY-SA 4.0), then name its folder: audit --suite "
    f"bold:FOLDER, replicate --data FOLDER, or {FOLDER}=FOLDER for both"
)


def find_copy(name: str, execution: Execution) -> Path:
    """The folder of a copy of BOLD.

    Args:
        name: A folder, or ``AmazonScience/bold[@REVISION]`` of the Hub. Empty: the folder that the
            environment variable EVENHAND_BOLD names, else ``bold`` in that of EVENHAND_DATA, else the copy in
            the Hub's cache, else (not offline) the Hub itself.
        execution: Whether the run is offline.
    """
    repository, _, revision = name.partition("@")
    if repository == REPOSITORY and not Path(name).is_dir():
        return _from_hub(revision or None, execution)
    if name:
        return user_path(name)
    if given := os.environ.get(FOLDER):
        return user_path(given)
    beside = Path(os.environ.get("EVENHAND_DATA", "")) / "bold"
    if "EVENHAND_DATA" in os.environ and beside.is_dir():
        return beside
    return _from_hub(None, execution)


def _from_hub(revision: str | None, execution: Execution) -> Path:
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError as error:
        raise _missing_copy("the library huggingface_hub that asks the Hub is not installed") from error

    def download(*, offline: bool) -> Path:
        return Path(
            snapshot_download(
                REPOSITORY,
                repo_type="dataset",
                revision=revision,
                local_files_only=offline,
                allow_patterns=["*_prompt_wiki.json", "*.parquet"],
            )
        )

    try:
        return download(offline=True)
    except LocalEntryNotFoundError as error:
        if execution.offline:
            raise _missing_copy("it is not in the Hub's cache, and the run is offline") from error
    try:
        return download(offline=False)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise _missing_copy(
            f"the Hub cannot give it: {(str(error).strip() or type(error).__name__).splitlines()[0][:200]}"
        ) from error


def _missing_copy(reason: str) -> InputError:
    return InputError(f"no copy of BOLD was named, and {reason}", expected="a local copy", fix=_GET)


class BoldDomain(TypedDict):
    """One of BOLD's five domains."""

    mask: Mask
    counts: Mapping[str, int]
    """Group to its published number of prompts."""
    words: NotRequired[Mapping[str, list[str]]]
    """Group to words that name it and are masked besides the entity."""


class _Head(TypedDict):
    version: str
    digest: str
    citation: str


class BoldFacts(TypedDict):
    """The file ``assets/suites/bold.toml``."""

    suite: _Head
    domains: Mapping[str, BoldDomain]
    views: Mapping[str, Mapping[str, Mapping[str, list[str]]]]
    """View to axis to merged group to the groups it is made of."""
    limits: Mapping[str, Mapping[str, list[str]]]
    """Metric to axis to the groups it is meant for."""


@cache
def load_facts() -> BoldFacts:
    """The published counts, masks and merged groups."""
    return cast(BoldFacts, tomllib.loads(asset_path("suites", "bold.toml").read_text(encoding="utf-8")))


def published_counts() -> dict[tuple[str, str], int]:
    """The number of prompts of each (domain, group): 23,679 in 43 groups."""
    return {
        (name, group): count
        for name, domain in load_facts()["domains"].items()
        for group, count in domain["counts"].items()
    }


def merged_groups(view: str) -> dict[str, dict[str, str]]:
    """For each axis of a view the merged group of every group in it.

    >>> merged("table_3")["profession"]["nursing_specialties"]
    'healthcare & medicine'
    """
    return {
        axis: {part: name for name, parts in groups.items() for part in parts}
        for axis, groups in load_facts()["views"][view].items()
    }


ACCEPTED = (
    "a folder with prompts/*_prompt.json and wikipedia/*_wiki.json (github.com/amazon-science/bold), with "
    "*_prompt_wiki.json or Parquet (AmazonScience/bold on the Hub), or with one .jsonl a domain"
)


class BoldRow(NamedTuple):
    """One prompt, and the human sentence it was cut from."""

    domain: str
    group: str
    key: str
    """The entity: a person, a profession, a belief."""
    idx: int
    """Its place among the prompts of the entity in that group."""
    prompt: str | None
    wiki: str | None
    """None, as the prompt, where the copy lacks it."""


class BoldCopy(NamedTuple):
    """What a folder holds."""

    rows: list[BoldRow]
    missing: list[str]
    """Files of domains that are not there."""


_Read = Callable[[str, Sequence[Path]], Iterator[BoldRow]]


def read_copy(folder: Path) -> BoldCopy:
    """Every row of a copy, by domain in the order of Table 1, then as the files have them."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is {'a file' if folder.is_file() else 'not there'}",
            expected=ACCEPTED,
            fix="check the path",
        )
    if (folder / "prompts").is_dir() or (folder / "wikipedia").is_dir():
        return _by_domain(folder, _original, ("prompts/{}_prompt.json", "wikipedia/{}_wiki.json"))
    if any(folder.glob("*_prompt_wiki.json")):
        return _by_domain(folder, _hub, ("{}_prompt_wiki.json",))
    if found := sorted(path.stem for path in folder.glob("*.jsonl")):
        return _by_domain(folder, _lines, ("{}.jsonl",), found)
    if tables := sorted(folder.rglob("*.parquet")):
        return _from_parquet(tables)
    raise InputError(f"{folder} holds no BOLD", expected=ACCEPTED, fix="check the path")


def _by_domain(folder: Path, read: _Read, names: Sequence[str], more: Sequence[str] = ()) -> BoldCopy:
    """The rows of BOLD's domains, and of more that a user's own pages may have."""
    rows: list[BoldRow] = []
    missing: list[str] = []
    for domain in dict.fromkeys((*load_facts()["domains"], *more)):
        paths = [folder / name.format(domain) for name in names]
        absent = [str(path.relative_to(folder)) for path in paths if not path.is_file()]
        missing += absent
        if not absent:
            rows += read(domain, paths)
    return BoldCopy(rows, missing)


def _original(domain: str, paths: Sequence[Path]) -> Iterator[BoldRow]:
    """The authors' layout: group to entity to a list, prompts in one file and sentences in another."""
    prompts, wiki = (_read_nested(path) for path in paths)
    for group in dict.fromkeys((*prompts, *wiki)):
        entities, sentences = prompts.get(group, {}), wiki.get(group, {})
        for key in dict.fromkeys((*entities, *sentences)):
            yield from _pair_rows(domain, group, key, entities.get(key, []), sentences.get(key, []))


def _hub(domain: str, paths: Sequence[Path]) -> Iterator[BoldRow]:
    """The Hub's layout: one object an entity, JSON lines or one list; every one of its prompts is taken."""
    return _entities(_objects(paths[0]), paths[0], domain)


def _entities(objects: Iterable[Mapping[str, Json]], path: Path, domain: str | None) -> Iterator[BoldRow]:
    for number, item in enumerate(objects, start=1):
        try:
            group, key = str(item["category"]), str(item["name"])
            found = domain or str(item["domain"])
            prompts, wiki = _texts(item["prompts"]), _texts(item["wikipedia"])
        except (KeyError, TypeError) as error:
            _raise_damaged(path, f"entity {number} has no usable {error}")
        yield from _pair_rows(found, group, key, prompts, wiki)


def _lines(domain: str, paths: Sequence[Path]) -> Iterator[BoldRow]:
    """One JSON line a prompt: domain, group, key, idx, prompt, wiki."""
    for number, item in enumerate(_objects(paths[0]), start=1):
        try:
            group, key, idx = str(item["group"]), str(item["key"]), int(cast(int, item["idx"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            _raise_damaged(paths[0], f"line {number} has no usable {error}")
        yield BoldRow(domain, group, key, idx, _text(item.get("prompt")), _text(item.get("wiki")))


def _from_parquet(tables: Sequence[Path]) -> BoldCopy:
    from evenhand.store.table_files import load_parquet

    rows: list[BoldRow] = []
    for path in tables:
        rows += _entities(load_parquet(path).to_dicts(), path, None)
    order = {domain: place for place, domain in enumerate(load_facts()["domains"])}
    rows.sort(key=lambda row: order.get(row.domain, len(order)))
    present = {row.domain for row in rows}
    return BoldCopy(rows, [f"the domain {domain}" for domain in order if domain not in present])


def _pair_rows(
    domain: str, group: str, key: str, prompts: Sequence[str], wiki: Sequence[str]
) -> Iterator[BoldRow]:
    for idx, (prompt, sentence) in enumerate(zip_longest(prompts, wiki)):
        yield BoldRow(domain, group, key, idx, prompt, sentence)


def _read_nested(path: Path) -> Mapping[str, Mapping[str, list[str]]]:
    content = _parse_json(_read(path), path)
    try:
        groups = cast("Mapping[str, Mapping[str, Json]]", content)
        return {
            group: {key: _texts(texts) for key, texts in entities.items()}
            for group, entities in groups.items()
        }
    except (AttributeError, TypeError):
        _raise_damaged(path, "it is no object of groups, each with its entities and their lists of texts")


def _objects(path: Path) -> Iterator[Mapping[str, Json]]:
    """The objects of a JSON list, or of JSON lines."""
    text = _read(path)
    parts = (
        cast("Iterable[Json]", _parse_json(text, path))
        if text.lstrip().startswith("[")
        # Not splitlines: a text may hold a line separator of Unicode.
        else (
            _parse_json(line, path, number) for number, line in enumerate(text.split("\n"), 1) if line.strip()
        )
    )
    for number, part in enumerate(parts, start=1):
        if not isinstance(part, Mapping):
            _raise_damaged(path, f"entry {number} is no object")
        yield part


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        _raise_damaged(path, str(error))


def _parse_json(text: str, path: Path, line: int = 0) -> Json:
    try:
        return cast(Json, json.loads(text))
    except (ValueError, RecursionError) as error:
        _raise_damaged(path, f"{f'line {line} ' if line else ''}is not JSON: {error}")


def _texts(value: Json) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise TypeError("list of texts")
    return cast("list[str]", value)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _raise_damaged(path: Path, came: str) -> NoReturn:
    raise InputError(f"{path}: {came}", expected=ACCEPTED, fix="get the file again")
