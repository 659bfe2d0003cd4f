"""One training of a steering head: texts of two sides read by the model, a head fitted, measured, stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from evenhand.core import registry
from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import InputError
from evenhand.core.protocols import Progress, SteerableModel
from evenhand.core.records import Execution
from evenhand.mitigations.calibrator import FILE, Calibrator, save_calibrator
from evenhand.store.atomic import naming_storage_errors, replacing, write_text
from evenhand.store.files import read_table
from evenhand.training.calibrator import Places, Recipe, fit, places_of
from evenhand.training.card import classifier_card
from evenhand.training.held_out import HeldOut
from evenhand.training.job_folder import JobFolder
from evenhand.training.split import SHARE, divide

LEAST: Final = 20
"""Texts of a side below which there is nothing to learn from."""


class SidedTexts(NamedTuple):
    """Texts of two sides, and how many rows had another label or none."""

    texts: tuple[str, ...]
    seconds: tuple[bool, ...]
    """True where a text is of the second side."""
    sides: tuple[str, str]
    skipped: Mapping[str, int]


def read_sided(path: Path, *, text: str, label: str, sides: Sequence[str] = ()) -> SidedTexts:
    """The texts of a table's two labels; with ``sides`` of these two, and the others are counted."""
    table = read_table(path, {"--text": text, "--label": label})
    rows = [(words or "", str(given or "")) for words, given in table.select(text, label).iter_rows()]
    known = sorted({given for _, given in rows if given})
    chosen = tuple(sides) or tuple(known)
    if len(chosen) != 2 or chosen[0] == chosen[1] or not set(chosen) <= set(known):
        raise InputError(
            f"the labels of {path.name} are {', '.join(known[:10]) or 'none'}"
            + (f", the sides {', '.join(sides)}" if sides else ""),
            accepted="two different labels that occur, one for each side",
            todo="say which: --sides FIRST,SECOND",
        )
    kept = [(words, given) for words, given in rows if words.strip() and given in chosen]
    skipped = Counter("another label, or none" if words.strip() else "no text" for words, given in rows)
    skipped["another label, or none"] -= sum(1 for words, given in rows if words.strip() and given in chosen)
    few = [side for side in chosen if sum(given == side for _, given in kept) < LEAST]
    if few:
        raise InputError(
            f"{path.name} has fewer than {LEAST} texts labelled {few[0]!r}",
            accepted=f"{LEAST} texts of each side; a thousand is a good start",
            todo="label more texts",
        )
    return SidedTexts(
        tuple(words for words, _ in kept),
        tuple(given == chosen[1] for _, given in kept),
        (chosen[0], chosen[1]),
        {reason: count for reason, count in skipped.items() if count},
    )


@dataclass(frozen=True, slots=True)
class CalibratorJob:
    """A training of a head with its data read and checked."""

    model: str
    data: Path
    columns: tuple[str, str]
    examples: SidedTexts
    recipe: Recipe
    execution: Execution

    def identity(self) -> dict[str, Json]:
        """What decides the result, apart from the machine."""
        return {
            "task": "calibrator",
            "model": self.model,
            "data": file_digest(self.data),
            "columns": list(self.columns),
            "sides": list(self.examples.sides),
            **asdict(self.recipe),
        }

    def lines(self) -> tuple[str, ...]:
        """What will be done."""
        sides = self.examples.sides
        return (
            f"model    {self.model}",
            f"texts    {len(self.examples.texts):,}; {SHARE:.0%} held out; {sides[0]} against {sides[1]}",
            f"head     dense, tanh, dense on what has accumulated of a text ({self.recipe.states} states)",
        )

    def run(self, folder: JobFolder, progress: Progress) -> Mapping[str, float]:
        """Read the texts with the model, fit the head, measure it on held-out texts, write it with a card."""
        model = steerable(self.model, self.execution)
        found = divide(
            self.examples.texts, [str(second) for second in self.examples.seconds], seed=self.recipe.seed
        )
        with progress.step("reading", len(self.examples.texts)) as advance:
            train = self._places(model, found.train, advance)
            held_out = self._places(model, found.held_out, advance)
        with progress.step("training", None):
            head = fit(
                train,
                self.recipe,
                labels=self.examples.sides,
                ref=model.ref,
            )
        with naming_storage_errors(folder.path), replacing(folder.path / FILE) as path:
            save_calibrator(head, path)
        return self._finish(folder, head, held_out)

    def _places(self, model: SteerableModel, chosen: Sequence[int], advance: Callable[[int], None]) -> Places:
        states = token_states(model, [self.examples.texts[index] for index in chosen], self.recipe)
        seconds = [self.examples.seconds[index] for index in chosen]
        return places_of(states, seconds, self.recipe, on_text=advance)

    def _finish(self, folder: JobFolder, head: Calibrator, places: Places) -> Mapping[str, float]:
        sides = self.examples.sides
        last = head.logit(places.states[places.last]).sigmoid().numpy()
        truth = places.seconds[places.last].long().numpy()
        outcome = HeldOut.of(np.stack([1 - last, last], 1), truth, sides, majority_label=self._majority())
        anywhere = float(((head.logit(places.states) > 0) == (places.seconds > 0.5)).float().mean())
        card = classifier_card(
            title=f"Calibrator of `{self.model}`: {sides[0]} against {sides[1]}",
            settings=self._settings(head) | {"right at any place of a held-out text": f"{anywhere:.3f}"},
            held_out=outcome,
            yardstick=None,
            history=[],
            notes=(
                *[f"Rows left out: {count}, {reason}" for reason, count in self.examples.skipped.items()],
                "It steers; it must not judge. Measure with a classifier that learned from other texts.",
            ),
            use=f"```console\nevenhand debias {self.model} --mode classifier --calibrator {folder.path}\n```",
        )
        write_text(folder.path / "card.md", card)
        measures = outcome.measures() | {"accuracy_anywhere": anywhere}
        folder.finish(measures, {"held_out": outcome.to_json()})
        return measures

    def _majority(self) -> str:
        seconds = sum(self.examples.seconds)
        return self.examples.sides[2 * seconds > len(self.examples.seconds)]

    def _settings(self, head: Calibrator) -> dict[str, object]:
        recipe = self.recipe
        return {
            "model": f"{head.model}, revision {head.revision}",
            "data": f"{self.data.name}, BLAKE2b-128 {file_digest(self.data)}",
            "texts": f"{len(self.examples.texts):,}, {SHARE:.0%} held out, near-identical ones on one side",
            "states": f"{recipe.states}, discount {recipe.discount}, {recipe.places} places of a text",
            "training": f"AdamW, {recipe.epochs} epochs, rate {recipe.rate:g}, seed {recipe.seed}",
        }


def token_states(model: SteerableModel, texts: Sequence[str], recipe: Recipe) -> Iterator[Tensor]:
    """What stands for the tokens of each text, tokens x width."""
    if recipe.states == "hidden":
        yield from model.hidden_states(texts, longest=recipe.longest)
        return
    anatomy = model.anatomy()
    for row in anatomy.encode(texts):
        chosen = torch.tensor(row[: recipe.longest], dtype=torch.long, device=anatomy.table.device)
        yield anatomy.table[chosen].float()


def steerable(name: str, execution: Execution) -> SteerableModel:
    """The model of a name; an error where its hidden states are out of reach."""
    model = registry.model(name, None, execution)
    if isinstance(model, SteerableModel):
        return model
    raise InputError(
        f"the model {name!r} cannot be steered: its hidden states are not on this machine",
        accepted="builtin, a folder, a Hub id or a .gguf file of a causal model",
        todo="name such a model",
    )
