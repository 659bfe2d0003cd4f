"""The files of a data set, local or of the Hub, and which of them are a split."""

from __future__ import annotations

import glob
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stderr
from fnmatch import fnmatch
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError, MissingLibraryError
from evenhand.core.file_names import user_path
from evenhand.core.reading import open_regular
from evenhand.core.records import Execution
from evenhand.suites.dataset_names import ACCEPTED, DatasetName

ENDINGS = (".parquet", ".jsonl", ".ndjson", ".csv", ".tsv", ".json")
_PACKED = tuple(f"{ending}.gz" for ending in ENDINGS if ending not in (".parquet", ".json"))
_README = "README.md"
_SPLITS: Mapping[str, tuple[str, ...]] = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}
"""The words by which the Hub tells splits apart in the names of files and folders."""


class Files(NamedTuple):
    """The files that hold the rows of one split."""

    paths: tuple[Path, ...]
    version: str
    """The commit on the Hub, or the digest of local files."""


def find_files(name: DatasetName, execution: Execution) -> Files:
    """The files of a split, downloaded first where they are on the Hub and not here yet."""
    path = user_path(name.place)
    if path.is_file():
        return Files((path,), file_digest(path))
    if path.is_dir():
        return _local(path, name)
    if name.place.startswith((".", "/", "~")) or name.place.count("/") != 1:
        raise InputError(f"{name.place} is not there", accepted=ACCEPTED, todo="check the path")
    return _from_hub(name, execution)


def _local(folder: Path, name: DatasetName) -> Files:
    found = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    readme = folder / _README
    chosen = choose(found, _text(readme) if readme.is_file() else "", name)
    paths = tuple(folder / file for file in chosen)
    return Files(paths, digest([[file, file_digest(folder / file)] for file in chosen]))


def _text(path: Path) -> str:
    with open_regular(path) as file:
        return file.read(1 << 20).decode("utf-8", "replace")


def choose(files: Sequence[str], readme: str, name: DatasetName) -> list[str]:
    """The files of the configuration and split that were asked for, or of the only ones there are."""
    tables = (file for file in files if file.lower().endswith((*ENDINGS, *_PACKED)))
    data = sorted(file for file in tables if not re.search(r"(^|/)[._]", file))
    parts = _declared(readme, data) or _by_folder(data, name) or _by_name(data)
    if not parts:
        raise InputError(
            f"{name.place} has no tables",
            accepted=f"files ending in {', '.join(ENDINGS)}",
            todo="check the name",
        )
    config = _only("configuration", name.config, {key[0] for key in parts}, name.place)
    split = _only("split", name.split, {key[1] for key in parts if key[0] == config}, name.place)
    return parts[config, split]


def _only(what: str, asked: str, known: set[str], place: str) -> str:
    """What was asked for, or the only one; ``default`` and ``train`` where several are there is no guess."""
    if asked in known:
        return asked
    if not asked and len(known) == 1:
        return next(iter(known))
    if not asked and what == "configuration" and "default" in known:
        return "default"
    raise InputError(
        f"{place} has {f'no {what} {asked!r}' if asked else f'{len(known)} {what}s'}",
        accepted=", ".join(sorted(known)),
        todo="name it with #CONFIG/SPLIT, or #SPLIT where there is one configuration",
    )


Parts = dict[tuple[str, str], list[str]]


def _declared(readme: str, files: Sequence[str]) -> Parts:
    """Configurations and splits as the data set's card declares them; empty where it does not."""
    parts: Parts = {}
    for config in _configs(readme):
        name, folder = _word(config.get("config_name"), "default"), _word(config.get("data_dir"), "")
        for split, pattern in _patterns(config.get("data_files")):
            wanted = f"{folder.rstrip('/')}/{pattern}" if folder else pattern
            found = [wanted] if wanted in files else [file for file in files if _matches(file, wanted)]
            if found:
                parts.setdefault((name, split), []).extend(found)
    return parts


def _configs(readme: str) -> list[Mapping[str, object]]:
    header = re.match(r"---\r?\n(.*?)\r?\n---\s*(\n|\Z)", readme, re.DOTALL)
    if header is None:
        return []
    try:
        import yaml
    except ImportError:  # comes with the library that asks the Hub; names of files must do without it
        return []
    try:
        content = yaml.safe_load(header[1])
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
    # A card may nest names without end by references to each other, and those must not be written out.
    return value if isinstance(value, str) else default


def _matches(file: str, pattern: str) -> bool:
    # `**/` may also stand for no folder at all, which fnmatch does not know.
    return fnmatch(file, pattern) or fnmatch(file, pattern.replace("**/", ""))


def _by_folder(files: Sequence[str], name: DatasetName) -> Parts:
    """The files of ``CONFIG/SPLIT/``: so the Hub lays out what it converts to Parquet."""
    start = f"{name.config}/{name.split}/"
    found = [file for file in files if name.config and file.startswith(start)]
    return {(name.config, name.split): found} if found else {}


def _by_name(files: Sequence[str]) -> Parts:
    """Splits by the words in the names of files and folders; without such words all is ``train``."""
    parts: Parts = {}
    for file in files:
        words = set(re.split(r"[^a-z]+", file.lower()))
        split = next((one for one, known in _SPLITS.items() if words & set(known)), None)
        if split:
            parts.setdefault(("default", split), []).append(file)
    return parts or ({("default", "train"): list(files)} if files else {})


def _from_hub(name: DatasetName, execution: Execution) -> Files:
    """The files of a split in the Hub's cache, first completed from the Hub where it can be asked."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingLibraryError(
            f"the data set {name.place!r} is on the Hub, and the library that asks it is not installed",
            accepted="the extra `models` brings it",
            todo='pip install "evenhand[models]", or download the data set and name its folder',
        ) from error
    with nullcontext() if sys.stderr.isatty() else redirect_stderr(StringIO()):
        try:
            return _cached(name) if execution.offline else _downloaded(name, snapshot_download)
        except InputError:
            raise
        except Exception as error:  # the HTTP client's own, which differs between versions of the library
            try:
                return _cached(name)
            except OSError:
                raise _absent(name, execution, error) from error


def _downloaded(name: DatasetName, download: Callable[..., str]) -> Files:
    from huggingface_hub import HfApi

    info = HfApi().dataset_info(name.place, revision=name.revision or None)
    wanted = {"repo_type": "dataset", "revision": info.sha}
    readme = Path(download(name.place, allow_patterns=[_README], **wanted)) / _README
    files = [one.rfilename for one in info.siblings or ()]
    chosen = choose(files, _text(readme) if readme.is_file() else "", name)
    names = [glob.escape(file) for file in chosen]
    folder = Path(download(name.place, allow_patterns=names, **wanted))
    return Files(tuple(folder / file for file in chosen), folder.name)


def _cached(name: DatasetName) -> Files:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        # No file is asked for: the folder is wanted, whatever part of the data set lies in it.
        found = snapshot_download(
            name.place,
            repo_type="dataset",
            revision=name.revision or None,
            local_files_only=True,
            allow_patterns=["no/such/file"],
        )
    except HFValidationError as error:
        raise InputError(
            f"{name.place!r} is not the name of a data set", accepted=ACCEPTED, todo="check the name"
        ) from error
    return Files(_local(Path(found), name).paths, Path(found).name)


def _absent(name: DatasetName, execution: Execution, error: Exception) -> InputError:
    at = f" at {name.revision!r}" if name.revision else ""
    said = next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]
    offline = "is not on this machine, and the run is offline"
    why = offline if execution.offline else f"cannot be had from the Hub: {said}"
    return InputError(
        f"the data set {name.place!r}{at} {why}",
        accepted=ACCEPTED,
        todo="check the name, or download the data set and name its folder",
    )
