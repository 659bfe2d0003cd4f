"""One fit of a classifier, whatever stands behind its name: a network, three that vote, a lexicon, a line."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from numpy.typing import NDArray

from evenhand.core.errors import InputError
from evenhand.core.protocols import Progress
from evenhand.store.atomic import naming_storage_errors
from evenhand.training.analysers import ANALYSERS, Analyser
from evenhand.training.examples import Examples
from evenhand.training.job_folder import CHECKPOINT
from evenhand.training.recipe import Epoch, Recipe

if TYPE_CHECKING:
    from evenhand.neural.word_networks import Kind
    from evenhand.training.backbones import Backbone

LINEAR: Final = "linear"
LSTM: Final = "lstm"
OVER_WORDS: Final = ("fasttext", "attention", "small-transformer")
"""Networks over the words of the training texts, beside the LSTM."""
ENSEMBLE: Final = "ensemble"
MEMBERS: Final = 3
_VOTERS: Final = "builtin:masked"
"""What three copies of vote where nothing else is named."""

Probabilities = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Fitted:
    """A classifier that has learned, and how that went."""

    probabilities: Callable[[Sequence[str]], Probabilities]
    """One row a text, one column a label."""
    used: Mapping[str, str]
    """What a card says of the fit."""
    history: tuple[Epoch, ...] = ()


@dataclass(frozen=True, slots=True)
class Fit:
    """How a classifier is fitted to examples."""

    task: str
    backbone: str
    recipe: Recipe
    longest: int
    device: str = "auto"
    offline: bool = False

    def run(self, examples: Examples, folder: Path, progress: Progress, *, checkpoint: Path) -> Fitted:
        """The fitted classifier, stored in the folder; goes on from a checkpoint where there is one."""
        if self.backbone in ANALYSERS:
            return Fitted(Analyser(self.backbone, examples.labels).probabilities, {})
        if kind_of(self.backbone) == ENSEMBLE:
            return self._vote(examples, folder, progress)
        return self._tune(examples, folder, progress, checkpoint)

    def steps(self, texts: int) -> int:
        """Steps of all networks together."""
        networks = len(members_of(self.backbone)) if kind_of(self.backbone) == ENSEMBLE else 1
        return -(-texts // self.recipe.batch) * self.recipe.epochs * networks

    def _tune(self, examples: Examples, folder: Path, progress: Progress, checkpoint: Path) -> Fitted:
        from evenhand.neural.devices import device_of
        from evenhand.training.finetune import Coded, FineTuning

        backbone = self._open(examples)
        coded = [
            Coded(backbone.encode(data.texts), examples.truth(data))
            for data in (examples.train, examples.held_out)
        ]
        device = device_of(self.device)
        tuning = FineTuning(backbone.network, self.recipe, padding=backbone.padding, device=device)
        started = time.monotonic()
        steps = self.steps(len(examples.train.texts))
        with progress.step("training", steps) as advance, naming_storage_errors(folder):
            history = tuning.run(*coded, checkpoint=checkpoint, on_step=advance)
            backbone.save(folder)
        used = {
            "weights at the start": backbone.revision,
            "tokens read": str(backbone.longest),
            "time": f"{time.monotonic() - started:,.0f} s on {device.type}, since it was last started",
        }

        def probabilities(texts: Sequence[str]) -> Probabilities:
            found: Probabilities = tuning.logits(backbone.encode(texts)).softmax(-1).numpy()
            return found

        return Fitted(probabilities, used, tuple(history))

    def _vote(self, examples: Examples, folder: Path, progress: Progress) -> Fitted:
        from evenhand.neural import ensemble

        names = [f"member-{number}" for number in range(MEMBERS)]
        fits = []
        for number, (name, backbone) in enumerate(zip(names, members_of(self.backbone), strict=True)):
            (folder / name).mkdir(exist_ok=True)
            # Seeds far apart: the members of the next run must not be members of this one.
            recipe = replace(self.recipe, seed=self.recipe.seed + 1000 * (number + 1))
            member = replace(self, backbone=backbone, recipe=recipe)
            checkpoint = folder / name / CHECKPOINT
            fits.append(member.run(examples, folder / name, progress, checkpoint=checkpoint))
        for name in names:
            (folder / name / CHECKPOINT).unlink(missing_ok=True)
        ensemble.save(folder, members=names, labels=examples.labels)
        used = {
            f"member {number + 1}": fit.used.get("weights at the start", "")
            for number, fit in enumerate(fits)
        }

        def probabilities(texts: Sequence[str]) -> Probabilities:
            return ensemble.votes([fit.probabilities(texts) for fit in fits])

        return Fitted(probabilities, used)

    def _open(self, examples: Examples) -> Backbone:
        from evenhand.training.backbones import open_backbone
        from evenhand.training.lstm import LstmBackbone
        from evenhand.training.word_networks import WordBackbone

        if kind_of(self.backbone) == LSTM:
            return LstmBackbone(
                examples.train.texts,
                examples.labels,
                vectors=self.backbone.partition(":")[2],
                longest=self.longest,
                seed=self.recipe.seed,
            )
        if kind_of(self.backbone) in OVER_WORDS:
            return WordBackbone(
                cast("Kind", self.backbone),
                examples.train.texts,
                examples.labels,
                longest=self.longest,
                seed=self.recipe.seed,
            )
        return open_backbone(
            self.backbone,
            task=self.task,
            labels=examples.labels,
            longest=self.longest,
            seed=self.recipe.seed,
            offline=self.offline,
        )


def kind_of(backbone: str) -> str:
    """``linear``, an analyser, ``lstm``, a network over words, ``ensemble``, or else ``transformer``."""
    if backbone in OVER_WORDS:
        return backbone
    first = backbone.partition(":")[0]
    return first if first in (LINEAR, LSTM, ENSEMBLE, *ANALYSERS) else "transformer"


def members_of(backbone: str) -> tuple[str, ...]:
    """The three that vote: ``ensemble:A+B+C``, or three copies of one name with seeds of their own.

    >>> members_of("ensemble:lstm")
    ('lstm', 'lstm', 'lstm')
    """
    names = (backbone.partition(":")[2] or _VOTERS).split("+")
    members = tuple(names * MEMBERS if len(names) == 1 else names)
    if (
        len(members) != MEMBERS
        or not all(members)
        or any(kind_of(name) not in (LSTM, *OVER_WORDS, "transformer") for name in members)
    ):
        raise InputError(
            f"the ensemble {backbone!r} has {len(names)} member(s)",
            accepted="one name, or three joined by +, each a transformer or a network over words",
            todo="for example ensemble:builtin:masked or ensemble:lstm+lstm:embedded+builtin:masked",
        )
    return members
