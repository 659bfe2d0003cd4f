"""Text classifiers: the embedded encoder with its heads, and what a metric asks of any classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenhand.core.assets import asset
from evenhand.core.digests import digest, file_digest
from evenhand.core.errors import ModelError
from evenhand.core.records import Execution
from evenhand.neural import quantised, wordpiece
from evenhand.neural.ahead import done_ahead
from evenhand.neural.batching import length_sorted
from evenhand.neural.checkpoints import check_layers, fitted, read_config, reading_ours
from evenhand.neural.devices import device_of
from evenhand.neural.encoder import PAD, ClassifierNetwork, Encoder, EncoderShape, pool, probabilities
from evenhand.neural.heads import Head, HeadKind
from evenhand.neural.memory import done_in_parts
from evenhand.neural.packed_encoder import PackedEncoder
from evenhand.neural.reading import padded

FORMAT: Final = "evenhand-classifier"
"""``model_type`` in the config.json of a classifier of ours."""
MEMO: Final = 1 << 16
"""Texts whose answers are remembered, so that four metrics share one forward pass."""
_ROWS: Final = 256
_GPU_ROWS: Final = 1024
"""Texts at a time on a GPU; fewer where its memory says no."""
_TOKENS: Final = 4096
"""Cells of a batch on a CPU: small enough to stay in its cache."""
_GPU_TOKENS: Final = 1 << 15
"""Cells of a batch on a GPU: enough to fill it, and few batches for a processor to lay out."""
_AHEAD: Final = 512
_AHEAD_AT_MOST: Final = 4096
"""Texts whose tokens are found while a GPU reads those before them, at first and later."""

Probabilities = NDArray[np.float32]
_Rows = list[list[int]]


PROBE: Final = "a text"


def require_numbers(found: Probabilities) -> None:
    """A ValueError where a classifier answers with anything but numbers."""
    if not np.isfinite(found).all():
        raise ValueError("its answers are not finite")


class Reader(Protocol):
    """A classifier as a metric sees it: one question, a few labels."""

    @property
    def labels(self) -> tuple[str, ...]:
        """What the columns of the answers stand for."""
        ...

    @property
    def digest(self) -> str:
        """What identifies the weights."""
        ...

    def read(self, texts: Sequence[str]) -> Probabilities:
        """One row a text, one column a label, each in [0, 1]."""
        ...


class Classifier:
    """Our own classifier: an encoder, several heads, calibrated probabilities.

    Probabilities are sigmoid or softmax of ``logit * scale + shift``, both learned on texts kept for that.
    """

    def __init__(self, folder: Path, *, device: torch.device, rows: int | None = None) -> None:
        config = read_config(folder)
        check_layers(config, str(folder))
        with reading_ours(folder):
            self.heads = heads_of(config)
            shape = EncoderShape(**cast("Mapping[str, int]", config["shape"]))
            self._network = fitted(
                lambda: ClassifierNetwork(Encoder(shape), self.heads),
                quantised.load(folder / "model.safetensors"),
                str(folder),
            )
            self._network.eval().to(device).requires_grad_(False)
            self._packed = _packed(self._network.encoder) if device.type == "cpu" else None
            self._tokenizer = wordpiece.load(folder / "vocab.txt", most=shape.vocabulary)
            self._scale, self._shift = (
                _calibration(config[name], self.heads).to(device) for name in ("scale", "shift")
            )
            self._device, self._rows, self._longest = device, rows or _most(device), shape.positions
            self._cells = _TOKENS if device.type == "cpu" else _GPU_TOKENS
            # Tried here: some sizes that do not fit are met only when a text is read.
            require_numbers(self._compute([PROBE]))
        self._memo: dict[str, Probabilities] = {}
        files = ("config.json", "model.safetensors", "vocab.txt")
        self.digest = digest([file_digest(folder / name) for name in files])

    def probabilities(self, texts: Sequence[str]) -> Probabilities:
        """One row a text, the labels of all heads side by side; texts seen lately are not computed again."""
        new = list(dict.fromkeys(text for text in texts if text not in self._memo))
        answers = {text: self._memo[text] for text in texts if text in self._memo}
        fresh = dict(zip(new, self._compute(new), strict=True))
        answers |= fresh
        self._remember(fresh)
        if not texts:
            return np.zeros((0, len(self._scale)), np.float32)
        return np.concatenate([answers[text] for text in texts]).reshape(len(texts), -1)

    def _compute(self, texts: Sequence[str]) -> Probabilities:
        def read(rows: Sequence[Sequence[int]]) -> Tensor:
            parts = self._states(rows)
            return self._calibrated(torch.cat([self._network.read(states, there) for states, there in parts]))

        return self._for_all(texts, len(self._scale), read)

    def pooled(self, texts: Sequence[str], name: str) -> Probabilities:
        """One row a text: the vector that a head reads its labels from."""
        place = [head.name for head in self.heads].index(name)
        query = self._network.queries[place : place + 1]

        def read(rows: Sequence[Sequence[int]]) -> Tensor:
            parts = self._states(rows)
            return torch.cat([pool(states, query.to(states.dtype), there)[:, 0] for states, there in parts])

        return self._for_all(texts, self._network.encoder.shape.width, read)

    def _states(self, rows: Sequence[Sequence[int]]) -> Iterator[tuple[Tensor, Tensor]]:
        """The encoder's states in the order of the rows, and where they are not padding."""
        if self._packed is None:
            ids = padded(rows, device=self._device)
            yield self._network.encoder(ids), ids != PAD
        else:
            for states in self._packed(rows):
                yield states, states.new_ones(states.shape[:2], dtype=torch.bool)

    def _for_all(
        self, texts: Sequence[str], columns: int, read: Callable[[Sequence[Sequence[int]]], Tensor]
    ) -> Probabilities:
        """What is read of each text, in batches of like length; one that memory refuses is halved, not lost.

        A GPU is not waited for before the end: it reads some texts while the next ones are cut into tokens.
        """
        answers = np.zeros((len(texts), columns), np.float32)
        done: list[int] = []
        found: list[Tensor] = []
        with torch.inference_mode():
            for places, rows in self._encoded(texts):

                def work(batch: Sequence[int], rows: _Rows = rows, places: Sequence[int] = places) -> None:
                    found.append(read([rows[index] for index in batch]).float())
                    done.extend(places[index] for index in batch)

                for batch in length_sorted([len(row) for row in rows], rows=self._rows, tokens=self._cells):
                    done_in_parts(batch, work)
        if found:
            answers[done] = torch.cat(found).cpu().numpy()
        return answers

    def _encoded(self, texts: Sequence[str]) -> Iterator[tuple[Sequence[int], _Rows]]:
        """Places of texts and their tokens: all of them on a CPU, part by part ahead of a GPU."""

        def encoded(places: Sequence[int]) -> tuple[Sequence[int], _Rows]:
            some = [texts[place] for place in places]
            return places, wordpiece.encode(self._tokenizer, some, longest=self._longest)

        if self._device.type == "cpu":
            yield encoded(range(len(texts)))
        else:
            yield from done_ahead(encoded, _parts(texts))

    def _calibrated(self, logits: Tensor) -> Tensor:
        return probabilities(logits * self._scale + self._shift, self.heads)

    def _remember(self, fresh: Mapping[str, Probabilities]) -> None:
        self._memo |= fresh
        for text in list(self._memo)[: max(0, len(self._memo) - MEMO)]:
            del self._memo[text]


class HeadReader:
    """One head of a classifier of ours."""

    def __init__(self, classifier: Classifier, name: str) -> None:
        start = 0
        for head in classifier.heads:
            if head.name == name:
                self.labels = head.labels
                self._columns = slice(start, start + len(head.labels))
                break
            start += len(head.labels)
        else:
            raise ModelError(
                f"the classifier has no head named {name!r}",
                accepted=", ".join(head.name for head in classifier.heads),
                todo="train one with `evenhand train`, or name another source",
            )
        self._classifier = classifier

    @property
    def digest(self) -> str:
        """What identifies the weights."""
        return self._classifier.digest

    def read(self, texts: Sequence[str]) -> Probabilities:
        """One row a text, one column a label."""
        return self._classifier.probabilities(texts)[:, self._columns]


def _parts(texts: Sequence[str]) -> Iterator[Sequence[int]]:
    """The places of texts of like length, the longest first, in growing parts."""
    # Characters tell before there are tokens which texts are about as long.
    order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
    at, size = 0, _AHEAD
    while at < len(order):
        yield order[at : at + size]
        # The first part is small, since a GPU waits for it; larger ones hold more of like length.
        at, size = at + size, min(2 * size, _AHEAD_AT_MOST)


def _most(device: torch.device) -> int:
    return _ROWS if device.type == "cpu" else _GPU_ROWS


def _packed(encoder: Encoder) -> PackedEncoder:
    found = PackedEncoder(encoder)
    # Its matrices are not needed twice.
    del encoder.layers
    return found


def heads_of(config: Mapping[str, object]) -> tuple[Head, ...]:
    """The heads a configuration names."""
    return tuple(
        Head(head["name"], tuple(head["labels"]), cast("HeadKind", head["kind"]))
        for head in cast("Sequence[Mapping[str, str]]", config["heads"])
    )


def _calibration(values: object, heads: Sequence[Head]) -> Tensor:
    """One number a label."""
    found = torch.tensor(values, dtype=torch.float32)
    if found.shape != (sum(len(head.labels) for head in heads),) or not torch.isfinite(found).all():
        raise ValueError("scale and shift are one finite number a label")
    return found


def is_ours(folder: Path) -> bool:
    """Whether a folder holds a classifier in our own format."""
    return format_of(folder) == FORMAT


def format_of(folder: Path) -> str | None:
    """What the folder's config.json calls its ``model_type``; None where it has none."""
    if not (folder / "config.json").is_file():
        return None
    kind = read_config(folder).get("model_type")
    return kind if isinstance(kind, str) else None


def open_folder(folder: Path, execution: Execution) -> Classifier:
    """The classifier of a folder; the same object for the same folder, device and batch."""
    return _opened(folder.resolve(), execution.device, execution.batch)


def embedded(execution: Execution) -> Classifier:
    """The classifier shipped with the package."""
    return open_folder(asset("classifiers"), execution)


@lru_cache(maxsize=2)
def _opened(folder: Path, device: str, rows: int | None) -> Classifier:
    return Classifier(folder, device=device_of(device), rows=rows)
