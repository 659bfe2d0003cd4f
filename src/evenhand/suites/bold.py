"""The BOLD suite: 23,679 prompts about five domains, with the Wikipedia sentences they were cut from.

A copy is read in the authors' layout, in the Hub's, or with one JSON line per prompt.
"""

from __future__ import annotations

import json
import logging
import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, cast

from pydantic import TypeAdapter, ValidationError

from evenhand.core.digests import Json, digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path, user_path
from evenhand.core.records import REST, Execution, GenerationSpec, Group, Mention, Prompt, SuiteInfo
from evenhand.core.regular_files import read_text
from evenhand.store.table_files import first_error_line, load_parquet, read_json_lines
from evenhand.suites.starter import BASELINES, EXPLORATORY

HUMAN: Final = "WIKI"
"""The name of the Wikipedia sentences in tables, as in the paper."""
METRICS: Final = ("sentiment", "toxicity", "regard", "norms", "gender_polarity")
SPEC: Final = GenerationSpec(samples=1, stop="none")
"""One text per prompt, not cut (section 5); the sampling is GPT-2's of A.2.2, the length is our own."""
NOTES: Final = (
    "Wikipedia's sentences are not a fair baseline: some kinds of people write far more of it than others, "
    "and its texts have gaps of their own (BOLD, section 7).",
    "Fascism is included to see how models write about extreme ideas: negative texts about it are no sign "
    "of bias (BOLD, section 3.1).",
    "Gender is binary here, and race as in US statistics; Hinduism has 12 prompts, atheism 29.",
    "Names of people are masked as Person, professions, beliefs and ideologies as XYZ (BOLD, section 3.3); a "
    "first name or surname alone stays, as in the paper.",
)
REPOSITORY: Final = "AmazonScience/bold"
_HUB_FILES: Final = ("*_prompt_wiki.json", "*.parquet")
FOLDER: Final = "EVENHAND_BOLD"
ACCEPTED: Final = (
    "a folder with prompts/*_prompt.json and wikipedia/*_wiki.json (github.com/amazon-science/bold), with "
    "*_prompt_wiki.json or Parquet (AmazonScience/bold on the Hub), or with one .jsonl per domain"
)
_GET: Final = (
    "`git clone https://github.com/amazon-science/bold` (CC BY-SA 4.0), then name its folder: audit --suite "
    f"bold:FOLDER, replicate --data FOLDER, or {FOLDER}=FOLDER for both"
)
_LOG = logging.getLogger(__name__)


class BoldSuite:
    """BOLD as published: axis = domain, group = the file's spelling, cluster = (domain, entity).

    An entity that occurs in two groups is one cluster, resampled jointly: 7,133 clusters in all. A prompt's
    text is the published one without trailing white space. Five are empty, as published: there the model
    starts from nothing. Loading checks the number of prompts of every group, that each prompt begins its
    sentence, and whether the texts equal the published ones exactly.

    Args:
        name: The folder of a copy, or ``AmazonScience/bold[@REVISION]``; see `find_copy`. On the command line
            ``--suite bold:FOLDER``.
        subset: True accepts any part of BOLD, or other prompts in its layout, unchanged; the suite is then
            called ``bold-subset``.
        view: ``table_3`` keeps the professions of Table 3, merged into its four groups; the suite is then
            called ``bold-table-3``.
        execution: Whether the run is offline.
    """

    def __init__(
        self,
        *,
        name: str = "",
        subset: bool = False,
        view: str | None = None,
        execution: Execution | None = None,
    ) -> None:
        views = load_facts()["views"]
        if view is not None and view not in views:
            raise InputError(f"BOLD has no view {view!r}", expected=", ".join(views), fix="use one of these")
        folder = find_copy(name, execution or Execution())
        rows, warnings = _check_rows(folder, subset=subset)
        texts_digest = content_digest(rows)
        if not subset and texts_digest != load_facts()["suite"]["digest"]:
            warnings.append("the counts are BOLD's, but some texts differ from the published ones")
        for warning in warnings:
            _LOG.warning("%s: %s", folder, warning)
        suite = ("bold-subset" if subset else "bold") + (f"-{view.replace('_', '-')}" if view else "")
        self.info = _describe_suite(suite, texts_digest, view, rows, warnings)
        self._prompts, self._human = _build_prompts(suite, rows, merged_groups(view) if view else None)

    def prompts(self) -> Iterator[Prompt]:
        """The prompts by domain, group and entity."""
        return iter(self._prompts)

    @property
    def human_name(self) -> str:
        """The name of the human texts: WIKI."""
        return HUMAN

    def human_texts(self) -> Mapping[str, str]:
        """Prompt id to the Wikipedia sentence that begins with it: the human baseline."""
        return self._human


def subset(*, name: str = "", execution: Execution | None = None) -> BoldSuite:
    """A part of BOLD, or prompts in its layout: ``--suite bold-subset:FOLDER``. Counts are not checked."""
    return BoldSuite(name=name, subset=True, execution=execution)


def table_3(*, name: str = "", execution: Execution | None = None) -> BoldSuite:
    """BOLD's professions in the four groups of its Table 3: ``--suite bold-table-3:FOLDER``."""
    return BoldSuite(name=name, view="table_3", execution=execution)


def entity_words(key: str) -> str:
    """The words of an entity key: underscores as spaces, words in brackets dropped.

    >>> entity_words("Jack_Smith_(actor)")
    'Jack Smith'
    """
    return re.sub(r"\(.*?\)", "", key.replace("_", " ")).strip()


@lru_cache(maxsize=1 << 14)
def entity_mentions(domain: str, group: str, key: str) -> tuple[Mention, ...]:
    """The words to mask in the texts of an entity (section 3.3).

    A person is masked by full name, as a whole word (61 sentences of BOLD hold it only inside a longer word,
    as "Ted Lieu" in "appointed Lieu"). A profession, belief or ideology is masked inside longer words
    too ("nurses" becomes "XYZs"), as the paper's counts need; so are the words that name its group.
    """
    known = load_facts()["domains"].get(domain, {})
    mask = known.get("mask", "XYZ")
    words = known.get("words", {}).get(group, [])
    own = Mention(entity_words(key), mask=mask, whole_word=mask == "Person")
    return (own, *(Mention(word, mask=mask) for word in words))


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
    """None, like the prompt, if the copy lacks it."""


def content_digest(rows: Sequence[BoldRow]) -> str:
    """The digest of all texts, independent of the order of files and of white space after a prompt."""
    ordered = sorted(rows, key=lambda row: row[:4])
    return digest([[*row[:4], (row.prompt or "").rstrip(), row.wiki] for row in ordered])


def _build_prompts(
    suite: str, rows: Sequence[BoldRow], merged: Mapping[str, Mapping[str, str]] | None
) -> tuple[list[Prompt], dict[str, str]]:
    """The prompts and their human texts; with ``merged`` groups only the groups of that view."""
    prompts: dict[str, Prompt] = {}
    human: dict[str, str] = {}
    for row in rows:
        group = row.group if merged is None else merged.get(row.domain, {}).get(row.group)
        if not group or row.prompt is None:
            continue
        prompt = Prompt.create(
            suite,
            row.prompt.rstrip(),
            groups=(Group(row.domain, group),),
            cluster=f"{row.domain}/{row.key}",
            mentions=entity_mentions(row.domain, row.group, row.key),
            # Some prompts of an entity have the same text: their place distinguishes them.
            source=f"{row.domain}/{row.group}/{row.key}/{row.idx}",
            meta={"group": row.group, "entity": row.key},
        )
        if prompt.id in prompts:
            raise InputError(
                f"the prompt {prompt.source} occurs twice",
                expected="a distinct number, idx, for each prompt of an entity",
                fix="drop one of the two, or number them",
            )
        prompts[prompt.id] = prompt
        if row.wiki is not None:
            human[prompt.id] = row.wiki
    return list(prompts.values()), human


def _check_rows(folder: Path, *, subset: bool) -> tuple[list[BoldRow], list[str]]:
    """The rows of a folder and its faults; faults raise an error unless a subset is requested."""
    rows, missing = read_copy(folder)
    counts = [f"{file} is missing" for file in missing] or find_count_faults(rows)
    faults = find_row_faults(rows)
    if not rows:
        raise InputError(
            f"{folder} has no prompts", expected="at least one domain of BOLD", fix="get the copy again"
        )
    if not subset and (counts or faults):
        raise InputError(
            f"{folder} is not all of BOLD: {_list_first([*counts, *faults])}",
            expected="23,679 prompts in 43 groups, each with its Wikipedia sentence",
            fix=f"get the copy again; `audit --suite bold-subset:{folder}` accepts it as it is",
        )
    groups = len({row[:2] for row in rows})
    count_warning = f"{len(rows):,} prompts in {groups} groups, not BOLD's 23,679 in 43" if counts else ""
    return rows, [warning for warning in (count_warning, _list_first(faults)) if warning]


def _list_first(faults: Sequence[str]) -> str:
    more = f", and {len(faults) - 3:,} more" if len(faults) > 3 else ""
    return "; ".join(faults[:3]) + more


def find_count_faults(rows: Sequence[BoldRow]) -> list[str]:
    """The groups whose number of prompts is not the published one."""
    expected = published_counts()
    counts = Counter((row.domain, row.group) for row in rows if row.prompt is not None)
    return [
        f"{'/'.join(place)} has {counts[place]:,} prompts, not the published {expected.get(place, 0):,}"
        for place in (*expected, *(counts.keys() - expected.keys()))
        if counts[place] != expected.get(place, 0)
    ]


def find_row_faults(rows: Sequence[BoldRow]) -> list[str]:
    """The rows whose sentence is missing or does not begin with its prompt."""
    faults = []
    for row in rows:
        place = f"{row.domain}/{row.group}/{row.key} {row.idx + 1}"
        if row.wiki is None:
            faults.append(f"the prompt {place} has no Wikipedia sentence")
        elif row.prompt is None:
            faults.append(f"the Wikipedia sentence {place} has no prompt")
        elif not row.wiki.startswith(row.prompt.rstrip()):
            faults.append(f"the Wikipedia sentence {place} does not begin with its prompt")
    return faults


def _describe_suite(
    name: str, texts_digest: str, view: str | None, rows: Sequence[BoldRow], warnings: Sequence[str]
) -> SuiteInfo:
    head, limits = load_facts()["suite"], load_facts()["limits"]
    present = {(row.domain, row.group) for row in rows}
    axes = tuple(load_facts()["views"][view]) if view else tuple(dict.fromkeys(row.domain for row in rows))
    return SuiteInfo(
        name=name,
        version=head["version"] + ("" if texts_digest == head["digest"] else "+changed"),
        summary="Beginnings of Wikipedia sentences about people, professions, beliefs and political ideas.",
        baselines={
            axis: BASELINES[axis] if not view and (axis, BASELINES.get(axis)) in present else REST
            for axis in axes
        },
        metrics=tuple(name for name in METRICS if not view or name not in limits),
        cluster="entity",
        citation=head["citation"],
        licence="CC BY-SA 4.0 (the data, which is not shipped)",
        digest=texts_digest,
        notes=(*NOTES, *(f"This copy: {warning}." for warning in warnings)),
        spec=SPEC,
        limits={
            metric: {axis: tuple(groups) for axis, groups in of_axes.items()}
            for metric, of_axes in limits.items()
        },
        exploratory={axis: EXPLORATORY[axis] for axis in axes if axis in EXPLORATORY},
    )


@cache
def load_facts() -> Mapping[str, Any]:
    """The file ``assets/suites/bold.toml``: published counts, masks, merged groups, and limits of metrics."""
    return tomllib.loads(asset_path("suites", "bold.toml").read_text(encoding="utf-8"))


def published_counts() -> dict[tuple[str, str], int]:
    """The number of prompts of each (domain, group): 23,679 in 43 groups."""
    return {
        (name, group): count
        for name, domain in load_facts()["domains"].items()
        for group, count in domain["counts"].items()
    }


def merged_groups(view: str) -> dict[str, dict[str, str]]:
    """For each axis of a view, the merged group of every group in it.

    >>> merged_groups("table_3")["profession"]["nursing_specialties"]
    'healthcare & medicine'
    """
    return {
        axis: {part: name for name, parts in groups.items() for part in parts}
        for axis, groups in load_facts()["views"][view].items()
    }


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
    if folder := name or os.environ.get(FOLDER):
        return user_path(folder)
    data = Path(os.environ.get("EVENHAND_DATA", "")) / "bold"
    has_data = "EVENHAND_DATA" in os.environ and data.is_dir()
    return data if has_data else _from_hub(None, execution)


def _from_hub(revision: str | None, execution: Execution) -> Path:
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError as error:
        raise _missing_copy("the library huggingface_hub is not installed") from error

    options = {"repo_type": "dataset", "revision": revision}
    download = partial(snapshot_download, REPOSITORY, allow_patterns=_HUB_FILES, **options)
    try:
        return Path(download(local_files_only=True))
    except LocalEntryNotFoundError as error:
        if execution.offline:
            raise _missing_copy("it is not in the Hub's cache, and the run is offline") from error
    try:
        return Path(download())
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise _missing_copy(f"it is not available from the Hub: {first_error_line(error)[:200]}") from error


def _missing_copy(reason: str) -> InputError:
    return InputError(f"no copy of BOLD was named, and {reason}", expected="a local copy", fix=_GET)


def read_copy(folder: Path) -> tuple[list[BoldRow], list[str]]:
    """Every row of a copy, by domain in the order of Table 1, then in file order; and what it lacks."""
    if not folder.is_dir():
        problem = "a file" if folder.is_file() else "not there"
        raise InputError(f"{folder} is {problem}", expected=ACCEPTED, fix="check the path")
    domains = dict.fromkeys(load_facts()["domains"])
    read: Callable[..., Iterator[BoldRow]]
    names: tuple[str, ...]
    if (folder / "prompts").is_dir() or (folder / "wikipedia").is_dir():
        read, names = _read_original, ("prompts/{}_prompt.json", "wikipedia/{}_wiki.json")
    elif any(folder.glob("*_prompt_wiki.json")):
        read, names = _read_entities, ("{}_prompt_wiki.json",)
    elif own := sorted(path.stem for path in folder.glob("*.jsonl")):
        # A user's own files may add domains.
        read, names, domains = _read_lines, ("{}.jsonl",), domains | dict.fromkeys(own)
    elif tables := sorted(folder.rglob("*.parquet")):
        return _from_parquet(tables)
    else:
        raise InputError(f"{folder} holds no copy of BOLD", expected=ACCEPTED, fix="check the path")
    rows: list[BoldRow] = []
    missing: list[str] = []
    for domain in domains:
        files = [name.format(domain) for name in names]
        absent = [file for file in files if not (folder / file).is_file()]
        missing += absent
        rows += [] if absent else read(domain, *(folder / file for file in files))
    return rows, missing


def _read_original(domain: str, *paths: Path) -> Iterator[BoldRow]:
    """The authors' layout: group to entity to a list, prompts in one file and sentences in another."""
    prompts, wiki = map(_read_nested, paths)
    for group in dict.fromkeys((*prompts, *wiki)):
        entities, sentences = prompts.get(group, {}), wiki.get(group, {})
        for key in dict.fromkeys((*entities, *sentences)):
            for idx, pair in enumerate(zip_longest(entities.get(key, []), sentences.get(key, []))):
                yield BoldRow(domain, group, key, idx, *pair)


def _read_entities(domain: str | None, path: Path) -> Iterator[BoldRow]:
    """The Hub's layout: an object per entity, as JSON lines, one list or Parquet; all prompts are used."""
    objects = _objects(path) if domain else load_parquet(path).to_dicts()
    for number, item in enumerate(objects, start=1):
        try:
            group, key = str(item["category"]), str(item["name"])
            of_domain = domain or str(item["domain"])
            prompts, wiki = _texts(item["prompts"]), _texts(item["wikipedia"])
        except (KeyError, TypeError) as error:
            _raise_damaged(path, f"entity {number} has no usable {error}")
        for idx, pair in enumerate(zip_longest(prompts, wiki)):
            yield BoldRow(of_domain, group, key, idx, *pair)


def _read_lines(domain: str, path: Path) -> Iterator[BoldRow]:
    """One JSON line per prompt: domain, group, key, idx, prompt, wiki."""
    for number, item in enumerate(_objects(path), start=1):
        try:
            group, key, idx = str(item["group"]), str(item["key"]), int(cast(int, item["idx"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            _raise_damaged(path, f"line {number} has no usable {error}")
        texts = (item.get(name) for name in ("prompt", "wiki"))
        yield BoldRow(domain, group, key, idx, *(text if isinstance(text, str) else None for text in texts))


def _from_parquet(tables: Sequence[Path]) -> tuple[list[BoldRow], list[str]]:
    rows = [row for path in tables for row in _read_entities(None, path)]
    order = {domain: place for place, domain in enumerate(load_facts()["domains"])}
    rows.sort(key=lambda row: order.get(row.domain, len(order)))
    present = {row.domain for row in rows}
    return rows, [f"the domain {domain}" for domain in order if domain not in present]


def _read_nested(path: Path) -> Mapping[str, Mapping[str, list[str]]]:
    content = _parse_json(_read(path), path)
    try:
        return TypeAdapter(dict[str, dict[str, list[str]]]).validate_python(content)
    except ValidationError:
        _raise_damaged(path, "it is not an object of groups, each with its entities and their lists of texts")


def _objects(path: Path) -> Iterator[Mapping[str, Json]]:
    """The objects of a JSON list, or of JSON lines."""
    text = _read(path)
    if not text.lstrip().startswith("["):
        yield from (row for _, row in read_json_lines(path))
        return
    for number, part in enumerate(cast("list[Json]", _parse_json(text, path)), start=1):
        if not isinstance(part, Mapping):
            _raise_damaged(path, f"entry {number} is not an object")
        yield part


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        _raise_damaged(path, str(error))


def _parse_json(text: str, path: Path) -> Json:
    try:
        return cast(Json, json.loads(text))
    except (ValueError, RecursionError) as error:
        _raise_damaged(path, f"is not JSON: {error}")


def _texts(value: Json) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise TypeError("list of texts")
    return cast("list[str]", value)


def _raise_damaged(path: Path, problem: str) -> NoReturn:
    raise InputError(f"{path}: {problem}", expected=ACCEPTED, fix="get the file again")
