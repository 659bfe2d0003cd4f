"""Locates a model's files: a local folder, a ``.gguf`` file, or a Hub id with its revision.

A tokenizer's files are checked before its library reads them: the library aborts the process when memory
runs out, without an error that could be caught.
"""

from __future__ import annotations

import base64
import json
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Final

from evenhand.core.errors import InputError, ModelError
from evenhand.core.files import user_path
from evenhand.core.regular_files import MOST, check_regular, read_text

_ACCEPTED = "a local folder, a .gguf file, or a Hub id such as ORG/NAME or ORG/NAME@REVISION"
# Root files only: sub-folders hold other formats of the same weights.
_WANTED = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]
_UNWANTED = ["*/*", "consolidated*"]
_GROWTH: Final = 10_000
"""Maximum factor by which tokenization may lengthen a text: published tokenizers write a space as one or
three bytes, and frame a text with a few tokens."""
_MOST_FILLED: Final = 1 << 20
"""Maximum length that a tokenizer may pad texts to."""
_TEXT_STEPS: Final = ("normalizer", "pre_tokenizer", "decoder")
_COUNTS: Final = ("extra_ids", "offset")
"""Settings of some tokenizers that create that many tokens."""
_NEW_TOKENS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's files on this machine."""

    name: str
    """As requested, without the revision."""
    folder: Path
    gguf: str | None = None
    """The file name in the folder, if the model is a single GGUF file."""
    commit: str = ""
    """The Hub commit; empty for local files, which are identified by their digest."""


def locate_model(name: str, *, revision: str | None = None, offline: bool = False) -> ModelFiles:
    """The files of a model, downloaded first if they are only on the Hub."""
    if "://" in name:
        # Not shown: a URL may contain a password.
        raise InputError("a URL is not a model name", expected=_ACCEPTED, fix="write endpoint:URL#MODEL")
    path = user_path(name)
    if path.is_dir():
        check_files(path)
        return ModelFiles(name, path)
    if path.is_file():
        if path.suffix.lower() != ".gguf":
            raise InputError(f"{name} is a file", expected=_ACCEPTED, fix="name its folder")
        return ModelFiles(name, path.parent, gguf=path.name)
    if name.startswith((".", "/", "~")) or "\\" in name or name.count("/") > 1 or name.endswith(".gguf"):
        raise InputError(f"{name} does not exist", expected=_ACCEPTED, fix="check the path")
    repository, _, suffix = name.partition("@")
    return _download(repository, revision or suffix or None, offline=offline)


def check_files(folder: Path) -> None:
    """Raise an error for a model file on which a library would block for ever, or fill the memory.

    Weights may have any size: they are memory-mapped.
    """
    for path in sorted(path for pattern in _WANTED for path in folder.glob(pattern)):
        try:
            check_regular(path)
            size = 0 if path.suffix == ".safetensors" else path.stat().st_size
        except FileNotFoundError:
            # A dangling link: the reader of this file reports it.
            continue
        except OSError as error:
            raise ModelError(
                f"{path} cannot be read: {error}", expected="regular files", fix="download the model again"
            ) from error
        if size > MOST:
            raise ModelError(
                f"{path} has {size >> 20:,} MiB",
                expected=f"at most {MOST >> 20} MiB for a file without weights",
                fix="download or save the model again",
            )
    check_tokenizer(folder)


def _download(repository: str, revision: str | None, *, offline: bool) -> ModelFiles:
    """Download the root files of a repository; progress is shown on a terminal only."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        with nullcontext() if sys.stderr.isatty() else redirect_stderr(StringIO()):
            folder = Path(
                snapshot_download(
                    repository,
                    revision=revision,
                    local_files_only=offline,
                    allow_patterns=_WANTED,
                    ignore_patterns=_UNWANTED,
                )
            )
    except HFValidationError as error:
        # The part after a colon is not shown: it may be a password.
        start, colon, _ = repository.partition(":")
        raise InputError(
            f"{start + colon + ('...' if colon else '')!r} is not a model name",
            expected=_ACCEPTED,
            fix="check the name",
        ) from error
    except (HfHubHTTPError, OSError) as error:
        check = "check the name, remove --offline" if offline else "check the name and the network"
        raise ModelError(
            f"the model {repository!r}{f' at {revision!r}' if revision else ''} {_reason(error, offline)}",
            expected=_ACCEPTED,
            fix=f"{check}, or download it first and name its folder",
        ) from error
    check_files(folder)
    return ModelFiles(repository, folder, commit=folder.name)


def _reason(error: Exception, offline: bool) -> str:
    """Why there is no model: the library's own message mentions arguments that our users never see."""
    from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError

    if isinstance(error, LocalEntryNotFoundError):
        return f"is not on this machine, and the {'run is offline' if offline else 'Hub cannot be reached'}"
    if isinstance(error, RevisionNotFoundError):
        return "has no such revision on the Hub"
    if isinstance(error, RepositoryNotFoundError):
        return "is not on the Hub, or not public"
    return f"cannot be loaded from the Hub: {(str(error).strip() or type(error).__name__).splitlines()[0]}"


def check_tokenizer(folder: Path) -> None:
    """Raise an error for tokenizer settings (``tokenizer*.json``) that would need unlimited memory."""
    for name, check in (("tokenizer.json", check_steps), ("tokenizer_config.json", _check_counts)):
        if (folder / name).is_file():
            check(folder / name)


def check_steps(path: Path) -> None:
    """Raise an error for a ``tokenizer.json`` whose steps lengthen texts without limit.

    All other problems are reported by the library.
    """
    content, growth = _content(path), 1
    for node in (node for name in _TEXT_STEPS for node in _nodes(content.get(name))):
        added = max(len(str(node.get(name) or "")) for name in ("content", "prepend"))
        # A pattern may match between two characters, and so insert text at each of them.
        growth *= max(1, added + ("Regex" in str(node.get("pattern"))))
        table = node.get("precompiled_charsmap")
        if isinstance(table, str) and not _is_whole(table):
            raise _refusal(path, "has a truncated character table")
    for node in _nodes(content.get("post_processor")):
        growth *= _framed(node)
    if growth > _GROWTH:
        raise _refusal(path, f"makes texts more than {_GROWTH:,} times longer")
    for node in _nodes(content.get("padding")):
        for size in (node.get("Fixed"), node.get("pad_to_multiple_of")):
            if isinstance(size, int) and size > _MOST_FILLED:
                raise _refusal(path, f"pads texts to {size:,} tokens")


def _check_counts(path: Path) -> None:
    content = _content(path)
    for name in _COUNTS:
        count = content.get(name)
        if isinstance(count, int | float) and count > _NEW_TOKENS:
            raise _refusal(path, f"adds {count:,} tokens ({name})")


def _content(path: Path) -> Mapping[str, object]:
    try:
        content = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        raise _refusal(path, f"cannot be read: {str(error)[:300]}") from error
    return content if isinstance(content, dict) else {}


def _refusal(path: Path, problem: str) -> ModelError:
    return ModelError(
        f"{path} {problem}",
        expected="a tokenizer as its library saves it",
        fix="download or save the tokenizer again",
    )


def _framed(node: Mapping[str, object]) -> int:
    """The factor by which a template lengthens a text of one token."""
    template, special = node.get("single"), node.get("special_tokens")
    if not isinstance(template, list):
        return 1
    most = max((len(ids) for one in _nodes(special) if isinstance(ids := one.get("ids"), list)), default=1)
    return max(1, len(template) * max(1, most))


def _is_whole(table: str) -> bool:
    """Whether a table is as long as its first four bytes claim: the library allocates that much."""
    try:
        data = base64.b64decode(table)
    except ValueError:
        return False
    return len(data) >= 4 and struct.unpack("<I", data[:4])[0] <= len(data) - 4


def _nodes(tree: object) -> Iterator[Mapping[str, object]]:
    """All nested objects; parsed JSON is never nested deeper than Python's recursion limit."""
    if isinstance(tree, dict):
        yield tree
    if isinstance(tree, dict | list):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from _nodes(part)
