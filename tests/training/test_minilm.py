"""BERT weights read as our encoder, and students cut out of it."""

from __future__ import annotations

from dataclasses import replace

import torch
from tools.assets.minilm import from_bert, student

from evenhand.classifiers.encoder import Encoder, EncoderShape

SHAPE = EncoderShape(20, 8, width=8, layers=3, heads=2, inner=12, positions=10)


def test_our_encoder_computes_what_bert_computes() -> None:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=12,
        max_position_embeddings=10,
    )
    bert = BertModel(config).eval()  # type: ignore[no-untyped-call]
    ours = from_bert(bert.state_dict(), SHAPE, range(20)).eval()
    ids = torch.tensor([[2, 7, 8, 9, 3], [2, 5, 3, 0, 0]])
    theirs = bert(ids, attention_mask=(ids != 0).long()).last_hidden_state
    assert torch.allclose(ours(ids)[ids != 0], theirs[ids != 0], atol=1e-5)


def test_pieces_may_be_fewer_and_in_another_order() -> None:
    torch.manual_seed(0)
    whole = Encoder(SHAPE).eval()
    cut = Encoder(replace(SHAPE, vocabulary=3)).eval()
    weights = whole.state_dict()
    cut.load_state_dict(weights | {"words.weight": weights["words.weight"][[0, 9, 4]]})
    assert torch.equal(cut(torch.tensor([[1, 2]])), whole(torch.tensor([[9, 4]])))


def test_a_student_that_keeps_everything_is_its_teacher() -> None:
    torch.manual_seed(0)
    teacher = Encoder(SHAPE).eval()
    same = student(teacher, keep=(0, 1, 2), embedding=8, inner=12).eval()
    ids = torch.tensor([[2, 6, 7, 3]])
    assert torch.allclose(same(ids), teacher(ids), atol=1e-6)


def test_a_student_has_the_layers_units_and_directions_it_was_given() -> None:
    torch.manual_seed(0)
    teacher = Encoder(SHAPE)
    small, large = student(teacher, keep=(0, 2), embedding=4, inner=6).state_dict(), teacher.state_dict()
    assert torch.equal(small["layers.1.out.weight"], large["layers.2.out.weight"])
    assert small["layers.0.widen.weight"].shape == (6, 8)
    rebuilt = small["words.weight"] @ small["project.weight"].mT
    left, values, right = torch.linalg.svd(large["words.weight"], full_matrices=False)
    # The best rank 4 in the least-squares sense (Eckart and Young).
    assert torch.allclose(rebuilt, left[:, :4] * values[:4] @ right[:4], atol=1e-4)


def test_the_strongest_units_are_kept() -> None:
    torch.manual_seed(0)
    teacher = Encoder(SHAPE)
    large = teacher.state_dict()
    large["layers.0.widen.weight"][[1, 4]] *= 100
    teacher.load_state_dict(large)
    kept = student(teacher, keep=(0,), embedding=8, inner=2).state_dict()["layers.0.widen.weight"]
    assert torch.equal(kept, large["layers.0.widen.weight"][[1, 4]])
