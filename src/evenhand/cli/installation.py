"""``examine``: what this machine and installation can run."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, NamedTuple

from evenhand._version import __version__
from evenhand.core import registry
from evenhand.store.cache import cache_folder

OPTIONAL: Final[Mapping[str, tuple[str, ...]]] = {
    "models": ("torch", "transformers"),
    "api": ("httpx",),
    "corpus": ("fsspec", "lemminflect", "mwparserfromhell", "zstandard"),
    "annotate": ("starlette", "sqlalchemy", "uvicorn"),
    "train": ("textblob",),
    "viz": ("matplotlib", "umap-learn"),
    "ray": ("ray",),
    "mlflow": ("mlflow-skinny",),
    "wandb": ("wandb",),
    "kenlm": ("kenlm",),
    "inspect": ("inspect-ai",),
    "lm-eval": ("lm-eval",),
}
"""Extra to the distributions that show whether it is installed."""


class InstallationFact(NamedTuple):
    """One line of the examination."""

    name: str
    text: str


def examine_installation() -> list[InstallationFact]:
    """What is installed, what the machine has, where things are kept."""
    free = shutil.disk_usage(Path.cwd()).free
    return [
        InstallationFact("evenhand", f"{__version__}, Python {sys.version.split()[0]}"),
        InstallationFact(
            "machine", f"{platform.platform()}, {os.cpu_count()} cores, {free / 1e9:.0f} GB of disk free here"
        ),
        InstallationFact("accelerator", _accelerator()),
        *(InstallationFact(f"extra {extra}", _libraries(extra, names)) for extra, names in OPTIONAL.items()),
        InstallationFact("cache", f"{cache_folder()}{_cache_size()}"),
        *(
            InstallationFact(kind, ", ".join(entry.name for entry in registry.list_entries(kind)) or "none")
            for kind in registry.KINDS
        ),
    ]


def _libraries(extra: str, names: tuple[str, ...]) -> str:
    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            return f'not installed: pip install "evenhand[{extra}]"'
    return ", ".join(found)


def _accelerator() -> str:
    try:
        import torch
    except ImportError:
        return "not known: torch is not installed"
    if torch.cuda.is_available():
        return f"{torch.cuda.get_device_name(0)} (CUDA)"
    return f"none; {torch.get_num_threads()} threads on the CPU"


def _cache_size() -> str:
    file = cache_folder() / "cache.sqlite"
    return f", {file.stat().st_size / 1e6:.1f} MB" if file.exists() else ", empty"
