"""Where a model's files are: a local folder, a ``.gguf`` file, or a Hub id with its revision."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from evenhand.core.errors import InputError, ModelError
from evenhand.core.files import user_path
from evenhand.core.regular_files import MOST, check_regular
from evenhand.tensors.tokenizer_check import check_tokenizer

_ACCEPTED = "a local folder, a .gguf file, or a Hub id such as ORG/NAME or ORG/NAME@REVISION"
# Root files only: sub-folders hold other formats of the same weights.
_WANTED = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]
_UNWANTED = ["*/*", "consolidated*"]


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's files on this machine."""

    name: str
    """As it was asked for, without the revision."""
    folder: Path
    gguf: str | None = None
    """The file's name in the folder, where the model is a single GGUF file."""
    commit: str = ""
    """The Hub commit; empty for local files, which are identified by their digest."""


def locate_model(name: str, *, revision: str | None = None, offline: bool = False) -> ModelFiles:
    """The files of a model, downloaded first if they are on the Hub and not here yet."""
    if "://" in name:
        # Not repeated: a URL may hold a password.
        raise InputError("a URL is no model's name", expected=_ACCEPTED, fix="write endpoint:URL#MODEL")
    path = user_path(name)
    if path.is_dir():
        check_files(path)
        return ModelFiles(name, path)
    if path.is_file():
        if path.suffix.lower() != ".gguf":
            raise InputError(f"{name} is a file", expected=_ACCEPTED, fix="name the folder it is in")
        return ModelFiles(name, path.parent, gguf=path.name)
    if _looks_like_path(name):
        raise InputError(f"{name} is not there", expected=_ACCEPTED, fix="check the path")
    repository, _, given = name.partition("@")
    return _download(repository, revision or given or None, offline=offline)


def check_files(folder: Path) -> None:
    """An error for a file of a model that a library would wait for without end, or fill the memory with.

    Weights may be of any size: they are mapped, not read whole.
    """
    for path in sorted(path for pattern in _WANTED for path in folder.glob(pattern)):
        try:
            check_regular(path)
            size = 0 if path.suffix == ".safetensors" else path.stat().st_size
        except FileNotFoundError:
            # A link to nothing: the reader of this file reports it.
            continue
        except OSError as error:
            raise ModelError(
                f"{path} cannot be read: {error}", expected="regular files", fix="download the model again"
            ) from error
        if size > MOST:
            raise ModelError(
                f"{path} has {size >> 20:,} MiB",
                expected=f"at most {MOST >> 20} MiB for a file that holds no weights",
                fix="download or save the model again",
            )
    check_tokenizer(folder)


def _looks_like_path(name: str) -> bool:
    return name.startswith((".", "/", "~")) or "\\" in name or name.count("/") > 1 or name.endswith(".gguf")


def _download(repository: str, revision: str | None, *, offline: bool) -> ModelFiles:
    """The root files of a repository; progress is drawn on a terminal only."""
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
        # What follows a colon is not repeated: it may be a password.
        start, colon, _ = repository.partition(":")
        raise InputError(
            f"{start + colon + ('...' if colon else '')!r} is not a model's name",
            expected=_ACCEPTED,
            fix="check the name",
        ) from error
    except (HfHubHTTPError, OSError) as error:
        check = "check the name, leave --offline out" if offline else "check the name and the network"
        raise ModelError(
            f"the model {repository!r}{f' at {revision!r}' if revision else ''} {_reason(error, offline)}",
            expected=_ACCEPTED,
            fix=f"{check}, or download it first and name its folder",
        ) from error
    check_files(folder)
    return ModelFiles(repository, folder, commit=folder.name)


def _reason(error: Exception, offline: bool) -> str:
    """Why there is no model: the library's own words speak of arguments our users never see."""
    from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError

    if isinstance(error, LocalEntryNotFoundError):
        return f"is not on this machine, and the {'run is offline' if offline else 'Hub cannot be reached'}"
    if isinstance(error, RevisionNotFoundError):
        return "has no such revision on the Hub"
    if isinstance(error, RepositoryNotFoundError):
        return "is not on the Hub, or not open to everybody"
    return f"cannot be had from the Hub: {(str(error).strip() or type(error).__name__).splitlines()[0]}"
