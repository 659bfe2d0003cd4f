"""``engine="ray"``: the actors of a run, from its settings."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from evenhand.api.settings import Settings
from evenhand.core.protocols import Metric
from evenhand.pipeline.actors import Pool, PooledAsker
from evenhand.pipeline.asking import Asker
from evenhand.pipeline.workers import ModelRecipe, Recipe
from evenhand.report.wording import count

_log = logging.getLogger(__name__)


def open_pool(settings: Settings, model: ModelRecipe | None = None) -> Pool | None:
    """The actors of a run; None where it works in this process."""
    options = settings.options
    if options["engine"] == "local":
        if options["address"]:
            _log.warning(
                "the address %s is for --engine ray: the work is done on this machine", options["address"]
            )
        if options["workers"]:
            _log.warning("--workers is for --engine ray: the work is done in this process")
        return None
    recipe = Recipe(settings.execution(), model)
    return Pool(recipe, workers=options["workers"], address=options["address"])


@contextmanager
def ending(pool: Pool | None, *, always: bool = True) -> Iterator[None]:
    """Ends the actors after the work; where not ``always``, only when the work fails."""
    failed = True
    try:
        yield
        failed = False
    finally:
        if pool is not None and (always or failed):
            pool.close()


def askers(
    pool: Pool | None, metrics: Mapping[str, Metric], settings: Settings, given: Sequence[str] = ()
) -> dict[str, Asker]:
    """The metrics that are asked in the actors, by spec.

    Not those that are faster than the way there, nor those that were ``given`` as objects, which an actor
    could not make again.
    """
    if pool is None:
        return {}
    return {
        spec: PooledAsker(pool, settings.metric_options(spec.partition("=")[0]))
        for spec, metric in metrics.items()
        if not metric.info.cheap and spec not in given
    }


def engine_line(settings: Settings) -> list[str]:
    """What a plan says of the engine; nothing where the work is done in this process."""
    options = settings.options
    if options["engine"] == "local":
        return []
    workers = (
        count(options["workers"], "worker") if options["workers"] else "a worker a GPU, or a few cores each"
    )
    return [f"engine  {options['engine']} at {options['address'] or 'this machine'}, {workers}"]
