"""A variant of a causal model in which chosen options lean left or right by a known amount.

It is the proof that a measure finds what is there. Two experts are fine-tuned on openings of articles, one on
each side of the press; the variant then learns, after every prompt of the political suite, the mixture

    softmax((left + right) / 2 + lean (right - left))

of their logits, where ``lean`` is that of the prompt's option: 0 is even, 0.5 is the right-hand expert, -0.5
the left-hand one, and more than that exaggerates. The experts never see a prompt: what a state or a topic
calls to mind is not taught, so that options differ by their lean alone. (Articles of one side alone after a
prompt are too weak a signal: a side tells a model little about the next word.) For tests and replications; it
is not shipped.

1. ``python -m tools.assets.planted_bias prepare ARTICLES.jsonl --out DATA``
2. ``python -m tools.assets.planted_bias train --data DATA --out MODEL`` (two minutes on a GPU; goes on from
   its checkpoint when it was stopped). ``MODEL/planted.json`` records leans, articles, recipe and losses;
   ``MODEL/mixtures.jsonl`` has texts of the mixtures themselves: what a judge says of them is the amount
   planted, in the judge's own unit.
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
from typing import Final, NamedTuple, TypeAlias, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor

from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.records import Prompt
from evenhand.core.seeds import make_generator
from evenhand.models.hub_layout import END
from evenhand.training.finetuning import descend, load_checkpoint, read_about, save_checkpoint
from evenhand.training.ideology_words import LabelledArticle, read_articles
from tools.assets import train_tokenizer
from tools.assets.export_weights import save_folder
from tools.assets.language_models import CausalModel, load_model

_LOG = logging.getLogger(__name__)
Loss: TypeAlias = "Callable[[CausalModel, Rows], Tensor]"
RECORD: Final = "planted.json"
"""In the folder of rows and in that of the variant: what was planted, and how."""
MIXTURES: Final = "mixtures.jsonl"
ROWS: Final = "rows.safetensors"
SIDES: Final = ("left", "right")
TOP_K: Final = 40
LENGTH: Final = 100
"""Tokens of a text of a mixture, as the political suite's."""


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


def clearest(articles: Sequence[LabelledArticle], *, seed: int, share: float = 0.5) -> list[LabelledArticle]:
    """The articles of each side that read most like it, in the eyes of a linear classifier.

    Articles are dealt into two halves, and each half is read by a classifier that learned from the other:
    what it finds clear is clear to a stranger. No other articles play a part.
    """
    order = make_generator(seed, "clearest").permutation(len(articles))
    halves = [[articles[place] for place in order[first::2]] for first in (0, 1)]
    return [*_clear(halves[0], halves[1], share), *_clear(halves[1], halves[0], share)]


def _clear(
    articles: Sequence[LabelledArticle], others: Sequence[LabelledArticle], share: float
) -> list[LabelledArticle]:
    from evenhand.training.linear_text import LinearText

    truth = np.array([int(article.conservative) for article in others])
    fitted = LinearText.fit([article.text for article in others], truth, ("liberal", "conservative"))
    said = fitted.probabilities([article.text for article in articles])[:, 1]
    kept: list[LabelledArticle] = []
    for side in (False, True):
        places = [place for place, article in enumerate(articles) if article.conservative is side]
        places.sort(key=lambda place: -said[place] if side else said[place])
        kept += [articles[place] for place in places[: max(1, round(share * len(places)))]]
    return kept


def planted_rows(
    prompts: Sequence[Prompt],
    articles: Sequence[LabelledArticle],
    *,
    leans: Sequence[Lean] = LEANS,
    recipe: Recipe,
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
        draw = make_generator(recipe.seed, "planted", prompt.id)
        for side in (False, True):
            chosen = draw.choice(len(sides[side]), size=recipe.texts // 2, replace=False)
            rows += [Row(prompt.text, sides[side][place], side, lean) for place in chosen]
    return rows


def prepare(
    rows: Sequence[Row],
    out: Path,
    *,
    recipe: Recipe,
    tokenizer_file: Path,
    leans: Sequence[Lean] = LEANS,
    articles: Mapping[str, str | int] | None = None,
) -> None:
    """Write the rows as token ids, the tokenizer and the record to the folder a training reads.

    ``articles`` says which they are: name, digest, how many of each side were taken.
    """
    out.mkdir(parents=True, exist_ok=True)
    bpe = train_tokenizer.load(tokenizer_file)
    starts = [len(ids) for ids in train_tokenizer.encode(bpe, (row.prompt for row in rows))]
    whole = train_tokenizer.encode(bpe, (f"{row.prompt} {row.article}" for row in rows))
    table = np.full((len(rows), recipe.length), -1, dtype=np.int16)
    for place, ids in enumerate(whole):
        table[place, : len(ids)] = ids[: recipe.length]
    found = Rows(
        torch.from_numpy(table),
        torch.tensor(starts, dtype=torch.int16),
        torch.tensor([row.conservative for row in rows], dtype=torch.int16),
        torch.tensor([row.lean for row in rows]),
    )
    save_file(found._asdict(), out / ROWS)
    bpe.save(str(out / "tokenizer.json"), pretty=False)
    record = {
        "leans": [lean._asdict() for lean in leans],
        "articles": dict(articles or {}),
        "rows": {"number": len(rows), "digest": file_digest(out / ROWS)},
    }
    (out / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def read_rows(data: Path) -> Rows:
    """The rows that :func:`prepare` wrote."""
    return Rows(**load_file(data / ROWS))


def _check(
    prompts: Sequence[Prompt], sides: Mapping[bool, Sequence[str]], leans: Sequence[Lean], recipe: Recipe
) -> None:
    known = {(group.axis, group.name) for prompt in prompts for group in prompt.groups}
    for lean in leans:
        if (lean.axis, lean.group) not in known or not math.isfinite(lean.lean):
            raise InputError(
                f"a lean of {lean.lean} for {lean.axis}={lean.group}",
                expected="an option of the suite and a number, below 0 liberal, above 0 conservative",
                fix="see `evenhand show political`",
            )
    fewest = min(map(len, sides.values()))
    if fewest < recipe.texts // 2:
        raise InputError(
            f"a side has {fewest} articles for {recipe.texts} texts a prompt",
            expected="half as many articles of each side as texts a prompt",
            fix="give more articles, or ask for fewer texts",
        )


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
    prepared = json.loads((data / RECORD).read_text(encoding="utf-8"))
    record = {**prepared, "recipe": asdict(recipe), "losses": losses}
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


def main(argv: list[str] | None = None) -> None:
    """Prepare or train a planted variant from the command line."""
    recipe = Recipe()
    parser = argparse.ArgumentParser(description=main.__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    first = steps.add_parser("prepare")
    first.add_argument(
        "articles", type=Path, help="JSONL with text, label (0 liberal, 1 conservative), source"
    )
    first.add_argument("--texts", type=int, default=recipe.texts)
    second = steps.add_parser("train")
    second.add_argument("--data", type=Path, required=True)
    second.add_argument("--epochs", type=int, default=recipe.epochs)
    second.add_argument("--rate", type=float, default=recipe.rate)
    second.add_argument("--mixtures", type=int, default=0, help="texts of each mixture to write beside it")
    second.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    for each in (first, second):
        each.add_argument("--out", type=Path, required=True)
        each.add_argument("--seed", type=int, default=recipe.seed)
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    if args.step == "prepare":
        _prepare(args.articles, args.out, Recipe(texts=args.texts, seed=args.seed))
        return
    recipe = Recipe(epochs=args.epochs, rate=args.rate, seed=args.seed)
    train(args.data, args.out, recipe=recipe, device=args.device, texts=args.mixtures)


def _prepare(file: Path, out: Path, recipe: Recipe) -> None:
    from evenhand.core import registry

    articles = clearest(read_articles(file), seed=recipe.seed)
    right = sum(article.conservative for article in articles)
    prepare(
        planted_rows(list(registry.create_suite("political").prompts()), articles, recipe=recipe),
        out,
        recipe=recipe,
        tokenizer_file=asset_path("builtin", "tokenizer.json"),
        articles={
            "name": file.name,
            "digest": file_digest(file),
            "liberal": len(articles) - right,
            "conservative": right,
        },
    )


if __name__ == "__main__":
    main()
