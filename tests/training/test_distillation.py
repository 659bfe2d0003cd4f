"""Distillation: a student learns its teacher's states."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from tools.assets.distillation import DistilSpec, distance, distil, fidelity, relative_error
from tools.assets.minilm import student
from tools.assets.token_rows import Rows
from tools.assets.training_loop import Recipe

from evenhand.classifiers.encoder import Encoder, EncoderShape

SHAPE = EncoderShape(30, 16, width=16, layers=4, heads=2, inner=16, positions=12)
SPEC = DistilSpec(
    Recipe(2.0, warmup=5, matrix_rate=0.01, other_rate=5e-3, weight_decay=0.0),
    pairs=((0, 0), (2, 4)),
    weights=(0.5, 1.0),
    tokens=256,
)


def rows() -> Rows:
    torch.manual_seed(1)
    return Rows.from_lists([[2, *torch.randint(4, 30, (6,)).tolist(), 3] for _ in range(40)])


def test_a_teacher_is_no_distance_from_itself() -> None:
    torch.manual_seed(0)
    teacher = Encoder(SHAPE).eval()
    spec = DistilSpec(pairs=((0, 0), (4, 4)), weights=(1.0, 1.0))
    assert distance(teacher, teacher, torch.tensor([[2, 5, 6, 3]]), spec).item() < 1e-6
    cosine, error = fidelity(teacher, teacher, rows())
    assert cosine > 0.9999
    assert error < 1e-9


def test_the_mean_state_of_all_explains_nothing() -> None:
    theirs = torch.tensor([[[0.0], [2.0], [9.0]]])
    mask = torch.tensor([[True, True, False]])
    # Errors (1 - 0)^2 + (1 - 2)^2 over variance (0 - 1)^2 + (2 - 1)^2: a relative error of 1.
    assert relative_error(torch.ones(1, 3, 1), theirs, mask).item() == 1.0


def test_a_stopped_teaching_goes_on(tmp_path: Path) -> None:
    torch.manual_seed(0)
    teacher = Encoder(SHAPE)
    pupils = [student(teacher, keep=(0, 3), embedding=8, inner=16) for _ in range(2)]
    spec = replace(SPEC, recipe=replace(SPEC.recipe, seconds=0.3))
    first = distil(pupils[0], teacher, rows(), spec, checkpoint=tmp_path / "c.safetensors")
    again = distil(pupils[1], teacher, rows(), spec, checkpoint=tmp_path / "c.safetensors")
    assert again[:2] == first[:2]
    assert all(torch.equal(*pair) for pair in zip(*(p.state_dict().values() for p in pupils), strict=True))


def test_teaching_brings_the_student_nearer() -> None:
    torch.manual_seed(0)
    teacher = Encoder(SHAPE)
    pupil = student(teacher, keep=(0, 3), embedding=8, inner=16)
    before = fidelity(pupil, teacher, rows())
    progress = distil(pupil, teacher, rows(), SPEC)
    after = fidelity(pupil, teacher, rows())
    assert progress.step > 1
    assert after[0] > before[0]
    assert after[1] < before[1]
