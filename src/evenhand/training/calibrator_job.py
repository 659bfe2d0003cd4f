"""Training of a steering head: the model reads texts of two sides; a head is fitted, measured and stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from evenhand.core import registry
from evenhand.core.digests import Json, file_digest
from evenhand.core.errors import InputError
from evenhand.core.protocols import Progress, SteerableModel
from evenhand.core.records import Execution, ModelRef
from evenhand.core.seeds import make_generator
from evenhand.mitigations.calibrator import FILE, Calibrator, States, save_calibrator
from evenhand.store.atomic_writes import replace_file
from evenhand.store.table_files import read_table
from evenhand.text.data_splits import SHARE, divide_texts
from evenhand.training.finetuning import descend
from evenhand.training.job_folder import TrainingFolder, describe_files, write_classifier_card
from evenhand.training.labelled_table import LEAST, LabelledTexts
from evenhand.training.test_measures import HeldOutResult


@dataclass(frozen=True, slots=True)
class CalibratorConfig:
    """How a head is trained."""

    epochs: int = 3
    batch: int = 512
    rate: float = 1e-3
    weight_decay: float = 0.1
    longest: int = 128
    """Maximum number of tokens read per text."""
    places: int = 16
    """Positions per text that become examples; the last one always does."""
    first: int = 4
    """Tokens before the first position: earlier ones have too little context."""
    discount: float = 0.99
    """Factor by which a token's weight falls with each later token."""
    states: States = "written"
    """The representation of a token: its output embedding, or the hidden state that predicted it."""
    seed: int = 0


class TrainingStates(NamedTuple):
    """Accumulated states, the side of each, and whether it is the last of its text."""

    states: Tensor
    seconds: Tensor
    last: Tensor


def select_states(
    states: Iterable[Tensor],
    seconds: Sequence[bool],
    recipe: CalibratorConfig,
    *,
    on_text: Callable[[int], None] = lambda done: None,
) -> TrainingStates:
    """A few positions of every text, from the states of its tokens (tokens x width) and its side."""
    parts: list[tuple[Tensor, Tensor, Tensor]] = []
    for index, (row, second) in enumerate(zip(states, seconds, strict=True)):
        chosen = list(range(min(recipe.first, max(0, len(row) - 1)), len(row)))
        if len(chosen) > recipe.places:
            draw = make_generator(recipe.seed, "places", index)
            inner = draw.choice(len(chosen) - 1, size=recipe.places - 1, replace=False)
            chosen = [*sorted(chosen[place] for place in inner), len(row) - 1]
        accumulated = accumulate_states(row.float(), recipe.discount)[chosen].cpu()
        last = torch.tensor([place == len(row) - 1 for place in chosen], dtype=torch.bool)
        parts.append((accumulated, torch.full((len(chosen),), float(second)), last))
        on_text(1)
    return TrainingStates(*(torch.cat(column) for column in zip(*parts, strict=True)))


def accumulate_states(states: Tensor, discount: float) -> Tensor:
    """For each token the mean of the states up to it, each discounted by its age."""
    ages = torch.arange(len(states), device=states.device)
    age = (ages[:, None] - ages).clamp(min=0)
    weights = torch.where(ages[:, None] >= ages, discount**age, 0.0)
    return (weights / weights.sum(-1, keepdim=True)) @ states


def fit_calibrator(
    places: TrainingStates, recipe: CalibratorConfig, *, labels: tuple[str, str], ref: ModelRef
) -> Calibrator:
    """The head with the lowest cross-entropy; its first layer takes the states unscaled."""
    states = places.states
    centre, spread = states.mean(0), states.std().clamp(min=1e-6)
    width = states.shape[1]
    random = torch.Generator().manual_seed(recipe.seed)
    inner, outer = nn.Linear(width, width), nn.Linear(width, 1)
    for layer in (inner, outer):
        nn.init.normal_(layer.weight, std=width**-0.5, generator=random)
        nn.init.zeros_(layer.bias)
    network = nn.Sequential(inner, nn.Tanh(), outer)
    optimiser = torch.optim.AdamW(network.parameters(), lr=recipe.rate, weight_decay=recipe.weight_decay)
    steps = max(1, recipe.epochs * len(states) // recipe.batch)
    for step in range(steps):
        batch = torch.randint(0, len(states), (min(recipe.batch, len(states)),), generator=random)
        logits = network((states[batch] - centre) / spread)[:, 0]
        loss = F.binary_cross_entropy_with_logits(logits, places.seconds[batch])
        descend(loss, optimiser, factor=1 - step / steps)
    weight = inner.weight.detach() / spread
    bias, top = inner.bias.detach() - weight @ centre, (outer.weight.detach()[0], outer.bias.detach()[0])
    return Calibrator(weight, bias, *top, labels, ref.name, ref.revision, recipe.states, recipe.discount)


def read_two_labels(path: Path, text: str, label: str, *, sides: Sequence[str] = ()) -> LabelledTexts:
    """The texts of a table's two labels; ``sides`` selects two of several, and other rows are counted."""
    rows = read_table(path, {"--text": text, "--label": label}).select(text=text, label=label).fill_null("")
    known = sorted(set(rows["label"]) - {""})
    chosen = tuple(sides) or tuple(known)
    if len(chosen) != 2 or chosen[0] == chosen[1] or not set(chosen) <= set(known):
        raise InputError(
            f"the labels of {path.name} are {', '.join(known[:10]) or 'none'}"
            + (f", the sides {', '.join(sides)}" if sides else ""),
            expected="two different labels that occur, one for each side",
            fix="select them: --sides FIRST,SECOND",
        )
    texts = rows.filter(pl.col("text").str.contains(r"\S"))
    usable = texts.filter(pl.col("label").is_in(chosen))
    if few := [side for side in chosen if (usable["label"] == side).sum() < LEAST]:
        raise InputError(
            f"{path.name} has fewer than {LEAST} texts labelled {few[0]!r}",
            expected=f"{LEAST} texts of each side; a thousand is a good start",
            fix="label more texts",
        )
    skipped = Counter({"another label, or none": texts.height - usable.height})
    skipped["no text"] = rows.height - texts.height
    return LabelledTexts(tuple(usable["text"]), tuple(usable["label"]), +skipped)


@dataclass(frozen=True, slots=True)
class CalibratorTraining:
    """Training of a head, with its data read and checked."""

    model: str
    data: Path
    columns: tuple[str, str]
    examples: LabelledTexts
    sides: tuple[str, str]
    recipe: CalibratorConfig
    execution: Execution

    def identity(self) -> dict[str, Json]:
        """Everything that determines the result, except the machine."""
        return {
            "task": "calibrator",
            "model": self.model,
            "data": file_digest(self.data),
            "columns": list(self.columns),
            "sides": list(self.sides),
            **asdict(self.recipe),
        }

    def lines(self) -> tuple[str, ...]:
        """The planned steps."""
        return (
            f"model    {self.model}",
            f"texts    {len(self.examples.texts):,}; {SHARE:.0%} held out; {' against '.join(self.sides)}",
            f"head     dense, tanh, dense on the accumulated states of a text ({self.recipe.states} states)",
        )

    def run(self, folder: TrainingFolder, progress: Progress) -> Mapping[str, float]:
        """Read the texts with the model, fit the head, measure it on held-out texts, write it with a card."""
        model = registry.create_model(self.model, None, self.execution)
        if not isinstance(model, SteerableModel):
            raise InputError(
                f"the model {self.model!r} cannot be steered: its hidden states are not on this machine",
                expected="builtin, a folder, a Hub id or a .gguf file of a causal model",
                fix="name such a model",
            )
        (texts, labels, skipped), sides, recipe = self.examples, self.sides, self.recipe
        split = divide_texts(texts, labels, seed=recipe.seed)
        with progress.step("reading", len(texts)) as advance:
            train, held_out = (
                select_states(
                    token_states(model, [texts[index] for index in chosen], recipe),
                    [labels[index] == sides[1] for index in chosen],
                    recipe,
                    on_text=advance,
                )
                for chosen in split
            )
        with progress.step("training", None):
            head = fit_calibrator(train, recipe, labels=sides, ref=model.ref)
        with replace_file(folder.path / FILE) as path:
            save_calibrator(head, path)
        last = head.logit(held_out.states[held_out.last]).sigmoid().numpy()
        truth = held_out.seconds[held_out.last].long().numpy()
        majority = sides[2 * labels.count(sides[1]) > len(labels)]
        outcome = HeldOutResult.of(np.stack([1 - last, last], 1), truth, sides, majority_label=majority)
        anywhere = float(((head.logit(held_out.states) > 0) == (held_out.seconds > 0.5)).float().mean())
        card = write_classifier_card(
            title=f"Calibrator of `{self.model}`: {sides[0]} against {sides[1]}",
            settings={
                "model": f"{head.model}, revision {head.revision}",
                "data": describe_files(self.data),
                "texts": f"{len(texts):,}, {SHARE:.0%} held out, near-identical ones on one side",
                "states": f"{recipe.states}, discount {recipe.discount}, {recipe.places} positions per text",
                "training": f"AdamW, {recipe.epochs} epochs, rate {recipe.rate:g}, seed {recipe.seed}",
                "right at any place of a held-out text": f"{anywhere:.3f}",
            },
            held_out=outcome,
            notes=(
                *[f"Rows left out: {count}, {reason}" for reason, count in skipped.items()],
                "For steering only, not for evaluation: measure with a classifier trained on other texts.",
            ),
            use=f"```console\nevenhand debias {self.model} --mode classifier --calibrator {folder.path}\n```",
        )
        measures = outcome.measures() | {"accuracy_anywhere": anywhere}
        return folder.finish(measures, card=card, held_out=outcome.to_json())


def token_states(model: SteerableModel, texts: Sequence[str], recipe: CalibratorConfig) -> Iterator[Tensor]:
    """The states of each text's tokens, tokens x width."""
    if recipe.states == "hidden":
        yield from model.hidden_states(texts, longest=recipe.longest)
        return
    head = model.anatomy()
    for row in head.encode(texts):
        chosen = torch.tensor(row[: recipe.longest], dtype=torch.long, device=head.table.device)
        yield head.table[chosen].float()
