"""``evenhand clean``."""

from __future__ import annotations

from evenhand.cli.console import output


def command() -> None:
    """Delete the cache of generations and scores. Run folders stay."""
    from evenhand.store.cache import cache_folder, clear_cache

    freed = clear_cache()
    output.print(f"{freed / 1e6:.1f} MB freed in {cache_folder()}", highlight=False, markup=False)
