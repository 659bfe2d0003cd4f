"""What the build of the site does beside MkDocs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any


def on_post_build(config: Any) -> None:
    """Put every page's Markdown beside its HTML: ``llms.txt`` links to it."""
    docs, site = Path(config["docs_dir"]), Path(config["site_dir"])
    for page in docs.rglob("*.md"):
        kept = site / page.relative_to(docs)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, kept)
