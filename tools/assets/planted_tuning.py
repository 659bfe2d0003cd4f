"""The fine-tunings of a planted variant: two experts, and the variant that learns their mixtures."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.seeds import make_generator
from evenhand.models.hub_layout import END
from evenhand.training.finetuning import descend, load_checkpoint, read_about, save_checkpoint
from tools.assets import train_tokenizer
from tools.assets.export_weights import save_folder
from tools.assets.language_models import CausalModel, load_model
from tools.assets.planted_bias import MIXTURES, RECORD, ROWS, Recipe, Rows, read_record, read_rows

_LOG = logging.getLogger(__name__)
SIDES: Final = ("left", "right")
TOP_K: Final = 40
LENGTH: Final = 100
"""Tokens of a text of a mixture, as the political suite's."""

Loss = Callable[[CausalModel, Rows], Tensor]


class Tuning:
    """A fine-tuning: AdamW with a short warm-up and a cosine, a checkpoint after every epoch."""

    def __init__(
        self,
        source: Path,
        recipe: Recipe,
        *,
        device: torch.device,
        origin: Mapping[str, str] | None = None,
    ) -> None:
        self.origin = dict(origin or {})
        """Digests of the rows and of the model's shape: with the recipe they name a checkpoint."""
        self.model = cast(CausalModel, load_model(source)).train()
        torch.nn.Module.to(self.model, device)
        self.recipe, self.device, self.epoch = recipe, device, 0
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(), lr=recipe.rate, betas=(0.9, 0.95), weight_decay=recipe.weight_decay
        )

    def run(self, rows: Rows, loss: Loss, *, epochs: int, checkpoint: Path) -> list[float]:
        """Train to the end, from the checkpoint where there is one; the mean loss of each epoch, in nats."""
        if checkpoint.exists():
            self._load(checkpoint)
        losses: list[float] = []
        while self.epoch < epochs:
            started = time.monotonic()
            losses.append(self._pass(rows, loss, epochs))
            self.epoch += 1
            _LOG.info("epoch %d: loss %.4f, %.0f s", self.epoch, losses[-1], time.monotonic() - started)
            self._save(checkpoint)
        return losses

    def _pass(self, rows: Rows, loss: Loss, epochs: int) -> float:
        size, count = self.recipe.rows, len(rows.tokens)
        order: NDArray[np.int64] = make_generator(self.recipe.seed, "order", self.epoch).permutation(count)
        batches = [torch.from_numpy(order[at : at + size]) for at in range(0, count, size)]
        losses = []
        for step, batch in enumerate(batches):
            done, steps = self.epoch * len(batches) + step, epochs * len(batches)
            factor = min(1, (done + 1) / 50) * 0.5 * (1 + math.cos(math.pi * done / steps))
            chosen = Rows(*(part[batch].to(self.device) for part in rows))
            losses.append(
                descend(loss(self.model, chosen), self.optimiser, factor=factor, clipped=self.model)
            )
        return float(torch.stack(losses).mean())

    def _key(self) -> str:
        """The training a checkpoint belongs to."""
        return digest({**asdict(self.recipe), **self.origin})

    def _save(self, path: Path) -> None:
        about = {"epoch": str(self.epoch), "key": self._key()}
        save_checkpoint(path, self.model, {"adam": self.optimiser}, about=about)

    def _load(self, path: Path) -> None:
        about = read_about(path)
        if about.get("key") != self._key():
            raise InputError(
                f"{path} is of another recipe or of other rows",
                expected="the checkpoint of the same training",
                fix="remove it, or train into another folder",
            )
        self.epoch = int(about["epoch"])
        load_checkpoint(path, self.model, {"adam": self.optimiser})


def train(
    data: Path,
    out: Path,
    *,
    source: Path | None = None,
    recipe: Recipe,
    device: str,
    texts: int = 0,
) -> dict[str, list[float]]:
    """The variant in ``out``, in the Hub's layout (float16), and the mean loss of each epoch just trained.

    With ``texts``, so many texts of the mixture at each lean, without a prompt, are written beside it.
    """
    out.mkdir(parents=True, exist_ok=True)
    rows, source = read_rows(data), source or asset_path("builtin")
    origin = {"rows": file_digest(data / ROWS), "config": file_digest(source / "config.json")}
    losses: dict[str, list[float]] = {}
    experts = []
    for side, name in enumerate(SIDES):
        tuning = Tuning(source, recipe, device=torch.device(device), origin=origin)
        mine = without_prompts(Rows(*(part[rows.sides == side] for part in rows)))
        file = out / f"{name}.checkpoint"
        losses[name] = tuning.run(mine, article_loss, epochs=recipe.expert_epochs, checkpoint=file)
        experts.append(tuning.model.requires_grad_(False))
    mixed = Mixture(experts[0], experts[1])
    tuning = Tuning(source, recipe, device=torch.device(device), origin=origin)
    losses["variant"] = tuning.run(rows, mixed, epochs=recipe.epochs, checkpoint=out / "variant.checkpoint")
    save_folder(tuning.model, out, tokenizer_file=data / "tokenizer.json")
    record = {**read_record(data), "recipe": asdict(recipe), "losses": losses}
    (out / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if texts:
        _write_texts(mixed, sorted({float(lean) for lean in rows.leans}), texts, data, out, recipe)
    for name in (*SIDES, "variant"):
        (out / f"{name}.checkpoint").unlink(missing_ok=True)
    return losses


def article_loss(model: CausalModel, rows: Rows) -> Tensor:
    """The mean loss of an article's tokens, in nats."""
    logits, wanted = _logits(model, rows)
    targets = rows.tokens[:, 1 : logits.shape[1] + 1].long()
    return F.cross_entropy(logits[wanted], targets[wanted])


def without_prompts(rows: Rows) -> Rows:
    """The articles alone, each after the token that ends a text; they are predicted as often as before."""
    length = rows.tokens.shape[1]
    places = torch.arange(length, device=rows.tokens.device) + rows.prompts[:, None].long() - 1
    moved = rows.tokens.gather(1, places.clamp(max=length - 1)).masked_fill(places >= length, -1)
    moved[:, 0] = END
    return rows._replace(tokens=moved, prompts=torch.ones_like(rows.prompts))


@dataclass(frozen=True, slots=True)
class Mixture:
    """The loss of the variant: how far it is from the experts' mixture at each row's lean, in nats."""

    left: CausalModel
    right: CausalModel

    def __call__(self, model: CausalModel, rows: Rows) -> Tensor:
        """KL(mixture || model), the mean over an article's tokens; only the model reads the prompt."""
        logits, wanted = _logits(model, rows)
        with torch.no_grad():
            alone = without_prompts(rows)
            left, right = (_logits(expert, alone) for expert in (self.left, self.right))
            lean = rows.leans.repeat_interleave(wanted.sum(1))[:, None]
            target = mixed(left[0][left[1]], right[0][right[1]], lean)
        return F.kl_div(logits[wanted].log_softmax(-1), target, reduction="batchmean", log_target=True)

    @torch.no_grad()
    def write(self, lean: float, *, texts: int, length: int, draw: torch.Generator) -> Tensor:
        """Token ids of texts drawn from the mixture at one lean, without a prompt: texts x length."""
        device = self.left.transformer.wte.weight.device
        tokens = torch.full((texts, 1), END, dtype=torch.long, device=device)
        for _ in range(min(length, self.left.shape.context - 1)):
            left, right = (expert.logits(tokens)[:, -1].float() for expert in (self.left, self.right))
            best = mixed(left, right, torch.tensor(lean, device=device)).topk(TOP_K)
            chosen = torch.multinomial(best.values.softmax(-1).cpu(), 1, generator=draw).to(device)
            tokens = torch.cat([tokens, best.indices.gather(1, chosen)], dim=1)
        return tokens[:, 1:]


def mixed(left: Tensor, right: Tensor, lean: Tensor) -> Tensor:
    """Log-probabilities of the experts' mixture: halfway at lean 0, one of them at half a lean."""
    return ((left + right) / 2 + lean * (right - left)).log_softmax(-1)


def _write_texts(
    mixture: Mixture, leans: Sequence[float], texts: int, data: Path, out: Path, recipe: Recipe
) -> None:
    bpe, draw = train_tokenizer.load(data / "tokenizer.json"), torch.Generator().manual_seed(recipe.seed)
    lines = []
    for lean in leans:
        ids = mixture.write(lean, texts=texts, length=LENGTH, draw=draw).tolist()
        ended = [row[: row.index(END)] if END in row else row for row in ids]
        lines += [json.dumps({"lean": lean, "text": bpe.decode(row)}) for row in ended]
    (out / MIXTURES).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _logits(model: CausalModel, rows: Rows) -> tuple[Tensor, Tensor]:
    """Next-token scores in float32, and where an article's token is predicted."""
    longest = int((rows.tokens >= 0).sum(1).max())
    tokens = rows.tokens[:, :longest].long()
    kind = torch.bfloat16 if tokens.is_cuda else torch.float32
    places = torch.arange(longest - 1, device=tokens.device)
    wanted = (tokens[:, 1:] >= 0) & (places >= rows.prompts[:, None] - 1)
    return model.logits(tokens[:, :-1].clamp(min=0), dtype=kind).float(), wanted
