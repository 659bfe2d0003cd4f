"""Classifiers from the Hub or a folder, with their labels mapped to ours, and ensembles that vote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import numpy as np
import torch
from numpy.typing import NDArray

from evenhand.classifiers import word_networks
from evenhand.classifiers.text_classifier import (
    FORMAT,
    HeadReader,
    LabelReader,
    Probabilities,
    check_answers,
    embedded_classifier,
    open_classifier,
    read_format,
)
from evenhand.core.digests import digest
from evenhand.core.errors import ModelError
from evenhand.core.records import Execution
from evenhand.tensors import checkpoints
from evenhand.tensors.batching import batch_by_length, run_in_halves
from evenhand.tensors.devices import select_device
from evenhand.tensors.model_files import locate_model

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_ROWS: Final = {"cpu": 32, "cuda": 256}
"""Texts per batch; batches that do not fit in memory are halved."""
_LONGEST: Final = 512
_OVER_WORDS: Final = (word_networks.LSTM_FORMAT, word_networks.FORMAT)
ENSEMBLE: Final = "evenhand-ensemble"
"""``model_type`` in the config.json of an ensemble; its members are the folders named there."""

Synonyms = Mapping[str, Sequence[str]]
"""Our label to the names that other models use, in lower case; several names in one model are summed."""


class HubClassifier:
    """A classifier loaded by transformers, with its labels mapped to ours."""

    def __init__(self, name: str, synonyms: Synonyms, execution: Execution) -> None:
        source = locate_model(name, offline=execution.offline)
        files = checkpoints.weight_files(source.folder)
        checkpoints.check_config(checkpoints.read_config(source.folder), repr(name))
        with _hub_errors(name):
            self._model, self._tokenizer = load_sequence_classifier(source.folder)
        self._device = select_device(execution.device)
        self._rows = execution.batch or _ROWS.get(self._device.type, _ROWS["cpu"])
        self._model.eval().to(self._device)  # type: ignore[no-untyped-call]
        checkpoints.require_finite(self._model.state_dict(), repr(name))
        with _hub_errors(name):
            self._count = int(self._model.config.num_labels or 0)
            names = cast("Mapping[int, str]", self._model.config.id2label)
            theirs = [str(names[index]).lower() for index in range(self._count)]
        self._columns = _columns(name, theirs, synonyms)
        self.labels = tuple(self._columns)
        with _hub_errors(name):
            check_answers(self.read)
        self.digest = source.commit or digest([checkpoints.weights_digest(files), self.labels])

    def read(self, texts: Sequence[str]) -> Probabilities:
        """One row per text, one column per label."""
        longest = min(self._tokenizer.model_max_length, _LONGEST)
        rows = self._tokenizer(list(texts), truncation=True, max_length=longest)["input_ids"] if texts else []
        answers = np.zeros((len(rows), self._count), dtype=np.float32)

        def work(batch: Sequence[int]) -> None:
            inputs = self._tokenizer.pad({"input_ids": [rows[i] for i in batch]}, return_tensors="pt")
            logits = self._model(**inputs.to(self._device)).logits.float()
            kind = self._model.config.problem_type
            each = kind == "multi_label_classification" or logits.shape[1] == 1
            answers[list(batch)] = (logits.sigmoid() if each else logits.softmax(-1)).cpu().numpy()

        with torch.inference_mode():
            for batch in batch_by_length([len(row) for row in rows], rows=self._rows):
                run_in_halves(batch, work)
        columns = [np.minimum(answers[:, places].sum(1), 1.0) for places in self._columns.values()]
        return np.stack(columns, axis=1)


def load_sequence_classifier(
    folder: Path, **options: object
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The sequence classifier in a folder, and its tokenizer; ``options`` are passed to the model."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False
    )
    model: PreTrainedModel = AutoModelForSequenceClassification.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False, use_safetensors=True, **options
    )
    if tokenizer.pad_token_id is None:
        # GPT-2 has no padding token, and its head must know which token is used instead.
        tokenizer.pad_token = tokenizer.eos_token
    if model.config.pad_token_id is None:
        model.config.pad_token_id = tokenizer.pad_token_id
    return model, tokenizer


def open_reader(head: str, source: str | None, synonyms: Synonyms, execution: Execution) -> LabelReader:
    """The reader of a head: the embedded one, a folder of our own format, or any sequence classifier."""
    if source is None:
        return HeadReader(embedded_classifier(execution), head)
    if "@" in source:
        return HubClassifier(source, synonyms, execution)
    folder = locate_model(source, offline=execution.offline).folder
    kind = read_format(folder)
    if kind == FORMAT:
        return HeadReader(open_classifier(folder, execution), head)
    if kind in _OVER_WORDS:
        return LabelFoldingReader(word_networks.WordClassifier(folder, execution), synonyms, source)
    if kind == ENSEMBLE:
        return EnsembleReader([open_reader(head, str(own), synonyms, execution) for own in _members(folder)])
    return HubClassifier(source, synonyms, execution)


def _hub_errors(name: str) -> AbstractContextManager[None]:
    return checkpoints.raise_model_errors(
        f"the classifier {name!r}",
        expected="a sequence classifier with its tokenizer, as transformers saves it",
        fix="download or save it again, or upgrade transformers",
    )


class LabelFoldingReader:
    """A reader with its labels mapped to ours."""

    def __init__(self, reader: LabelReader, synonyms: Synonyms, name: str) -> None:
        self._reader = reader
        self._columns = _columns(name, [label.lower() for label in reader.labels], synonyms)
        self.labels = tuple(self._columns)
        self.digest = reader.digest

    def read(self, texts: Sequence[str]) -> Probabilities:
        """One row per text, one column per label."""
        shares = self._reader.read(texts)
        return np.stack([shares[:, places].sum(1) for places in self._columns.values()], axis=1)


def _members(folder: Path) -> list[Path]:
    listed = checkpoints.read_config(folder).get("members")
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    invalid = [name for name in names if name != Path(name).name or name in ("", ".", "..")]
    # A folder that contained itself would cause endless recursion.
    nested = [name for name in names if not invalid and read_format(folder / name) == ENSEMBLE]
    if not names or invalid or nested or len(names) != len(cast("list[object]", listed)):
        raise ModelError(
            f"the members of {folder} are {', '.join(map(repr, names[:5])) or 'none'}",
            expected="folders inside it",
            fix="train the ensemble again",
        )
    return [folder / name for name in names]


def _columns(name: str, theirs: Sequence[str], synonyms: Synonyms) -> dict[str, list[int]]:
    columns = {
        ours: places
        for ours, names in synonyms.items()
        if (places := [place for place, label in enumerate(theirs) if label in (ours, *names)])
    }
    if not columns:
        raise ModelError(
            f"the labels of {name} are {', '.join(theirs)}",
            expected="; ".join(f"{ours}: {', '.join((ours, *names))}" for ours, names in synonyms.items()),
            fix="name a model made for this question, rename `id2label` in a copy of its config.json, or "
            "map its labels (`evenhand probe --label THEIRS=OURS`)",
        )
    return columns


class EnsembleReader:
    """Members with the same labels; each text gets the label that most of them choose."""

    def __init__(self, members: Sequence[LabelReader]) -> None:
        self._members = tuple(members)
        self.labels = members[0].labels
        self.digest = digest([member.digest for member in members])

    def read(self, texts: Sequence[str]) -> Probabilities:
        """One row per text: each label's share of the votes."""
        return vote_shares([member.read(texts) for member in self._members]).astype(np.float32)


def vote_shares(predictions: Sequence[NDArray[np.floating]]) -> NDArray[np.float64]:
    """The share of members that choose each label; on a tie, the mean of their probabilities.

    >>> predictions = [np.array([[0.6, 0.4]]), np.array([[0.9, 0.1]]), np.array([[0.2, 0.8]])]
    >>> vote_shares(predictions).round(3).tolist()
    [[0.667, 0.333]]
    """
    stacked = np.stack(predictions).astype(np.float64)
    chosen = np.eye(stacked.shape[-1])[stacked.argmax(-1)].mean(0)
    leading = chosen == chosen.max(1, keepdims=True)
    tied = leading.sum(1, keepdims=True) > 1
    shares: NDArray[np.float64] = np.where(tied, stacked.mean(0), chosen)
    # A member that returns NaN cannot vote, and the text then gets no answer.
    shares[np.isnan(stacked).any((0, 2))] = np.nan
    return shares


def save_ensemble(folder: Path, *, members: Sequence[str], labels: Sequence[str]) -> None:
    """Write ``config.json``; the members are subfolders with the given names."""
    config = {"model_type": ENSEMBLE, "members": list(members), "id2label": dict(enumerate(labels))}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
