"""Tiny models of four architectures in the Hub's layout, and a table they can learn from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from evenhand.training.classifier_job import ClassifierFit
from evenhand.training.options import FineTuningConfig

PIECES = (
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "xyz", "was", "a", "the", "kind", "cruel", "plain"),
    *("baker", "driver", "clerk", "nurse", "king", "poet", "in", "town", "."),
)
WORDS = {"positive": "kind", "negative": "cruel", "neutral": "plain"}
VOCABULARY = {"vocab_size": len(PIECES)}
SIZES = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 16}


def bert_folder(folder: Path) -> Path:
    import torch
    from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(max_position_embeddings=24, **SIZES, **VOCABULARY)
    BertForMaskedLM(config).save_pretrained(folder)
    return folder


def gpt2_folder(folder: Path) -> Path:
    from transformers import GPT2Config, GPT2LMHeadModel

    # Like the real one it has no token for padding.
    _word_tokenizer(folder, ending=False, model_max_length=24)
    config = GPT2Config(
        n_positions=24, n_embd=16, n_layer=1, n_head=2, bos_token_id=3, eos_token_id=3, **VOCABULARY
    )
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def t5_folder(folder: Path) -> Path:
    from transformers import T5Config, T5ForConditionalGeneration

    _word_tokenizer(folder, ending=True, pad_token="[PAD]")
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    config = T5Config(pad_token_id=0, eos_token_id=3, decoder_start_token_id=0, **sizes, **VOCABULARY)
    T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


def xlnet_folder(folder: Path) -> Path:
    from transformers import XLNetConfig, XLNetLMHeadModel

    # It classifies by the last token, so it pads on the left.
    _word_tokenizer(folder, ending=True, pad_token="[PAD]", padding_side="left")
    sizes = {"d_model": 16, "n_layer": 1, "n_head": 2, "d_inner": 16}
    config = XLNetConfig(pad_token_id=0, bos_token_id=2, eos_token_id=3, **sizes, **VOCABULARY)
    XLNetLMHeadModel(config).save_pretrained(folder)
    return folder


def _word_tokenizer(folder: Path, *, ending: bool, **options: object) -> None:
    import torch
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    words = {piece: number for number, piece in enumerate(PIECES)}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    if ending:
        tokenizer.post_processor = TemplateProcessing(single="$A [SEP]", special_tokens=[("[SEP]", 3)])
    names = {"unk_token": "[UNK]", "eos_token": "[SEP]", **options}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    torch.manual_seed(0)


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


def fit_for(labels: Sequence[str], *, backbone: str = "", longest: int = 24) -> ClassifierFit:
    """A fit with the default recipe."""
    return ClassifierFit("emotion", backbone, labels, FineTuningConfig(), longest)
