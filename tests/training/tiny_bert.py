"""A BERT and a GPT-2 of a few kilobytes in the Hub's layout, and a table they can learn from."""

from __future__ import annotations

import json
from pathlib import Path

PIECES = (
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "xyz", "was", "a", "the", "kind", "cruel", "plain"),
    *("baker", "driver", "clerk", "nurse", "king", "poet", "in", "town", "."),
)
WORDS = {"positive": "kind", "negative": "cruel", "neutral": "plain"}
SIZES = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 16}


def bert_folder(folder: Path) -> Path:
    import torch
    from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(vocab_size=len(PIECES), max_position_embeddings=24, **SIZES)
    BertForMaskedLM(config).save_pretrained(folder)
    return folder


def gpt2_folder(folder: Path) -> Path:
    import torch
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    words = {piece: number for number, piece in enumerate(PIECES)}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", eos_token="[SEP]", model_max_length=24
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(PIECES), n_positions=24, n_embd=16, n_layer=1, n_head=2, eos_token_id=3
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def rows(labels: tuple[str, ...] = ("positive", "negative", "neutral")) -> list[dict[str, str]]:
    """30 sentences a label, told apart by one word."""
    jobs = ("baker", "driver", "clerk", "nurse", "king", "poet")
    return [
        {
            "text": f"xyz was {WORDS[label]} {job} {WORDS[label]} {'in the town . ' * place}".strip(),
            "label": label,
        }
        for job in jobs
        for place in range(5)
        for label in labels
    ]


def write_rows(path: Path, found: list[dict[str, str]] | None = None) -> Path:
    lines = [json.dumps(row) for row in (rows() if found is None else found)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
