"""``export``: write an embedded model in the Hub's layout."""

from __future__ import annotations

import shutil
from pathlib import Path

from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.options import checks_options
from evenhand.core.registry import require_library
from evenhand.store.atomic_writes import storage_errors

MODELS = {"builtin": "builtin", "builtin:masked": "builtin-masked", "builtin-masked": "builtin-masked"}
"""Model name to its asset folder."""


@checks_options
def export(model: str, folder: Path | str) -> Path:
    """Write an embedded model in float32 for `transformers`, and return its folder."""
    if model not in MODELS:
        raise InputError(
            f"there is no embedded model {model!r}", expected=", ".join(MODELS), fix="name one of these"
        )
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(
            f"{target} is not empty", expected="a new or empty folder", fix="name another folder"
        )
    for library in ("torch", "tokenizers"):
        require_library(library)
    from evenhand.models.hub_layout import hub_folder

    # To a temporary folder first: a kill must not leave a partial folder that looks like a model.
    partial = target.with_name(f".{target.name}.part")
    with storage_errors(target):
        shutil.rmtree(partial, ignore_errors=True)
        hub_folder(asset_path(MODELS[model]), partial, tokenizer_file=asset_path("builtin", "tokenizer.json"))
        if target.exists():
            target.rmdir()
        partial.rename(target)
    return target
