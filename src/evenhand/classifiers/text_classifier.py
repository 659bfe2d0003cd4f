"""Text classifiers: the embedded encoder with its heads, and the interface that metrics use."""

from __future__ import annotations

import json
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenhand.classifiers import wordpiece_tokenizer
from evenhand.classifiers.encoder import (
    HEADS,
    PAD,
    ClassifierNetwork,
    Encoder,
    EncoderShape,
    Head,
    HeadKind,
    PackedEncoder,
    count_logits,
    head_columns,
    pool_states,
    to_probabilities,
)
from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import ModelError
from evenhand.core.files import asset_path
from evenhand.core.records import Execution
from evenhand.tensors import int8_weights
from evenhand.tensors.batching import batch_by_length, pad_rows, run_in_halves
from evenhand.tensors.checkpoints import check_config, load_network, our_model_errors, read_config
from evenhand.tensors.devices import select_device

A = TypeVar("A")
B = TypeVar("B")
_DEPTH: Final = 2
"""Maximum number of waiting results, to limit memory."""


def prefetch_map(work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    """The work of each item, in order, done in advance while the caller handles earlier results.

    It saves time if both sides release the GIL: a tokenizer, and anything that waits for a GPU. Errors of the
    work are raised here.
    """
    waiting: deque[Future[B]] = deque()
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as pool:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > _DEPTH:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


FORMAT: Final = "evenhand-classifier"
"""``model_type`` in the config.json of our own classifiers."""
CACHE_SIZE: Final = 1 << 16
"""Texts with cached answers, so that four metrics share one forward pass."""
_ROWS: Final = 256
_GPU_ROWS: Final = 1024
"""Texts per batch on a GPU; fewer if they do not fit in memory."""
_TOKENS: Final = 4096
"""Cells of a batch on a CPU: few enough to stay in its cache."""
_GPU_TOKENS: Final = 1 << 15
"""Cells of a batch on a GPU: enough to keep it busy, with few batches for the CPU to prepare."""
_AHEAD: Final = 512
_AHEAD_AT_MOST: Final = 4096
"""Texts tokenized while a GPU processes earlier ones, at first and later."""

Probabilities = NDArray[np.float32]
_Rows = list[list[int]]


def check_answers(read: Callable[[Sequence[str]], Probabilities]) -> None:
    """Raise ValueError if a classifier returns anything but finite numbers.

    It is tried on a text: some incompatible settings and sizes fail only then.
    """
    if not np.isfinite(read(["a text"])).all():
        raise ValueError("its answers are not finite")


class LabelReader(Protocol):
    """A classifier as metrics use it: one question, a few labels."""

    labels: tuple[str, ...]
    """The labels of the columns."""
    digest: str
    """Identifies the weights."""

    def read(self, texts: Sequence[str]) -> Probabilities:
        """One row per text, one column per label, each in [0, 1]."""
        ...


class TextClassifier:
    """Our own classifier: an encoder, several heads, calibrated probabilities.

    Probabilities are the sigmoid or softmax of ``logit * scale + shift``, both fitted on held-out texts.
    """

    def __init__(self, folder: Path, *, device: torch.device, rows: int | None = None) -> None:
        config = read_config(folder)
        check_config(config, str(folder))
        with our_model_errors(folder):
            self.heads = read_heads(config)
            shape = EncoderShape(**cast("Mapping[str, int]", config["shape"]))
            self._network = load_network(
                lambda: ClassifierNetwork(Encoder(shape), self.heads),
                int8_weights.load_dequantised(folder / "model.safetensors"),
                str(folder),
            )
            self._network.eval().to(device).requires_grad_(False)
            on_cpu = device.type == "cpu"
            self._packed_encoder = _pack_encoder(self._network.encoder) if on_cpu else None
            self._tokenizer = wordpiece_tokenizer.load_tokenizer(folder / "vocab.txt", most=shape.vocabulary)
            calibration = torch.tensor([config["scale"], config["shift"]], dtype=torch.float32)
            if calibration.shape != (2, count_logits(self.heads)) or not calibration.isfinite().all():
                raise ValueError("scale and shift must be one finite number per label")
            self._scale, self._shift = calibration.to(device)
            self._device, self._longest = device, shape.positions
            self._rows = rows or (_ROWS if on_cpu else _GPU_ROWS)
            self._cells = _TOKENS if on_cpu else _GPU_TOKENS
            check_answers(self._compute)
        self._memo: dict[str, Probabilities] = {}
        files = ("config.json", "model.safetensors", "vocab.txt")
        self.digest = digest([file_digest(folder / name) for name in files])

    def probabilities(self, texts: Sequence[str]) -> Probabilities:
        """One row per text, the labels of all heads side by side; recently seen texts come from a cache."""
        answers = {text: self._memo[text] for text in texts if text in self._memo}
        new = [text for text in dict.fromkeys(texts) if text not in answers]
        answers |= zip(new, self._compute(new), strict=True)
        self._memo |= answers
        for text in list(self._memo)[: max(0, len(self._memo) - CACHE_SIZE)]:
            del self._memo[text]
        rows = [np.zeros(0, np.float32), *(answers[text] for text in texts)]
        return np.concatenate(rows).reshape(len(texts), len(self._scale))

    def _compute(self, texts: Sequence[str]) -> Probabilities:
        def read(rows: Sequence[Sequence[int]]) -> Tensor:
            parts = self._states(rows)
            logits = torch.cat([self._network.read(states, there) for states, there in parts])
            return to_probabilities(logits * self._scale + self._shift, self.heads)

        return self._map_batches(texts, len(self._scale), read)

    def pooled_vectors(self, texts: Sequence[str], name: str) -> Probabilities:
        """One row per text: the vector from which a head computes its labels."""
        place = [head.name for head in self.heads].index(name)
        query = self._network.queries[place : place + 1]

        def read(rows: Sequence[Sequence[int]]) -> Tensor:
            parts = self._states(rows)
            return torch.cat(
                [pool_states(states, query.to(states.dtype), there)[:, 0] for states, there in parts]
            )

        return self._map_batches(texts, self._network.encoder.shape.width, read)

    def _states(self, rows: Sequence[Sequence[int]]) -> Iterator[tuple[Tensor, Tensor]]:
        """The encoder's states in the order of the rows, and a mask that is False at padding."""
        if self._packed_encoder is None:
            ids = pad_rows(rows, device=self._device)
            yield self._network.encoder(ids), ids != PAD
        else:
            for states in self._packed_encoder(rows):
                yield states, states.new_ones(states.shape[:2], dtype=torch.bool)

    def _map_batches(
        self, texts: Sequence[str], columns: int, read: Callable[[Sequence[Sequence[int]]], Tensor]
    ) -> Probabilities:
        """The output of ``read`` for each text, in batches of similar length, halved when out of memory.

        A GPU is awaited only at the end: it processes some texts while the next ones are tokenized.
        """
        answers = np.zeros((len(texts), columns), np.float32)
        done: list[int] = []
        parts: list[Tensor] = []
        with torch.inference_mode():
            for places, rows in self._encode(texts):

                def work(batch: Sequence[int], rows: _Rows = rows, places: Sequence[int] = places) -> None:
                    parts.append(read([rows[index] for index in batch]).float())
                    done.extend(places[index] for index in batch)

                for batch in batch_by_length([len(row) for row in rows], rows=self._rows, tokens=self._cells):
                    run_in_halves(batch, work)
        if parts:
            answers[done] = torch.cat(parts).cpu().numpy()
        return answers

    def _encode(self, texts: Sequence[str]) -> Iterator[tuple[Sequence[int], _Rows]]:
        """Indices of texts and their tokens: all at once on a CPU, part by part in advance on a GPU."""

        def encoded(places: Sequence[int]) -> tuple[Sequence[int], _Rows]:
            some = [texts[place] for place in places]
            return places, wordpiece_tokenizer.encode_texts(self._tokenizer, some, longest=self._longest)

        if self._device.type == "cpu":
            yield encoded(range(len(texts)))
        else:
            yield from prefetch_map(encoded, _parts(texts))


class HeadReader:
    """One head of our own classifier."""

    def __init__(self, classifier: TextClassifier, name: str) -> None:
        heads = {head.name: head for head in classifier.heads}
        if name not in heads:
            raise ModelError(
                f"the classifier has no head named {name!r}",
                expected=", ".join(heads),
                fix="train one with `evenhand train`, or name another source",
            )
        self.labels, self.digest = heads[name].labels, classifier.digest
        self._columns = head_columns(name, classifier.heads)
        self._classifier = classifier

    def read(self, texts: Sequence[str]) -> Probabilities:
        """One row per text, one column per label."""
        return self._classifier.probabilities(texts)[:, self._columns]


def _parts(texts: Sequence[str]) -> Iterator[Sequence[int]]:
    """The indices of texts of similar length, longest first, in growing parts."""
    # Before tokenization, the number of characters indicates which texts are about equally long.
    order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
    at, size = 0, _AHEAD
    while at < len(order):
        yield order[at : at + size]
        # The first part is small, since a GPU waits for it; later ones hold more texts of similar length.
        at, size = at + size, min(2 * size, _AHEAD_AT_MOST)


def _pack_encoder(encoder: Encoder) -> PackedEncoder:
    packed = PackedEncoder(encoder)
    # Its matrices are not needed twice.
    del encoder.layers
    return packed


def read_heads(config: Mapping[str, object]) -> tuple[Head, ...]:
    """The heads in a configuration."""
    return tuple(
        Head(head["name"], tuple(head["labels"]), cast("HeadKind", head["kind"]))
        for head in cast("Sequence[Mapping[str, str]]", config["heads"])
    )


def read_format(folder: Path) -> str | None:
    """The ``model_type`` in the folder's config.json; None if it has none."""
    if not (folder / "config.json").is_file():
        return None
    kind = read_config(folder).get("model_type")
    return kind if isinstance(kind, str) else None


def open_classifier(folder: Path, execution: Execution) -> TextClassifier:
    """The classifier of a folder; cached by folder, device and batch."""
    return _open_cached(folder.resolve(), device=select_device(execution.device), rows=execution.batch)


def embedded_classifier(execution: Execution) -> TextClassifier:
    """The classifier shipped with the package."""
    return open_classifier(asset_path("classifiers"), execution)


_open_cached = lru_cache(maxsize=2)(TextClassifier)


def build_network(
    shape: EncoderShape, weights: Mapping[str, Tensor], heads: tuple[Head, ...] = HEADS
) -> ClassifierNetwork:
    """The classifier network with these weights."""
    network = ClassifierNetwork(Encoder(shape), heads)
    network.load_state_dict(dict(weights))
    return network.eval()


def save_classifier(folder: Path, network: ClassifierNetwork, *, vocabulary: Path) -> None:
    """Write ``model.safetensors``, ``vocab.txt`` and ``config.json``, with uncalibrated logits."""
    folder.mkdir(parents=True, exist_ok=True)
    int8_weights.save_quantised(network.state_dict(), folder / "model.safetensors")
    if vocabulary.resolve() != (folder / "vocab.txt").resolve():
        shutil.copyfile(vocabulary, folder / "vocab.txt")
    labels = count_logits(network.heads)
    write_config(folder, network, scale=[1.0] * labels, shift=[0.0] * labels)


def write_config(
    folder: Path, network: ClassifierNetwork, *, scale: Sequence[float], shift: Sequence[float]
) -> None:
    """Write only ``config.json``, with the scale and shift of the logits."""
    heads = [{"name": head.name, "labels": list(head.labels), "kind": head.kind} for head in network.heads]
    config = {
        "model_type": FORMAT,
        "shape": asdict(network.encoder.shape),
        "heads": heads,
        "scale": [round(value, 4) for value in scale],
        "shift": [round(value, 4) for value in shift],
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
