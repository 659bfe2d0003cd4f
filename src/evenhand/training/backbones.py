"""Networks to fine-tune: the embedded encoder and masked model, or any model from the Hub or a folder."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import numpy as np
import torch
from torch import Tensor, nn

from evenhand.classifiers import word_networks, wordpiece_tokenizer
from evenhand.classifiers.encoder import PAD, ClassifierNetwork, Encoder, EncoderShape, Head
from evenhand.classifiers.hub_classifier import load_sequence_classifier
from evenhand.classifiers.text_classifier import FORMAT, build_network, read_format, save_classifier
from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import InputError, ModelError
from evenhand.core.files import ASSETS_FOLDER, apply_umask, asset_path, user_path
from evenhand.models.hub_layout import hub_folder
from evenhand.tensors import checkpoints, int8_weights
from evenhand.tensors.model_files import locate_model
from evenhand.text.word_tokens import split_words
from evenhand.text.word_vectors import WordVectors, load_embedded_vectors, read_vectors
from evenhand.training.classifier_job import BUILTIN, LSTM, OVER_WORDS, ClassifierFit, backbone_kind
from evenhand.training.finetuning import Padding

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MASKED: Final = "builtin:masked"
_YES_OR_NO: Final = ("toxicity", "ideology")
_READ: Final = 512
"""Maximum number of tokens that a metric reads."""
_POSITIONS: Final = ("max_position_embeddings", "n_positions")


def open_backbone(fit: ClassifierFit, texts: Sequence[str]) -> HubBackbone | EncoderBackbone | WordBackbone:
    """The backbone that a fit names, with new heads; its vocabulary comes from the words of ``texts``.

    Its network takes ids and mask, both (rows, length), and returns (rows, labels) logits.
    """
    name = fit.backbone
    if backbone_kind(name) in (LSTM, *OVER_WORDS):
        return WordBackbone(fit, texts)
    if name == BUILTIN:
        folder = ASSETS_FOLDER / "classifiers"
        if not (folder / "model.safetensors").is_file():
            raise InputError(
                "this installation has no embedded encoder",
                expected=f"{MASKED}, linear, a Hub id or a folder",
                fix=f"use --backbone {MASKED}",
            )
        return EncoderBackbone(folder, fit)
    if name == MASKED:
        with tempfile.TemporaryDirectory() as path:
            embedded, tokenizer = asset_path("builtin-masked"), asset_path("builtin", "tokenizer.json")
            hub_folder(embedded, Path(path), tokenizer_file=tokenizer)
            return HubBackbone(Path(path), fit, revision=file_digest(embedded / "model.safetensors"))
    source = locate_model(name, offline=fit.offline)
    if source.gguf:
        raise InputError(
            f"{name} is a GGUF file", expected="a folder or Hub id with safetensors", fix="name its original"
        )
    if read_format(source.folder) == FORMAT:
        return EncoderBackbone(source.folder, fit)
    return HubBackbone(source.folder, fit, revision=source.commit)


class HubBackbone:
    """A model of transformers with its own classification head."""

    def __init__(self, folder: Path, fit: ClassifierFit, *, revision: str = "") -> None:
        self.revision = revision or checkpoints.weights_digest(checkpoints.weight_files(folder))
        checkpoints.require_tokenizer(folder)
        checkpoints.check_config(checkpoints.read_config(folder), str(folder))
        names = dict(enumerate(fit.labels))
        try:
            with _without_head_warnings(), torch.random.fork_rng():
                # The head is initialised at random.
                torch.manual_seed(fit.recipe.seed)
                self._model, self._tokenizer = load_sequence_classifier(
                    folder,
                    dtype=torch.float32,
                    id2label=names,
                    label2id={label: number for number, label in names.items()},
                    problem_type=f"{'multi' if fit.each else 'single'}_label_classification",
                    ignore_mismatched_sizes=True,
                )
        except (ValueError, OSError) as error:
            raise ModelError(
                f"{folder} cannot be fine-tuned: {str(error).strip().splitlines()[0][:200]}",
                expected="a model that transformers knows as a sequence classifier, such as BERT or GPT-2",
                fix="name another backbone",
            ) from error
        checkpoints.require_finite(self._model.state_dict(), str(folder))
        self._model.config.pad_token_id = self._tokenizer.pad_token_id
        limits = [fit.longest, int(self._tokenizer.model_max_length), _READ]
        limits += [int(getattr(self._model.config, name, 0) or 0) for name in _POSITIONS]
        self.longest = min(limit for limit in limits if limit > 0)
        # Metrics truncate texts where the tokenizer says, as in training.
        self._tokenizer.model_max_length = self.longest
        self.padding = Padding(int(self._tokenizer.pad_token_id), self._tokenizer.padding_side == "left")
        self.network: nn.Module = _HubNetwork(self._model)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text, special tokens included, truncated to the maximum length."""
        ids = self._tokenizer(list(texts), truncation=True, max_length=self.longest)["input_ids"]
        return cast("list[list[int]]", ids)

    def save(self, folder: Path) -> None:
        """Write the Hub's layout: config.json with the labels, model.safetensors, the tokenizer."""
        with _without_head_warnings():
            self._model.save_pretrained(folder)
        for weights in folder.glob("*.safetensors"):
            apply_umask(weights)
        self._tokenizer.save_pretrained(folder)


class EncoderBackbone:
    """Our own encoder with one head; stored as int8 in our own format.

    Toxicity and ideology are trained with two logits and stored with one, as their metrics read them: the
    difference gives the probability of the second label.
    """

    def __init__(self, folder: Path, fit: ClassifierFit) -> None:
        config = checkpoints.read_config(folder)
        shape = EncoderShape(**cast("Mapping[str, int]", config["shape"]))
        weights = int8_weights.load_dequantised(folder / "model.safetensors")
        checkpoints.require_finite(weights, str(folder))
        encoder = Encoder(shape, dropout=0.1)
        trunk = {name: value for name, value in weights.items() if name.startswith("encoder.")}
        encoder.load_state_dict({name.removeprefix("encoder."): value for name, value in trunk.items()})
        head = Head(fit.task, tuple(fit.labels), "each" if fit.each else "one-of")
        with torch.random.fork_rng():
            torch.manual_seed(fit.recipe.seed)
            self._classifier = ClassifierNetwork(encoder, (head,))
        self._vocabulary = folder / "vocab.txt"
        self._tokenizer = wordpiece_tokenizer.load_tokenizer(self._vocabulary)
        self.longest = min(fit.longest, shape.positions)
        self.padding = Padding(PAD)
        self.revision = digest([file_digest(folder / "model.safetensors"), file_digest(self._vocabulary)])
        self.network: nn.Module = _EncoderNetwork(self._classifier)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text, truncated to the maximum length."""
        return wordpiece_tokenizer.encode_texts(self._tokenizer, texts, longest=self.longest)

    def save(self, folder: Path) -> None:
        """Write the classifier and load its int8 weights, so that the measured model is the stored one."""
        int8_weights.save_quantised(self._classifier.state_dict(), folder / "model.safetensors")
        self._classifier.load_state_dict(int8_weights.load_dequantised(folder / "model.safetensors"))
        network, head = self._classifier, self._classifier.heads[0]
        # Stored with positions up to the maximum length, and a binary label as one logit.
        shape = replace(network.encoder.shape, positions=self.longest)
        weights = {name: value.cpu() for name, value in network.state_dict().items()}
        weights["encoder.positions.weight"] = weights["encoder.positions.weight"][: self.longest]
        if head.name in _YES_OR_NO and head.kind == "one-of":
            head = Head(head.name, head.labels[1:], "each")
            weights["weight"] = weights["weight"][1:] - weights["weight"][:1]
            weights["bias"] = weights["bias"][1:] - weights["bias"][:1]
        save_classifier(folder, build_network(shape, weights, (head,)), vocabulary=self._vocabulary)


class _HubNetwork(nn.Module):
    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        answers: Tensor = self.model(input_ids=ids, attention_mask=mask).logits
        return answers


class _EncoderNetwork(nn.Module):
    def __init__(self, classifier: ClassifierNetwork) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        # The encoder recognises padding by its id.
        answers: Tensor = self.classifier(ids)
        return answers


@contextmanager
def _without_head_warnings() -> Iterator[None]:
    """Without transformers' warnings that a head is new, which is intended."""
    from transformers import logging

    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


COLUMNS: Final = 100
"""Embedding width of an LSTM without pretrained vectors."""


class WordBackbone:
    """A new network over the words of the training texts: ``lstm``, or another kind in `word_networks`.

    An LSTM may start from word vectors, which are trained with the rest. A training word without
    a vector starts at random; words that no training text contains share one unknown word.
    """

    def __init__(self, fit: ClassifierFit, texts: Sequence[str]) -> None:
        name, _, vectors = fit.backbone.partition(":")
        self.longest, labels, seed = fit.longest, fit.labels, fit.recipe.seed
        kind = None if name == LSTM else cast(word_networks.Kind, name)
        counts = Counter(word for text in texts for word in split_words(text)[: self.longest])
        vocabulary = sorted(counts, key=lambda word: (-counts[word], word))
        self._index = {word: row for row, word in enumerate(vocabulary, start=word_networks.FIRST)}
        self._save = partial(
            word_networks.save_word_network,
            vocabulary=vocabulary,
            labels=labels,
            longest=self.longest,
            kind=kind,
        )
        known = load_vectors(vectors)
        rows = len(vocabulary) + word_networks.FIRST
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.network: word_networks.WordNetwork
            if kind is None:
                columns = COLUMNS if known is None else known.matrix.shape[1]
                self.network = word_networks.LstmNetwork(word_networks.LstmShape(rows, columns, len(labels)))
            else:
                shape = word_networks.WordShape(
                    rows=rows, labels=len(labels), longest=self.longest, **word_networks.SIZES[kind]
                )
                self.network = word_networks.NETWORKS[kind](shape)
        self.known = 0 if known is None else _start_from_vectors(self.network, vocabulary, known)
        self.revision = f"random, seed {seed}" if known is None else f"vectors {known.digest}, seed {seed}"
        self.padding = Padding(word_networks.PAD)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The embedding rows of each text's words."""
        return word_networks.encode_words(texts, self._index, longest=self.longest)

    def save(self, folder: Path) -> None:
        """Write the network in the format that metrics load."""
        self._save(self.network, folder)


def load_vectors(name: str) -> WordVectors | None:
    """The vectors of a name: None for an empty name, ``embedded``, or a file in any supported format."""
    if not name:
        return None
    return load_embedded_vectors() if name == "embedded" else read_vectors(user_path(name))


def vectors_identity(name: str) -> str:
    """The identity of the vectors of a name."""
    vectors = load_vectors(name)
    return "" if vectors is None else vectors.digest or digest(list(vectors.words))


def _start_from_vectors(
    network: word_networks.WordNetwork, vocabulary: Sequence[str], vectors: WordVectors
) -> int:
    """Copy known words' vectors into the network, scaled to the random ones' spread; return their number."""
    places = np.array([vectors.find(word) for word in vocabulary], dtype=np.int64)
    rows = np.flatnonzero(places >= 0)
    scale = np.float32(1.0 / max(float(vectors.matrix.std()), 1e-6))
    with torch.no_grad():
        start = torch.from_numpy(vectors.matrix[places[rows]] * scale)
        network.words.weight[torch.from_numpy(rows + word_networks.FIRST)] = start
    return len(rows)
