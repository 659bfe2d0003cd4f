"""The commands about the installation: ``list``, ``show``, ``doctor``, ``init`` and ``clean``."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from textwrap import shorten
from typing import Final

from evenhand._version import __version__
from evenhand.cli.commands import Argument, takes
from evenhand.cli.console import output, print_path
from evenhand.core.errors import InputError
from evenhand.core.options import NoOptions
from evenhand.core.registry import KINDS, list_entries

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


@takes(
    NoOptions,
    Argument("kind", str | None, "suites, models, metrics or mitigations (default: all).", None, "kinds"),
)
def list_names(kind: str | None) -> None:
    """List what is installed, with a one-line description of each name."""
    from evenhand.report.catalogue import available

    if kind is not None and kind not in KINDS:
        raise InputError(
            f"there is no kind {kind!r}", expected=", ".join(KINDS), fix="see `evenhand list --help`"
        )
    entries = available(kind)
    longest = max((len(entry.name) for entry in entries), default=0)
    for each in dict.fromkeys(entry.kind for entry in entries):
        output.print(each, style="bold", highlight=False)
        for entry in (entry for entry in entries if entry.kind == each):
            origin = "" if entry.package == "evenhand" else f"(from {entry.package}) "
            line = f"  {entry.name:<{longest}}  {origin}{entry.about}"
            if output.is_terminal:  # cut after the last word that fits
                start, room = longest + 4, max(output.width - longest - 4, 20)
                line = line[:start] + shorten(line[start:], room, placeholder=" ...")
            output.print(line, markup=False, highlight=False, soft_wrap=True)


@takes(NoOptions, Argument("name", str, "A name from `evenhand list`.", complete="names"))
def show(name: str) -> None:
    """Show the card of a suite, a metric, a model or a mitigation."""
    from rich.markdown import Markdown

    from evenhand.report.catalogue import card

    output.print(Markdown(card(name)))


@takes(NoOptions, Argument("path", Path, "File to write (default evenhand.toml).", Path("evenhand.toml")))
def init(path: Path) -> None:
    """Write a commented settings file."""
    from evenhand.core.files import asset_path
    from evenhand.store.atomic_writes import write_text

    if path.exists():
        raise InputError(
            f"{path} already exists", expected="a new file", fix="delete it, or give another path"
        )
    write_text(path, asset_path("settings", "evenhand.toml").read_text(encoding="utf-8"))
    print_path(path, "wrote ", f": evenhand audit --config {path}")


def clean() -> None:
    """Delete the cache of generations and scores. Run folders are kept."""
    from evenhand.store.cache import cache_folder, clear_cache

    freed = clear_cache()
    output.print(f"{freed / 1e6:.1f} MB freed in {cache_folder()}", highlight=False, markup=False)


def doctor() -> None:
    """Report what this machine can run."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, fact in examine_installation().items():
        table.add_row(name, Text(fact))
    output.print(table)


def examine_installation() -> dict[str, str]:
    """The installed libraries, the hardware and the locations of stored data, by name."""
    from evenhand.store.cache import cache_folder

    free = shutil.disk_usage(Path.cwd()).free
    cache = cache_folder() / "cache.sqlite"
    size = f"{cache.stat().st_size / 1e6:.1f} MB" if cache.exists() else "empty"
    return {
        "evenhand": f"{__version__}, Python {sys.version.split()[0]}",
        "machine": f"{platform.platform()}, {os.cpu_count()} cores, {free / 1e9:.0f} GB of disk free here",
        "accelerator": _accelerator(),
        **{f"extra {extra}": _libraries(extra, names) for extra, names in OPTIONAL.items()},
        "cache": f"{cache.parent}, {size}",
        **{kind: ", ".join(entry.name for entry in list_entries(kind)) or "none" for kind in KINDS},
    }


def _libraries(extra: str, names: tuple[str, ...]) -> str:
    try:
        return ", ".join(f"{name} {version(name)}" for name in names)
    except PackageNotFoundError:
        return f'not installed: pip install "evenhand[{extra}]"'


def _accelerator() -> str:
    try:
        import torch
    except ImportError:
        return "unknown: torch is not installed"
    if torch.cuda.is_available():
        return f"{torch.cuda.get_device_name(0)} (CUDA)"
    return f"none; {torch.get_num_threads()} threads on the CPU"
