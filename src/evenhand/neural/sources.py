"""Where a model's files are: a local folder, a ``.gguf`` file, or a Hub id with its revision."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from evenhand.core.errors import InputError, ModelError

_ACCEPTED = "a local folder, a .gguf file, or a Hub id such as ORG/NAME or ORG/NAME@REVISION"
# Root files only: sub-folders hold other formats of the same weights.
_WANTED = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]
_UNWANTED = ["*/*", "consolidated*"]


@dataclass(frozen=True, slots=True)
class Source:
    """A model's files on this machine."""

    name: str
    """As it was asked for, without the revision."""
    folder: Path
    gguf: str | None = None
    """The file's name in the folder, where the model is a single GGUF file."""
    commit: str = ""
    """The Hub commit; empty for local files, which are identified by their digest."""


def locate(name: str, *, revision: str | None = None, offline: bool = False) -> Source:
    """The files of a model, downloaded first if they are on the Hub and not here yet."""
    path = Path(name).expanduser()
    if path.is_dir():
        return Source(name, path)
    if path.is_file():
        if path.suffix.lower() != ".gguf":
            raise InputError(f"{name} is a file", accepted=_ACCEPTED, todo="name the folder it is in")
        return Source(name, path.parent, gguf=path.name)
    if _looks_like_path(name):
        raise InputError(f"{name} is not there", accepted=_ACCEPTED, todo="check the path")
    repository, _, given = name.partition("@")
    return _download(repository, revision or given or None, offline=offline)


def _looks_like_path(name: str) -> bool:
    return name.startswith((".", "/", "~")) or "\\" in name or name.count("/") > 1 or name.endswith(".gguf")


def _download(repository: str, revision: str | None, *, offline: bool) -> Source:
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
        raise InputError(
            f"{repository!r} is not a model's name", accepted=_ACCEPTED, todo="check it"
        ) from error
    except (HfHubHTTPError, OSError) as error:
        raise ModelError(
            f"the model {repository!r}{f' at {revision!r}' if revision else ''} cannot be had from the Hub: "
            f"{_first_line(error)}",
            accepted=_ACCEPTED,
            todo="check the name and the network, or download it first and name its folder",
        ) from error
    return Source(repository, folder, commit=folder.name)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
