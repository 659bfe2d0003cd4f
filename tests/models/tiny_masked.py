"""Tiny random masked models in the Hub's layout, each with a tokenizer of its kind."""

from __future__ import annotations

from pathlib import Path

from tests.models import tiny
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    ElectraConfig,
    ElectraForMaskedLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
)

_TEXT = (
    "the a man woman was is as and in of worked known for sang well old doctor nurse young red blue very "
    "people house street city river song loved lost found , . - ' s ( ) \" 1 2 3"
)
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_TEXT.split(), "##s", "##er", "##ing", "[unused0]"]
CONTEXT = 40
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}


def wordpiece() -> PreTrainedTokenizerFast:
    """BERT's kind of tokenizer over a few words."""
    plain = Tokenizer(models.WordPiece({piece: at for at, piece in enumerate(PIECES)}, unk_token="[UNK]"))
    plain.normalizer = normalizers.BertNormalizer(lowercase=True)
    plain.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    plain.decoder = decoders.WordPiece()
    names = {name: f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    return PreTrainedTokenizerFast(
        tokenizer_object=plain, **{f"{name}_token": word for name, word in names.items()}
    )


def bytewise() -> PreTrainedTokenizerFast:
    """RoBERTa's kind of tokenizer: bytes, one token each."""
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    plain = Tokenizer(models.BPE({word: at for at, word in enumerate([*names, *letters])}, []))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    plain.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return PreTrainedTokenizerFast(
        tokenizer_object=plain,
        cls_token="<s>",
        bos_token="<s>",
        pad_token="<pad>",
        sep_token="</s>",
        eos_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
    )


def bert(*, seed: int = 0) -> BertForMaskedLM:
    """A BERT of two layers."""
    config = BertConfig(vocab_size=len(PIECES), max_position_embeddings=CONTEXT, pad_token_id=0, **SIZES)
    return tiny.randomised(BertForMaskedLM(config), seed=seed, spread=0.3)


def roberta(*, seed: int = 0) -> RobertaForMaskedLM:
    """A RoBERTa of two layers; its first two positions are for padding."""
    config = RobertaConfig(
        vocab_size=261, max_position_embeddings=CONTEXT + 2, pad_token_id=1, type_vocab_size=1, **SIZES
    )
    return tiny.randomised(RobertaForMaskedLM(config), seed=seed, spread=0.3)


def distilbert(*, seed: int = 0) -> DistilBertForMaskedLM:
    """A DistilBERT of two layers."""
    config = DistilBertConfig(
        vocab_size=len(PIECES), max_position_embeddings=CONTEXT, dim=32, n_layers=2, n_heads=4, hidden_dim=48
    )
    return tiny.randomised(DistilBertForMaskedLM(config), seed=seed, spread=0.3)


def electra(*, seed: int = 0) -> ElectraForMaskedLM:
    """An ELECTRA generator, which runs through transformers."""
    config = ElectraConfig(
        vocab_size=len(PIECES), max_position_embeddings=CONTEXT, embedding_size=16, pad_token_id=0, **SIZES
    )
    return tiny.randomised(ElectraForMaskedLM(config), seed=seed, spread=0.3)


MODELS = {"bert": bert, "roberta": roberta, "distilbert": distilbert, "electra": electra}


def save(name: str, folder: Path, *, seed: int = 0) -> Path:
    """A model of that name and its tokenizer in a folder."""
    model: PreTrainedModel = MODELS[name](seed=seed)
    model.save_pretrained(folder)
    (bytewise() if name == "roberta" else wordpiece()).save_pretrained(folder)
    return folder
