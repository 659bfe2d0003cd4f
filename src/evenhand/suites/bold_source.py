"""Where BOLD is: a folder that was named, one from the environment, or the Hub."""

from __future__ import annotations

import os
from pathlib import Path

from evenhand.core.errors import InputError
from evenhand.core.file_names import user_path
from evenhand.core.records import Execution

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
        raise _absent("the library huggingface_hub that asks the Hub is not installed") from error

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
            raise _absent("it is not in the Hub's cache, and the run is offline") from error
    try:
        return download(offline=False)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise _absent(
            f"the Hub cannot give it: {(str(error).strip() or type(error).__name__).splitlines()[0][:200]}"
        ) from error


def _absent(reason: str) -> InputError:
    return InputError(f"no copy of BOLD was named, and {reason}", accepted="a local copy", todo=_GET)
