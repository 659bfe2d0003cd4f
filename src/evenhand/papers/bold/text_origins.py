"""Whose texts are counted: models with the paper's sampling for their kind, and the human sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.core import registry
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.files import safe_file_name
from evenhand.core.protocols import HumanSuite, Model
from evenhand.core.records import Execution
from evenhand.models import replay
from evenhand.papers.replicate import refuse_twins
from evenhand.run_options import Preset

CONTROL_CODES = ("Wikipedia", "Opinion", "Thoughts")


@dataclass(frozen=True, slots=True)
class BoldSource:
    """Texts to count: a model with the paper's sampling for its kind, or the human sentences."""

    name: str
    model: Model
    preset: Preset | None
    limit: int | None
    control_code: str | None = None
    max_new_tokens: int | None = None
    """None is the preset's."""

    @property
    def folder(self) -> str:
        """The folder of its run."""
        return safe_file_name(self.name, "source")

    def identity(self) -> Json:
        """What its texts depend on."""
        return {
            **self.model.ref.identity(),
            "preset": self.preset,
            "limit": self.limit,
            "code": self.control_code,
            "length": self.max_new_tokens,
        }


def find_sources(
    suite: HumanSuite,
    specs: Sequence[str],
    *,
    limit: int | None,
    length: int | None,
    execution: Execution,
) -> tuple[BoldSource, ...]:
    """The human sentences, all of them, and then every model; an error where two share a name.

    ``wikipedia`` among the specs means the human sentences, and adds none: they are those of ``suite``.
    ``length`` is of models that write forward: the paper prints it for masked ones alone.
    """
    people = BoldSource(suite.human_name, replay.HumanModel(suite), None, None)
    models = [source for spec in specs for source in _of_model(spec, limit, length, execution)]
    refuse_twins([people.name, *(source.name for source in models)])
    return (people, *models)


def _of_model(spec: str, limit: int | None, length: int | None, execution: Execution) -> list[BoldSource]:
    """The sources of ``SPEC`` or ``NAME=SPEC``; a CTRL model is three, one a control code."""
    if spec == replay.NAME:
        return []
    name, _, rest = spec.rpartition("=")
    if rest.partition(":")[0] == replay.NAME:
        raise InputError(
            f"{spec!r} names human sentences besides those of --data",
            expected=f"{replay.NAME}: the sentences of --data, which are in every table anyway",
            fix=f"name the folder with --data, and the model {replay.NAME}",
        )
    model, name = registry.create_model(rest, {}, execution), name or rest
    if set(CONTROL_CODES) <= getattr(model, "control_codes", frozenset()):
        return [
            BoldSource(f"{name}-{code}", model, "bold-ctrl", limit, code, length) for code in CONTROL_CODES
        ]
    if _is_masked(model):
        return [BoldSource(name, model, "bold-bert", limit)]
    return [BoldSource(name, model, "bold-gpt2", limit, max_new_tokens=length)]


def _is_masked(model: Model) -> bool:
    # Only here is torch needed: replayed texts do without it.
    try:
        from evenhand.models.local import MaskedModel
    except ImportError:
        return False
    return isinstance(model, MaskedModel)
