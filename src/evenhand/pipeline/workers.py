"""What works in an actor of a cluster: a model and metrics, made there from names and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, cast

from evenhand._version import __version__
from evenhand.core import errors, registry
from evenhand.core.cluster import enter
from evenhand.core.errors import EvenhandError
from evenhand.core.protocols import Metric, Model, ResolvesSpec, Served, Wide
from evenhand.core.records import Completion, Execution, GenerationSpec, ModelRef, Request, Text
from evenhand.core.registry import Option
from evenhand.pipeline.asking import Answers, ask


@dataclass(frozen=True, slots=True)
class ModelRecipe:
    """A model by name, with the mitigation it writes with."""

    name: str
    options: Mapping[str, Option] = field(default_factory=dict)
    mitigation: str | None = None
    mitigation_options: Mapping[str, Option] = field(default_factory=dict)

    def plain(self, execution: Execution) -> Model:
        """The model without the mitigation, loaded."""
        return registry.model(self.name, self.options, execution)

    def mitigated(self, model: Model) -> Model:
        """A model with the mitigation on, where there is one."""
        if self.mitigation is None:
            return model
        return registry.mitigation(self.mitigation, self.mitigation_options).apply(model)


@dataclass(frozen=True, slots=True)
class Recipe:
    """All an actor needs to know: names and options, no objects."""

    execution: Execution
    model: ModelRecipe | None = None
    folder: str = field(default_factory=lambda: str(Path.cwd()))
    """Where relative paths begin."""


class Refused(NamedTuple):
    """An error of ours on its way home."""

    kind: str
    came: str
    accepted: str
    todo: str

    def error(self) -> EvenhandError:
        """The error, to be raised again."""
        kind = cast("type[EvenhandError]", getattr(errors, self.kind, EvenhandError))
        return kind(self.came, accepted=self.accepted, todo=self.todo)


class Worker:
    """Loads on first use, then answers; an error of ours comes back as a value, with all of its parts."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._models: tuple[Model, Model] | None = None
        self._metrics: dict[str, Metric] = {}
        enter(recipe.folder)

    def do(self, work: str, *given: object) -> object:
        """What one of the works below gives, or why it was refused."""
        asked: Callable[..., object] = getattr(self, work)
        try:
            return asked(*given)
        except EvenhandError as error:
            return Refused(type(error).__name__, error.came, error.accepted, error.todo)

    def ready(self) -> str:
        """The version of the package, once the actor is there."""
        return __version__

    def ref(self) -> ModelRef:
        """Which model this is, as this machine loads it."""
        return self._both()[1].ref

    def resolved(self, spec: GenerationSpec) -> GenerationSpec:
        """The spec as the model will follow it, asked before a mitigation as it is here."""
        model = self._both()[0]
        return model.resolved(spec) if isinstance(model, ResolvesSpec) else spec

    def served_by(self) -> dict[str, str]:
        """What a host said of itself; empty for a model that is here."""
        model = self._both()[1]
        return dict(model.served_by) if isinstance(model, Served) else {}

    def at_once(self) -> int:
        """How many texts to ask for together."""
        model = self._both()[1]
        return model.at_once if isinstance(model, Wide) else 1

    def generate(self, requests: Sequence[Request], spec: GenerationSpec) -> list[Completion]:
        """The completions of a shard, or of a group of them."""
        return list(self._both()[1].generate(requests, spec))

    def score(self, spec: str, options: Mapping[str, Option], texts: Sequence[Text]) -> Answers:
        """The scores of a block."""
        if spec not in self._metrics:
            self._metrics[spec] = cast(Metric, registry.metric(spec, options, self._recipe.execution))
        return ask(spec, self._metrics[spec], texts)

    def _both(self) -> tuple[Model, Model]:
        """The model as it is, and with its mitigation."""
        if self._models is None:
            recipe = self._recipe.model
            assert recipe is not None
            plain = recipe.plain(self._recipe.execution)
            self._models = plain, recipe.mitigated(plain)
        return self._models
