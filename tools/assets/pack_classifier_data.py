"""Write the folder that ``classifiers`` trains from: word pieces, the teacher, sentences, labelled texts.

Run as ``python -m tools.assets.pack_classifier_data --shared FOLDER --minilm FOLDER --out FOLDER`` on any
machine: no GPU is needed. The labelled texts are also written in the tokens of the embedded masked model, for
the yardstick of ``masked_yardstick``.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import save_file
from tokenizers import Tokenizer

from evenhand.classifiers import wordpiece_tokenizer
from evenhand.core.files import asset_path
from evenhand.tensors import int8_weights
from evenhand.training import labelled_data
from evenhand.training.corpus_text import read_documents
from evenhand.training.labelled_data import Example
from tools.assets import (
    augmentation,
    classifier_data,
    labelled_corpora,
    masked_baseline,
    minilm,
    token_shards,
)
from tools.assets.train_tokenizer import batches

_LOG = logging.getLogger(__name__)

PIECES: Final = 20_480
TOKENS: Final = 14_000_000
"""Token ids of running text the student learns from."""
HELD_OUT: Final = 3_000
"""Passages kept to compare student and teacher on."""
COUNT_STRIDES: Final = {"wiki": 6, "news": 4, "books": 4}
STRIDES: Final = {"wiki": 8, "news": 5, "books": 7}
"""One document in so many is counted, or read: the three sources weigh more alike than their sizes."""
_AT_ONCE: Final = 2_000

Counts = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is packed."""

    pieces: int = PIECES
    tokens: int = TOKENS
    """Token ids of running text."""
    texts: int | None = None
    """Training texts, taken at even distances; all where None. Texts outside training always come along."""


def pack_all(shared: Path, teacher: Path, out: Path, *, bpe: Path, sizes: Sizes | None = None) -> None:
    """Write ``vocab.txt``, ``teacher.safetensors``, shards of sentences, ``labelled.npz``, ``masked.npz``.

    ``bpe`` is the tokenizer of the masked model.
    """
    sizes = sizes or Sizes()
    out.mkdir(parents=True, exist_ok=True)
    examples = thinned(all_examples(shared / "data"), sizes.texts)
    vocabulary = chosen_pieces(shared / "corpus", teacher, examples, size=sizes.pieces)
    (out / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    save_teacher(teacher, vocabulary, out / "teacher.safetensors")
    tokenizer = wordpiece_tokenizer.build_tokenizer(vocabulary)
    classifier_data.pack(tokenizer, examples).save(out / "labelled.npz")
    masked_baseline.pack(bpe, examples).save(out / masked_baseline.PACKED)
    _LOG.info("%d pieces, %d labelled texts", len(vocabulary), len(examples))
    write_sentences(shared / "corpus", tokenizer, out, tokens=sizes.tokens)


def all_examples(data: Path) -> list[Example]:
    """Every labelled text: the data sets, our own sentences, and copies with groups swapped or cut short."""
    regard = labelled_corpora.regard(asset_path("regard", "regard.jsonl"))
    toxicity, ideology, emotion = (
        labelled_corpora.toxicity(data),
        labelled_data.ideology(data),
        labelled_corpora.emotion(data),
    )
    tweets = [example for example in emotion if example.corpus == "tweets"]
    found = [
        *(
            *regard,
            *toxicity,
            *labelled_corpora.hate(data),
            *ideology,
            *emotion,
            *labelled_corpora.published_regard(data),
        ),
        *augmentation.statements(),
        *augmentation.swapped([*regard, *toxicity], seed=1),
        *augmentation.swapped(tweets, seed=2),
        *augmentation.cuts(ideology, words=(12, 45), seed=3),
        *augmentation.cuts(ideology, words=(12, 45), seed=4),
    ]
    return [example for example in found if example.text.strip()]


def thinned(examples: Sequence[Example], count: int | None) -> list[Example]:
    """The examples with at most about ``count`` of their training texts."""
    train = [place for place, example in enumerate(examples) if example.split == "train"]
    stride = 1 if count is None else max(1, len(train) // count)
    dropped = set(train) - set(train[::stride])
    return [example for place, example in enumerate(examples) if place not in dropped]


def chosen_pieces(corpus: Path, teacher: Path, examples: Sequence[Example], *, size: int) -> list[str]:
    """The teacher's word pieces that matter most, by their shares of running text and of labelled texts."""
    own = (teacher / "vocab.txt").read_text(encoding="utf-8").splitlines()
    tokenizer = wordpiece_tokenizer.build_tokenizer(own)
    running = piece_counts(tokenizer, _documents(corpus), len(own))
    told = piece_counts(tokenizer, (e.text for e in examples if e.split == "train"), len(own))
    return classifier_data.choose_pieces(own, running / running.sum() + told / told.sum(), size)


def piece_counts(tokenizer: Tokenizer, texts: Iterable[str], size: int) -> Counts:
    """How often each piece occurs in the texts."""
    counts = np.zeros(size)
    for some in batches(texts, _AT_ONCE):
        for encoding in tokenizer.encode_batch_fast(some, add_special_tokens=False):
            counts += np.bincount(encoding.ids, minlength=size)
    return counts


def save_teacher(folder: Path, vocabulary: Sequence[str], path: Path) -> None:
    """Write MiniLM over these pieces: its word table as int8, the rest in float16, so that it is small."""
    weights = minilm.load(folder, vocabulary).state_dict()
    values, scale = int8_weights.quantise(weights.pop("words.weight"))
    stored = {name: value.half().contiguous() for name, value in weights.items()}
    table = {"words.weight": values, "words.weight.scale": scale}
    save_file(stored | table, path, metadata={"format": int8_weights.FORMAT})


def write_sentences(corpus: Path, tokenizer: Tokenizer, out: Path, *, tokens: int) -> None:
    """Write shards ``sentences`` and ``heldout``; sentences about a masked person come first.

    The first sentences are those on which the student also copies its teachers' answers.
    """
    about = [text for name in STRIDES for text in classifier_data.masked_sentences(_source(corpus, name))]
    rest: list[str] = []
    held_out: list[str] = []
    for name, stride in STRIDES.items():
        for kept, text in classifier_data.passages(_source(corpus, name), stride=stride):
            (held_out if kept else rest).append(text)
    rng = np.random.default_rng(0)
    for texts in (about, rest, held_out):
        rng.shuffle(texts)
    token_shards.write(out, _flat(tokenizer, [*about, *rest], tokens), name="sentences", pieces=2)
    token_shards.write(out, _flat(tokenizer, held_out[:HELD_OUT], tokens), name="heldout")


def main(argv: list[str] | None = None) -> None:
    """Pack the classifiers' data from the command line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--shared", type=Path, required=True, help="folder with corpus/ and data/")
    parser.add_argument("--minilm", type=Path, required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--bpe", type=Path, help="tokenizer of the masked model (default: the embedded one)")
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--texts", type=int, help="training texts (default: all)")
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    bpe = args.bpe or asset_path("builtin", "tokenizer.json")
    pack_all(args.shared, args.minilm, args.out, bpe=bpe, sizes=Sizes(tokens=args.tokens, texts=args.texts))


def _documents(corpus: Path) -> Iterator[str]:
    for name, stride in COUNT_STRIDES.items():
        for document in read_documents(_source(corpus, name)):
            if document.place % stride == 0:
                yield document.text


def _source(corpus: Path, name: str) -> Path:
    plain = corpus / f"{name}.txt"
    return plain if plain.exists() else corpus / f"{name}.txt.xz"


def _flat(tokenizer: Tokenizer, texts: Sequence[str], tokens: int) -> NDArray[np.uint16]:
    """The texts' ids one after the other, whole texts only, until there are ``tokens`` of them."""
    found: list[NDArray[np.uint16]] = []
    size = 0
    for some in batches(texts, _AT_ONCE):
        for row in wordpiece_tokenizer.encode_texts(tokenizer, some, longest=classifier_data.LONGEST):
            size += len(row)
            if size > tokens:
                return np.concatenate(found)
            found.append(np.asarray(row, dtype=np.uint16))
    return np.concatenate(found)


if __name__ == "__main__":
    main()
