"""Train the embedded classifiers: tuned teachers, a distilled student, and what each answers when tested.

Run as ``python -m tools.assets.train_classifiers --data FOLDER --out FOLDER`` on a GPU; the folder is what
``classifier_pack`` writes. Every half minute a checkpoint is written: a run that was stopped goes on with the
stage it was in, and what earlier stages learned is read again, not learned again.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor

from evenhand.classifiers.encoder import (
    ClassifierNetwork,
    Encoder,
    EncoderShape,
    to_probabilities,
)
from evenhand.core.digests import file_digest
from evenhand.core.errors import RunFolderError
from evenhand.tensors import int8_weights
from tools.assets import minilm, token_shards
from tools.assets.classifier_data import Packed
from tools.assets.distillation import DistilSpec, distil, fidelity, mean_state
from tools.assets.multitask import Labelled, TuneSpec, logits, loss, tune
from tools.assets.token_rows import Rows, autocast
from tools.assets.training_loop import Recipe

_LOG = logging.getLogger(__name__)

REPEATS: Final = {"regard": 6, "regard-swapped": 2, "tweets": 2, "jigsaw": 2, "statements": 2}
"""How often a text of a data set is read in an epoch; 1 where unlisted."""
YARDSTICKS: Final = ("regard", "regard-302", "jigsaw", "articles", "tweets")
"""Data sets that linear yardsticks read."""
RECORD: Final = "training.json"


@dataclass(frozen=True, slots=True)
class Plan:
    """Seconds for each stage and the students to try."""

    teacher: float = 25.0
    teachers: int = 3
    trial: float = 12.0
    distil: float = 125.0
    student: float = 42.0
    plain: float = 20.0
    tokens: int = 32_768
    tune_tokens: int = 8_192
    transfer: int = 40_000
    """Sentences without labels on which the student also copies its teachers."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How a student is cut out of its teacher."""

    keep: tuple[int, ...]
    embedding: int
    inner: int = 1536

    def spec(self, recipe: Recipe, tokens: int) -> DistilSpec:
        """Match the embedding, the middle and the last state."""
        last = len(self.keep)
        middle = last // 2
        return DistilSpec(
            recipe, pairs=((0, 0), (middle, self.keep[middle - 1] + 1), (last, 6)), tokens=tokens
        )


CUTS: Final = {
    "4x1536-e160": Cut((0, 2, 3, 5), 160),
    "3x1536-e240": Cut((0, 2, 5), 240),
    "6x768-e160": Cut((0, 1, 2, 3, 4, 5), 160, 768),
}
"""Students of about 10.5 MB stored: depth, inner width and word vectors traded for each other."""


def main(argv: list[str] | None = None) -> None:
    """Run every stage and write weights, predictions and a log of figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--plan", type=json.loads, default={}, help="fields of Plan, as JSON")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    plan = Plan(**args.plan)
    if claim(args.out, {"plan": asdict(plan), "data": file_digest(args.data / "labelled.npz")}):
        _LOG.info("%s is finished already", args.out)
        return
    Session(args.data, args.out, args.device, plan).run()


def claim(folder: Path, identity: Mapping[str, object]) -> bool:
    """Whether the training in a folder is finished; the folder is made where it is new.

    A folder that holds another training is refused: its checkpoints would be taken for this one's.
    """
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / RECORD
    mine = json.loads(json.dumps(identity))
    if not record.exists():
        record.write_text(json.dumps({"identity": mine}) + "\n", encoding="utf-8")
    found = json.loads(record.read_text(encoding="utf-8"))
    if found["identity"] != mine:
        raise RunFolderError(
            f"{folder} belongs to another training of the classifiers",
            expected="the same data and plan, or another folder",
            fix=f"choose another folder, or remove {folder}",
        )
    return bool(found.get("finished", False))


class Session:
    """The data on a device, and where results go."""

    def __init__(self, data: Path, out: Path, device: str, plan: Plan) -> None:
        self.data, self.out, self.device, self.plan = data, out, torch.device(device), plan
        self.packed = Packed.load(data / "labelled.npz")
        self.rows = self.packed.rows(self.device)
        self.sentences = Rows.from_flat(_tokens(data, "sentences"), self.device)
        self.held_out = Rows.from_flat(_tokens(data, "heldout"), self.device)
        self.teacher = load_teacher(data / "teacher.safetensors", self.device)
        self.answers: dict[str, Tensor] = {}
        self.figures: dict[str, object] = {}
        torch.backends.cuda.matmul.allow_tf32 = True

    def run(self) -> None:
        """All stages in order, each writing what it has before the next begins."""
        self.freeze()
        teachers = self.tune_teachers()
        student = self.teach_student()
        _save_halves(student.state_dict(), self.out, "distilled", student.shape)
        self.tune_students(student, teachers)
        self.finish()

    def freeze(self) -> None:
        """Sentence vectors of the untouched teacher for linear yardsticks, written in float16."""
        vectors = sentence_vectors(self.teacher, self.rows)
        places = np.flatnonzero(np.isin(self.packed.corpus, YARDSTICKS))
        chosen = vectors[torch.from_numpy(places).to(self.device)].cpu().numpy().astype(np.int8)
        np.savez(self.out / "vectors.npz", places=places, vectors=chosen)

    def tune_teachers(self) -> list[Tensor]:
        """Logits of several fine-tuned teachers on all labelled texts and on the unlabelled sentences."""
        transfer = self.transfer_rows()
        found = []
        for seed in range(self.plan.teachers):
            network = self.network(self.teacher, dropout=0.1)
            spec = TuneSpec(seconds=self.plan.teacher, tokens=self.plan.tune_tokens, rate=1e-4, seed=seed)
            steps = tune(network, self.labelled(), spec, checkpoint=self.checkpoint(f"teacher-{seed}"))
            self.record(f"teacher-{seed}", network, steps)
            found.append(torch.cat([self.answers[f"teacher-{seed}"], logits(network, transfer)]))
        return found

    def teach_student(self) -> Encoder:
        """The best of the trial students, distilled for longer."""
        trials = {name: self.teach(name, self.plan.trial, stage=f"trial-{name}") for name in CUTS}
        best = max(trials, key=lambda name: trials[name][1])
        _LOG.info("chosen %s", best)
        encoder, cosine = self.teach(best, self.plan.distil, stage="distilled")
        self.figures |= {
            "trials": {name: found[1] for name, found in trials.items()},
            "chosen": best,
            "cosine": cosine,
        }
        return encoder

    def teach(self, name: str, seconds: float, *, stage: str) -> tuple[Encoder, float]:
        """A student of this cut after so many seconds, and its cosine with the teacher on held-out text."""
        cut = CUTS[name]
        torch.manual_seed(0)
        student = minilm.student(self.teacher, keep=cut.keep, embedding=cut.embedding, inner=cut.inner)
        student.to(self.device)
        recipe = Recipe(seconds, warmup=100, matrix_rate=0.005, other_rate=1e-3, weight_decay=0.01)
        before = fidelity(student, self.teacher, self.held_out)
        spec = cut.spec(recipe, self.plan.tokens)
        progress = distil(student, self.teacher, self.sentences, spec, checkpoint=self.checkpoint(stage))
        after = fidelity(student, self.teacher, self.held_out)
        _LOG.info("%s: %s, fidelity %s -> %s", cut, progress, before, after)
        return student, after[0]

    def tune_students(self, student: Encoder, teachers: Sequence[Tensor]) -> None:
        """Students tuned with and without teachers; the one of least loss on the valid texts is written."""
        plain = self.network(student, dropout=0.1)
        spec = TuneSpec(seconds=self.plan.plain, tokens=self.plan.tune_tokens, rate=2e-4)
        steps = tune(plain, self.labelled(), spec, checkpoint=self.checkpoint("student-plain"))
        self.record("student-plain", plain, steps)
        soft = torch.stack([to_probabilities(values) for values in teachers]).mean(0)
        data = self.labelled(self.transfer_rows())
        tuned = [self.copy_teachers(student, data, soft, weight) for weight in (0.6, 0.8)]
        blend = self.network(student, dropout=0.0)
        states = [network.state_dict() for network in tuned]
        blend.load_state_dict({name: torch.stack([s[name] for s in states]).mean(0) for name in states[0]})
        found = {self.record("student-blend", blend, 0): blend}
        found |= {self.record(f"student-{place}", network, 0): network for place, network in enumerate(tuned)}
        best = found[min(found)]
        _save_halves(best.state_dict(), self.out, "classifier", best.encoder.shape)

    def copy_teachers(
        self, student: Encoder, data: Labelled, soft: Tensor, weight: float
    ) -> ClassifierNetwork:
        """The student tuned to labels and, with this weight, to the teachers' mean probabilities."""
        network = self.network(student, dropout=0.05)
        spec = TuneSpec(self.plan.student, tokens=self.plan.tune_tokens, rate=2.5e-4, soft=weight)
        stage = self.checkpoint(f"student-{weight}")
        steps = tune(network, data, spec, teacher=soft, checkpoint=stage)
        _LOG.info("student at %.1f: %d steps", weight, steps)
        return network

    def checkpoint(self, stage: str) -> Path:
        """Where a stage's state is kept until the whole training is finished."""
        return self.out / "checkpoints" / f"{stage}.safetensors"

    def finish(self) -> None:
        """Write down that the training is finished; the checkpoints go."""
        record = json.loads((self.out / RECORD).read_text(encoding="utf-8"))
        (self.out / RECORD).write_text(json.dumps(record | {"finished": True}) + "\n", encoding="utf-8")
        shutil.rmtree(self.out / "checkpoints", ignore_errors=True)

    def network(self, encoder: Encoder, *, dropout: float) -> ClassifierNetwork:
        """A classifier over a copy of the encoder, its heads fresh."""
        torch.manual_seed(0)
        copy = Encoder(encoder.shape, dropout=dropout)
        copy.load_state_dict(encoder.state_dict())
        return ClassifierNetwork(copy).to(self.device)

    def labelled(self, more: Rows | None = None) -> Labelled:
        """The training texts with their targets; ``more`` rows follow without any."""
        known, repeats = torch.from_numpy(self.packed.targets).to(self.device), training_repeats(self.packed)
        if more is None:
            return Labelled(self.rows, known, repeats)
        rows = Rows(
            torch.cat([self.rows.tokens, more.tokens]),
            torch.cat([self.rows.starts, more.starts + len(self.rows.tokens)]),
            np.concatenate([self.rows.lengths, more.lengths]),
        )
        blank = torch.full((len(more), known.shape[1]), float("nan"), device=self.device)
        return Labelled(
            rows, torch.cat([known, blank]), np.concatenate([repeats, np.ones(len(more), np.int64)])
        )

    def transfer_rows(self) -> Rows:
        """The first of the unlabelled sentences."""
        count = min(self.plan.transfer, len(self.sentences) - 1)
        end = int(self.sentences.starts[count])
        return Rows(
            self.sentences.tokens[:end], self.sentences.starts[:count], self.sentences.lengths[:count]
        )

    def record(self, name: str, network: ClassifierNetwork, steps: int) -> float:
        """The loss on the valid texts; the answers on all texts are kept under ``name`` and written."""
        answers = logits(network, self.rows)
        self.answers[name] = answers
        places = torch.from_numpy(np.flatnonzero(self.packed.split == "valid")).to(self.device)
        missed = float(loss(answers[places], torch.from_numpy(self.packed.targets).to(self.device)[places]))
        self.figures[name] = {"steps": steps, "valid loss": missed}
        _LOG.info("%s: %d steps, valid loss %.4f", name, steps, missed)
        self.write()
        return missed

    def write(self) -> None:
        """The figures so far and every model's answers on the texts outside training."""
        kept = torch.from_numpy(np.flatnonzero(self.packed.split != "train")).to(self.device)
        arrays = {name: values[kept].half().cpu().numpy() for name, values in self.answers.items()}
        np.savez(self.out / "answers.npz", allow_pickle=False, places=kept.cpu().numpy(), **arrays)
        (self.out / "figures.json").write_text(json.dumps(self.figures, indent=1), encoding="utf-8")


def training_repeats(packed: Packed) -> NDArray[np.int64]:
    """How often each text is met in one epoch; 0 outside training."""
    repeats = np.array([REPEATS.get(corpus, 1) for corpus in packed.corpus], dtype=np.int64)
    return np.where(packed.split == "train", repeats, 0)


def load_teacher(path: Path, device: torch.device) -> Encoder:
    """The packed teacher."""
    weights = int8_weights.load_dequantised(path)
    positions, words = weights["positions.weight"].shape[0], weights["words.weight"].shape[0]
    encoder = Encoder(replace(minilm.SHAPE, vocabulary=words, positions=positions))
    encoder.load_state_dict(weights)
    return encoder.to(device)


@torch.no_grad()
def sentence_vectors(encoder: Encoder, rows: Rows, *, tokens: int = 65_536) -> Tensor:
    """Unit sentence vectors of all rows, times 508 so that int8 holds them (no part exceeds 0.25)."""
    encoder.eval()
    found = torch.empty(len(rows), encoder.shape.width, device=rows.tokens.device)
    for batch in rows.batches(None, tokens=tokens):
        with autocast(rows.tokens.device):
            pooled = mean_state(encoder(batch.ids).float(), batch.ids != 0)
        found[batch.places] = torch.nn.functional.normalize(pooled)
    return (found * 508).round().clamp(-127, 127)


def _tokens(folder: Path, name: str) -> NDArray[np.uint16]:
    return token_shards.read(sorted(folder.glob(f"{name}-*{token_shards.SUFFIX}")))


def _save_halves(weights: Mapping[str, Tensor], out: Path, name: str, shape: EncoderShape) -> None:
    """Write weights in float16, words and layers in files of their own."""
    halves = {key: value.half().contiguous().cpu() for key, value in weights.items()}
    metadata = {"shape": json.dumps(asdict(shape))}
    for part, is_words in (("words", True), ("layers", False)):
        half = {key: value for key, value in halves.items() if ("words" in key) is is_words}
        save_file(half, out / f"{name}-{part}.safetensors", metadata=metadata)


if __name__ == "__main__":
    main()
