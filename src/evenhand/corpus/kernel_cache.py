"""Keeps compiled code true to its sources.

numba keeps what it compiled beside a file and looks at that file alone, while the kernel is compiled from
several: after an edit of another one it would go on with the old code.
"""

from __future__ import annotations

import contextlib
import hashlib
from functools import cache
from pathlib import Path

from evenhand.corpus import scan_kernel
from evenhand.store.atomic_writes import write_text

_SOURCES = ("counts", "letters", "scan_kernel", "term_matcher", "tokenisation", "unit_counts")
"""Every module whose code or constants end up in the compiled kernel."""
_STAMP = "evenhand-corpus.stamp"


@cache
def remove_stale_code() -> None:
    """Remove what was compiled from other sources than today's; looked at once a process."""
    folder = Path(scan_kernel.scan_bytes.stats.cache_path or "")
    # Where nothing can be written nothing was kept, or it was kept for this very installation.
    with contextlib.suppress(OSError):
        remove_stale_in(folder, sources_digest(Path(scan_kernel.__file__).parent))


def sources_digest(folder: Path) -> str:
    """The digest of the kernel's sources."""
    digest = hashlib.blake2b(digest_size=16)
    for name in _SOURCES:
        digest.update((folder / f"{name}.py").read_bytes())
    return digest.hexdigest()


def remove_stale_in(folder: Path, digest: str) -> bool:
    """Whether compiled code of another digest was removed from a folder, which then gets this digest."""
    stamp = folder / _STAMP
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == digest:
        return False
    for file in folder.glob("*.nb[ic]") if folder.is_dir() else ():
        if file.name.split(".")[0] in _SOURCES:
            file.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(stamp, digest)
    return True
