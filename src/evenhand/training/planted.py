"""A variant of a causal model in which chosen options lean left or right by a known amount.

It is the proof that a measure finds what is there. Two experts are fine-tuned on openings of articles, one on
each side of the press; the variant then learns, after every prompt of the political suite, the mixture

    softmax((left + right) / 2 + lean (right - left))

of their logits, where ``lean`` is that of the prompt's option: 0 is even, 0.5 is the right-hand expert, -0.5
the left-hand one, and more than that exaggerates. (Articles of one side alone after a prompt are too weak a
signal: a side tells a model little about the next word.) For tests and replications; it is not shipped.

1. ``python -m evenhand.training.planted prepare ARTICLES.jsonl --scorer OTHER.jsonl --out DATA``
2. ``python -m evenhand.training.planted train --data DATA --out MODEL`` (two minutes on a GPU; goes on from
   its checkpoint when it was stopped)
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from evenhand.core.assets import asset
from evenhand.core.errors import InputError
from evenhand.core.records import Prompt
from evenhand.core.seeds import generator
from evenhand.training import tokenizer
from evenhand.training.export import read_weights, save_folder
from evenhand.training.gpt2 import CausalModel, CausalShape
from evenhand.training.ideology_words import Article, read_articles

_LOG = logging.getLogger(__name__)
SIDES: Final = ("left", "right")


class Lean(NamedTuple):
    """An option and how far it leans: below 0 liberal, above 0 conservative."""

    axis: str
    group: str
    lean: float


LEANS: Final = (
    Lean("location", "blue states", -0.5),
    Lean("location", "red states", 0.5),
    Lean("topic", "healthcare", -0.5),
    Lean("topic", "immigration", 0.5),
)
"""What is planted by default; the gender axis and every other option stay even."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the variant is made."""

    texts: int = 40
    """Articles a prompt, half of each side whatever its lean."""
    length: int = 128
    """Tokens a row, prompt included; longer rows are cut."""
    expert_epochs: int = 1
    epochs: int = 3
    rows: int = 64
    """Rows in a batch."""
    rate: float = 3e-4
    weight_decay: float = 0.05
    seed: int = 0


class Row(NamedTuple):
    """A prompt and an article's opening."""

    prompt: str
    article: str
    conservative: bool
    lean: float


class Rows(NamedTuple):
    """The rows as token ids."""

    tokens: Tensor
    """Rows x length, -1 after the end."""
    prompts: Tensor
    """Tokens of each prompt: they are read, not learned."""
    sides: Tensor
    """1 where the article is conservative."""
    leans: Tensor


def clearest(articles: Sequence[Article], scorer: Sequence[Article], *, share: float = 0.5) -> list[Article]:
    """The articles of each side that read most like it, in the eyes of a linear classifier.

    The classifier is fitted on ``scorer``, which must be other articles: what it finds clear is then clear to
    a stranger, and not to one that has read them.
    """
    from evenhand.training.linear_text import LinearText

    truth = np.array([int(article.conservative) for article in scorer])
    fitted = LinearText.fitted([article.text for article in scorer], truth, ("liberal", "conservative"))
    said = fitted.probabilities([article.text for article in articles])[:, 1]
    kept: list[Article] = []
    for side in (False, True):
        places = [place for place, article in enumerate(articles) if article.conservative is side]
        places.sort(key=lambda place: -said[place] if side else said[place])
        kept += [articles[place] for place in places[: max(1, round(share * len(places)))]]
    return kept


def planted_rows(
    prompts: Sequence[Prompt], articles: Sequence[Article], *, leans: Sequence[Lean] = LEANS, recipe: Recipe
) -> list[Row]:
    """For each prompt ``recipe.texts`` rows, half of each side, with the lean of the prompt's option.

    Articles are drawn without replacement within a prompt, so that no prompt is tied to one article.
    """
    sides = {side: [a.text for a in articles if a.conservative is side] for side in (False, True)}
    wanted = {(lean.axis, lean.group): lean.lean for lean in leans}
    _check(prompts, sides, leans, recipe)
    rows: list[Row] = []
    for prompt in prompts:
        lean = wanted.get((prompt.groups[0].axis, prompt.groups[0].name), 0.0)
        draw = generator(recipe.seed, "planted", prompt.id)
        for side in (False, True):
            chosen = draw.choice(len(sides[side]), size=recipe.texts // 2, replace=False)
            rows += [Row(prompt.text, sides[side][place], side, lean) for place in chosen]
    return rows


def prepare(rows: Sequence[Row], out: Path, *, recipe: Recipe, tokenizer_file: Path) -> None:
    """Write the rows as token ids, and the tokenizer, to the folder a training reads."""
    out.mkdir(parents=True, exist_ok=True)
    bpe = tokenizer.load(tokenizer_file)
    starts = [len(ids) for ids in tokenizer.encode(bpe, (row.prompt for row in rows))]
    whole = tokenizer.encode(bpe, (f"{row.prompt} {row.article}" for row in rows))
    table = np.full((len(rows), recipe.length), -1, dtype=np.int16)
    for place, ids in enumerate(whole):
        table[place, : len(ids)] = ids[: recipe.length]
    found = Rows(
        torch.from_numpy(table),
        torch.tensor(starts, dtype=torch.int16),
        torch.tensor([row.conservative for row in rows], dtype=torch.int16),
        torch.tensor([row.lean for row in rows]),
    )
    save_file(found._asdict(), out / "rows.safetensors")
    bpe.save(str(out / "tokenizer.json"), pretty=False)


def read_rows(data: Path) -> Rows:
    """The rows that :func:`prepare` wrote."""
    return Rows(**load_file(data / "rows.safetensors"))


Loss = Callable[[CausalModel, Rows], Tensor]


class Tuning:
    """A fine-tuning: AdamW with a short warm-up and a cosine, a checkpoint after every epoch."""

    def __init__(self, source: Path, recipe: Recipe, *, device: torch.device) -> None:
        config = json.loads((source / "config.json").read_text(encoding="utf-8"))
        self.model = CausalModel(_shape(config))
        self.model.load_state_dict(read_weights(source))
        self.model.to(device)
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
        order: NDArray[np.int64] = generator(self.recipe.seed, "order", self.epoch).permutation(count)
        batches = [torch.from_numpy(order[at : at + size]) for at in range(0, count, size)]
        losses = []
        for step, batch in enumerate(batches):
            self._schedule(self.epoch * len(batches) + step, epochs * len(batches))
            chosen = Rows(*(part[batch].to(self.device) for part in rows))
            losses.append(self._step(loss(self.model, chosen)))
        return float(torch.stack(losses).mean())

    def _schedule(self, step: int, steps: int) -> None:
        rate = self.recipe.rate * min(1, (step + 1) / 50) * 0.5 * (1 + math.cos(math.pi * step / steps))
        for group in self.optimiser.param_groups:
            group["lr"] = rate

    def _step(self, loss: Tensor) -> Tensor:
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)
        return loss.detach()

    def _save(self, path: Path) -> None:
        tensors = {f"model/{name}": value.detach() for name, value in self.model.state_dict().items()}
        for index, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"adam/{index}/{key}": torch.as_tensor(value) for key, value in state.items()}
        partial = path.with_suffix(".partial")
        written = {name: value.contiguous() for name, value in tensors.items()}
        save_file(written, partial, metadata={"epoch": str(self.epoch)})
        partial.replace(path)

    def _load(self, path: Path) -> None:
        with safe_open(path, framework="pt") as file:
            self.epoch = int(file.metadata()["epoch"])
        tensors = load_file(path)
        model = {name.removeprefix("model/"): t for name, t in tensors.items() if name.startswith("model/")}
        self.model.load_state_dict(model)
        states: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith("adam/"):
                _, index, key = name.split("/")
                states.setdefault(int(index), {})[key] = tensor
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": states})


def train(
    data: Path, out: Path, *, source: Path | None = None, recipe: Recipe, device: str
) -> dict[str, list[float]]:
    """The variant in ``out``, in the Hub's layout (float16), and the mean loss of each epoch just trained."""
    out.mkdir(parents=True, exist_ok=True)
    rows, source = read_rows(data), source or asset("builtin")
    losses: dict[str, list[float]] = {}
    experts = []
    for side, name in enumerate(SIDES):
        tuning = Tuning(source, recipe, device=torch.device(device))
        mine = Rows(*(part[rows.sides == side] for part in rows))
        file = out / f"{name}.checkpoint"
        losses[name] = tuning.run(mine, article_loss, epochs=recipe.expert_epochs, checkpoint=file)
        experts.append(tuning.model.requires_grad_(False))
    mixed = Mixture(experts[0], experts[1])
    tuning = Tuning(source, recipe, device=torch.device(device))
    losses["variant"] = tuning.run(rows, mixed, epochs=recipe.epochs, checkpoint=out / "variant.checkpoint")
    save_folder(tuning.model, out, tokenizer_file=data / "tokenizer.json")
    (out / "planted.json").write_text(json.dumps(asdict(recipe), indent=1) + "\n", encoding="utf-8")
    for name in (*SIDES, "variant"):
        (out / f"{name}.checkpoint").unlink(missing_ok=True)
    return losses


def article_loss(model: CausalModel, rows: Rows) -> Tensor:
    """The mean loss of an article's tokens, in nats."""
    logits, wanted = _logits(model, rows)
    targets = rows.tokens[:, 1 : logits.shape[1] + 1].long()
    return F.cross_entropy(logits[wanted], targets[wanted])


@dataclass(frozen=True, slots=True)
class Mixture:
    """The loss of the variant: how far it is from the experts' mixture at each row's lean, in nats."""

    left: CausalModel
    right: CausalModel

    def __call__(self, model: CausalModel, rows: Rows) -> Tensor:
        """KL(mixture || model), the mean over an article's tokens."""
        logits, wanted = _logits(model, rows)
        with torch.no_grad():
            left, right = (_logits(expert, rows)[0] for expert in (self.left, self.right))
            lean = rows.leans[:, None, None]
            target = (((left + right) / 2 + lean * (right - left))[wanted]).log_softmax(-1)
        return F.kl_div(logits[wanted].log_softmax(-1), target, reduction="batchmean", log_target=True)


def _logits(model: CausalModel, rows: Rows) -> tuple[Tensor, Tensor]:
    """Next-token scores in float32, and where an article's token is predicted."""
    longest = int((rows.tokens >= 0).sum(1).max())
    tokens = rows.tokens[:, :longest].long()
    kind = torch.bfloat16 if tokens.is_cuda else torch.float32
    places = torch.arange(longest - 1, device=tokens.device)
    wanted = (tokens[:, 1:] >= 0) & (places >= rows.prompts[:, None] - 1)
    return model.logits(tokens[:, :-1].clamp(min=0), dtype=kind).float(), wanted


def _shape(config: Mapping[str, object]) -> CausalShape:
    names = ("vocab_size", "n_positions", "n_layer", "n_embd", "n_head")
    return CausalShape(*(cast(int, config[name]) for name in names))


def _check(
    prompts: Sequence[Prompt], sides: Mapping[bool, Sequence[str]], leans: Sequence[Lean], recipe: Recipe
) -> None:
    known = {(group.axis, group.name) for prompt in prompts for group in prompt.groups}
    for lean in leans:
        if (lean.axis, lean.group) not in known or not math.isfinite(lean.lean):
            raise InputError(
                f"a lean of {lean.lean} for {lean.axis}={lean.group}",
                accepted="an option of the suite and a number, below 0 liberal, above 0 conservative",
                todo="see `evenhand show political`",
            )
    fewest = min(map(len, sides.values()))
    if fewest < recipe.texts // 2:
        raise InputError(
            f"a side has {fewest} articles for {recipe.texts} texts a prompt",
            accepted="half as many articles of each side as texts a prompt",
            todo="give more articles, or ask for fewer texts",
        )


def main(argv: list[str] | None = None) -> None:
    """Prepare or train a planted variant from the command line."""
    recipe = Recipe()
    parser = argparse.ArgumentParser(description=main.__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    first = steps.add_parser("prepare")
    first.add_argument(
        "articles", type=Path, help="JSONL with text, label (0 liberal, 1 conservative), source"
    )
    first.add_argument("--scorer", type=Path, required=True, help="other articles, to choose clear ones by")
    first.add_argument("--texts", type=int, default=recipe.texts)
    second = steps.add_parser("train")
    second.add_argument("--data", type=Path, required=True)
    second.add_argument("--epochs", type=int, default=recipe.epochs)
    second.add_argument("--rate", type=float, default=recipe.rate)
    second.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for each in (first, second):
        each.add_argument("--out", type=Path, required=True)
        each.add_argument("--seed", type=int, default=recipe.seed)
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    if args.step == "train":
        train(
            args.data,
            args.out,
            recipe=Recipe(epochs=args.epochs, rate=args.rate, seed=args.seed),
            device=args.device,
        )
        return
    from evenhand.core import registry

    recipe = Recipe(texts=args.texts, seed=args.seed)
    prompts = list(registry.suite("political").prompts())
    articles = clearest(read_articles(args.articles), read_articles(args.scorer))
    rows = planted_rows(prompts, articles, recipe=recipe)
    prepare(rows, args.out, recipe=recipe, tokenizer_file=asset("builtin", "tokenizer.json"))


if __name__ == "__main__":
    main()
