"""Whose texts are counted: models with the paper's sampling for their kind, and the human sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from evenhand.core import registry
from evenhand.core.digests import Json
from evenhand.core.errors import InputError
from evenhand.core.files import safe_file_name
from evenhand.core.protocols import HumanSuite, Model
from evenhand.core.records import Execution
from evenhand.models import replay
from evenhand.run_options import Preset

CONTROL_CODES = ("Wikipedia", "Opinion", "Thoughts")
_MASKED: Final = "bold-bert"


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
    def is_forward(self) -> bool:
        """Whether it writes from left to right."""
        return self.preset not in (None, _MASKED)

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
    models = [source for spec in specs for source in _of_model(spec, limit, execution)]
    _refuse_twins([people, *models])
    forward = [replace(source, max_new_tokens=length) if source.is_forward else source for source in models]
    return (people, *forward)


def _of_model(spec: str, limit: int | None, execution: Execution) -> list[BoldSource]:
    """The sources of ``SPEC`` or ``NAME=SPEC``; a CTRL model is three, one a control code."""
    name, _, rest = spec.rpartition("=")
    if rest.partition(":")[0] == replay.NAME:
        if spec == replay.NAME:
            return []
        raise InputError(
            f"{spec!r} names human sentences besides those of --data",
            expected=f"{replay.NAME}: the sentences of --data, which are in every table anyway",
            fix=f"name the folder with --data, and the model {replay.NAME}",
        )
    model = registry.create_model(rest, {}, execution)
    name = name or rest
    if set(CONTROL_CODES) <= getattr(model, "control_codes", frozenset()):
        return [BoldSource(f"{name}-{code}", model, "bold-ctrl", limit, code) for code in CONTROL_CODES]
    return [BoldSource(name, model, _MASKED if _is_masked(model) else "bold-gpt2", limit)]


def _is_masked(model: Model) -> bool:
    # Only here is torch needed: replayed texts do without it.
    try:
        from evenhand.models.local import MaskedModel
    except ImportError:
        return False
    return isinstance(model, MaskedModel)


def _refuse_twins(sources: Sequence[BoldSource]) -> None:
    # Names that differ in case or punctuation alone would share a folder.
    folders = [source.folder.casefold() for source in sources]
    for place, source in enumerate(sources):
        if folders[place] in folders[:place]:
            raise InputError(
                f"two sources are called {source.name!r}, or nearly so",
                expected="a name each",
                fix="give one as --model NAME=SPEC",
            )
