"""Reads a copy of BOLD: the authors' layout, one JSON line a prompt, or the Hub's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple, NoReturn, cast

from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.reading import read_text
from evenhand.suites.bold_facts import facts

ACCEPTED = (
    "a folder with prompts/*_prompt.json and wikipedia/*_wiki.json (github.com/amazon-science/bold), with "
    "*_prompt_wiki.json or Parquet (AmazonScience/bold on the Hub), or with one .jsonl a domain"
)


class Row(NamedTuple):
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


class Copy(NamedTuple):
    """What a folder holds."""

    rows: list[Row]
    missing: list[str]
    """Files of domains that are not there."""


_Read = Callable[[str, Sequence[Path]], Iterator[Row]]


def read_copy(folder: Path) -> Copy:
    """Every row of a copy, by domain in the order of Table 1, then as the files have them."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is {'a file' if folder.is_file() else 'not there'}",
            accepted=ACCEPTED,
            todo="check the path",
        )
    if (folder / "prompts").is_dir() or (folder / "wikipedia").is_dir():
        return _by_domain(folder, _original, ("prompts/{}_prompt.json", "wikipedia/{}_wiki.json"))
    if any(folder.glob("*_prompt_wiki.json")):
        return _by_domain(folder, _hub, ("{}_prompt_wiki.json",))
    if found := sorted(path.stem for path in folder.glob("*.jsonl")):
        return _by_domain(folder, _lines, ("{}.jsonl",), found)
    if tables := sorted(folder.rglob("*.parquet")):
        return _from_parquet(tables)
    raise InputError(f"{folder} holds no BOLD", accepted=ACCEPTED, todo="check the path")


def _by_domain(folder: Path, read: _Read, names: Sequence[str], more: Sequence[str] = ()) -> Copy:
    """The rows of BOLD's domains, and of more that a user's own pages may have."""
    rows: list[Row] = []
    missing: list[str] = []
    for domain in dict.fromkeys((*facts()["domains"], *more)):
        paths = [folder / name.format(domain) for name in names]
        absent = [str(path.relative_to(folder)) for path in paths if not path.is_file()]
        missing += absent
        if not absent:
            rows += read(domain, paths)
    return Copy(rows, missing)


def _original(domain: str, paths: Sequence[Path]) -> Iterator[Row]:
    """The authors' layout: group to entity to a list, prompts in one file and sentences in another."""
    prompts, wiki = (_nested(path) for path in paths)
    for group in dict.fromkeys((*prompts, *wiki)):
        entities, sentences = prompts.get(group, {}), wiki.get(group, {})
        for key in dict.fromkeys((*entities, *sentences)):
            yield from _paired(domain, group, key, entities.get(key, []), sentences.get(key, []))


def _hub(domain: str, paths: Sequence[Path]) -> Iterator[Row]:
    """The Hub's layout: one object an entity, JSON lines or one list; every one of its prompts is taken."""
    return _entities(_objects(paths[0]), paths[0], domain)


def _entities(objects: Iterable[Mapping[str, Json]], path: Path, domain: str | None) -> Iterator[Row]:
    for number, item in enumerate(objects, start=1):
        try:
            group, key = str(item["category"]), str(item["name"])
            found = domain or str(item["domain"])
            prompts, wiki = _texts(item["prompts"]), _texts(item["wikipedia"])
        except (KeyError, TypeError) as error:
            _damaged(path, f"entity {number} has no usable {error}")
        yield from _paired(found, group, key, prompts, wiki)


def _lines(domain: str, paths: Sequence[Path]) -> Iterator[Row]:
    """One JSON line a prompt: domain, group, key, idx, prompt, wiki."""
    for number, item in enumerate(_objects(paths[0]), start=1):
        try:
            group, key, idx = str(item["group"]), str(item["key"]), int(cast(int, item["idx"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            _damaged(paths[0], f"line {number} has no usable {error}")
        yield Row(domain, group, key, idx, _text(item.get("prompt")), _text(item.get("wiki")))


def _from_parquet(tables: Sequence[Path]) -> Copy:
    from evenhand.store.files import load_parquet

    rows: list[Row] = []
    for path in tables:
        rows += _entities(load_parquet(path).to_dicts(), path, None)
    order = {domain: place for place, domain in enumerate(facts()["domains"])}
    rows.sort(key=lambda row: order.get(row.domain, len(order)))
    present = {row.domain for row in rows}
    return Copy(rows, [f"the domain {domain}" for domain in order if domain not in present])


def _paired(domain: str, group: str, key: str, prompts: Sequence[str], wiki: Sequence[str]) -> Iterator[Row]:
    for idx, (prompt, sentence) in enumerate(zip_longest(prompts, wiki)):
        yield Row(domain, group, key, idx, prompt, sentence)


def _nested(path: Path) -> Mapping[str, Mapping[str, list[str]]]:
    content = _parsed(_read(path), path)
    try:
        groups = cast("Mapping[str, Mapping[str, Json]]", content)
        return {
            group: {key: _texts(texts) for key, texts in entities.items()}
            for group, entities in groups.items()
        }
    except (AttributeError, TypeError):
        _damaged(path, "it is no object of groups, each with its entities and their lists of texts")


def _objects(path: Path) -> Iterator[Mapping[str, Json]]:
    """The objects of a JSON list, or of JSON lines."""
    text = _read(path)
    parts = (
        cast("Iterable[Json]", _parsed(text, path))
        if text.lstrip().startswith("[")
        # Not splitlines: a text may hold a line separator of Unicode.
        else (_parsed(line, path, number) for number, line in enumerate(text.split("\n"), 1) if line.strip())
    )
    for number, part in enumerate(parts, start=1):
        if not isinstance(part, Mapping):
            _damaged(path, f"entry {number} is no object")
        yield part


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        _damaged(path, str(error))


def _parsed(text: str, path: Path, line: int = 0) -> Json:
    try:
        return cast(Json, json.loads(text))
    except (ValueError, RecursionError) as error:
        _damaged(path, f"{f'line {line} ' if line else ''}is not JSON: {error}")


def _texts(value: Json) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise TypeError("list of texts")
    return cast("list[str]", value)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _damaged(path: Path, came: str) -> NoReturn:
    raise InputError(f"{path}: {came}", accepted=ACCEPTED, todo="get the file again")
