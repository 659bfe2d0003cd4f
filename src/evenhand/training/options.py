"""The options of ``train``, and the classifiers it trains; `training.train` says which task takes which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Final

from evenhand.core.options import Option
from evenhand.run_options import Device, Offline, Output, Seeded
from evenhand.training.presets import PRESETS

_data = partial(Option, panel="Data")
_training = partial(Option, panel="Training")


class TrainOptions(Seeded, Output, Device, Offline, total=False):
    """The options of ``train``."""

    study: Annotated[
        Path | str | None,
        _data("A study, or an export of one, in place of DATA: the labels most people chose.", flag="from"),
    ]
    consensus: Annotated[str | None, _data("Of a study: majority or dawid-skene (default majority).")]
    agreement: Annotated[float | None, _data("Of a study: share of ratings a label needs (default 0.5).")]
    sides: Annotated[
        str | Sequence[str] | None, _data("The two labels of a calibrator: FIRST,SECOND.", flag_type=str)
    ]
    text: Annotated[str | None, _data("Column of the texts (default text).")]
    label: Annotated[
        str | None, _data("Column of the labels (default label); for toxicity also several of 0 and 1: a,b.")
    ]
    valid: Annotated[Path | str | None, _data("Another table to test on (default: a fifth of DATA).")]
    test: Annotated[Path | str | None, _data("A third table, tested on at the end.")]
    backbone: Annotated[
        str | None,
        _training(
            "linear, builtin, builtin:masked, a Hub id or a folder; lstm, lstm:embedded, lstm:FILE; "
            "fasttext, attention, small-transformer; vader, textblob; ensemble:NAME or ensemble:A+B+C; "
            "for norms a file of word vectors."
        ),
    ]
    model: Annotated[str | None, _training("The model a calibrator steers (default builtin).")]
    preset: Annotated[str | None, _training("A paper's training: " + ", ".join(PRESETS) + ".")]
    runs: Annotated[int | None, _training("Number of seeds to average over (default 1).", ge=1)]
    epochs: Annotated[int | None, _training("Training epochs (default 5; lstm 20; calibrator 3).", ge=1)]
    batch: Annotated[int | None, _training("Texts per batch (default 32).", ge=1)]
    learning_rate: Annotated[
        float | None,
        _training(
            "The highest learning rate (default 2e-5; embedded: 1e-4, 2e-4; calibrator 1e-3).", gt=0, le=1
        ),
    ]
    max_length: Annotated[int | None, _training("Tokens a text is cut to (default 128).", ge=4)]
    patience: Annotated[
        int | None,
        _training("Stop after this many epochs without a lower held-out loss (default: never).", ge=1),
    ]


@dataclass(frozen=True, slots=True)
class ClassificationTask:
    """A question with labels that exclude each other."""

    name: str
    labels: tuple[str, ...]
    """Our labels, in the order the classifier has them."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names, lower-case, to ours."""

    def map_label(self, given: str) -> str | None:
        """Our label for what a table holds; None where it means nothing here.

        >>> TASKS["regard"].map_label("-1.0"), TASKS["ideology"].map_label("Right")
        ('negative', 'conservative')
        """
        said = given.strip().lower().removesuffix(".0")
        return said if said in self.labels else self.aliases.get(said)

    def describe_labels(self) -> str:
        """The labels and their other names, for messages."""
        return "; ".join(
            ", ".join([label, *(alias for alias, ours in self.aliases.items() if ours == label)])
            for label in self.labels
        )


TASKS: Final = {
    task.name: task
    for task in (
        ClassificationTask(
            "regard",
            ("negative", "neutral", "positive", "other"),
            {"-1": "negative", "0": "neutral", "1": "positive", "2": "other", "mixed": "other"},
        ),
        ClassificationTask(
            "toxicity",
            ("nontoxic", "toxic"),
            {"0": "nontoxic", "false": "nontoxic", "not toxic": "nontoxic", "1": "toxic", "true": "toxic"},
        ),
        ClassificationTask("emotion", ("anger", "fear", "joy", "sadness", "neutral")),
        ClassificationTask(
            "ideology",
            ("liberal", "conservative"),
            {"left": "liberal", "0": "liberal", "right": "conservative", "1": "conservative"},
        ),
    )
}
"""The classifiers that can be trained, by name."""
