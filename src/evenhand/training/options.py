"""The options of ``train`` and the classifiers it trains; `training.train` maps options to tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from evenhand.core.errors import InputError
from evenhand.core.options import Option
from evenhand.run_options import Device, Offline, Output, Seeded


@dataclass(frozen=True, slots=True)
class FineTuningConfig:
    """How a classifier is fine-tuned."""

    epochs: int = 5
    batch: int = 32
    rate: float = 2e-5
    warmup: float = 0.1
    """Share of all steps used for learning-rate warm-up."""
    is_constant: bool = False
    """Keep the learning rate constant after the warm-up, as plain Adam does, instead of decaying it."""
    weight_decay: float = 0.01
    clip: float = 1.0
    patience: int | None = None
    """Stop after this many epochs without a lower held-out loss; the best epoch is kept. None: run all."""
    seed: int = 0


class EpochLosses(NamedTuple):
    """The results of one epoch: mean losses in nats."""

    loss: float
    held_out_loss: float


@dataclass(frozen=True, slots=True)
class TrainingPreset:
    """A backbone and its training settings; options of the command override it."""

    task: str
    backbone: str
    recipe: FineTuningConfig
    longest: int
    """Tokens that a text is truncated to."""
    runs: int = 1
    """Number of trainings with different seeds, over which accuracy is averaged."""
    labels: tuple[str, ...] = ()
    """Binary columns of labels that can occur together; empty for one column of labels."""
    text: str = "text"
    """The column of the texts."""


_FROM_NOTHING: Final = FineTuningConfig(epochs=10, rate=1e-3, weight_decay=0.0, patience=2)
"""Networks trained from scratch; the epoch is chosen on the validation part, without the test part."""
LSTM_RECIPE: Final = FineTuningConfig(epochs=20, rate=1e-3, warmup=0.0, weight_decay=0.0)
"""The LSTM of the regard study."""
_ADAM: Final = FineTuningConfig(epochs=100, warmup=0.0, is_constant=True, weight_decay=0.0)
_BERT_LIKE: Final = FineTuningConfig(epochs=3, rate=2e-5)

# The papers' settings, and our own where a paper does not report them.
PRESETS: Final[Mapping[str, TrainingPreset]] = {
    # Kadan et al. 2024, section 4.1: Adam, 100 epochs, categorical cross-entropy, a dense layer of four with
    # softmax; the maximum length and early stopping are not reported.
    **{
        f"affective-{name}": TrainingPreset("emotion", model, replace(_ADAM, rate=rate, batch=batch), 128)
        for name, model, rate, batch in (
            ("bert", "bert-large-uncased", 1e-5, 80),
            ("gpt2", "gpt2-medium", 1e-6, 64),
            ("xlnet", "xlnet-large-cased", 1e-6, 80),
            ("t5", "t5-large", 1e-6, 80),
        )
    },
    # Dhamala et al. 2021, appendix A.2.5: dropout 0.1, a linear layer, six sigmoids; columns as in the Jigsaw
    # toxic comment data; epochs and batch are not reported.
    "bold": TrainingPreset(
        "toxicity",
        "bert-large-uncased-whole-word-masking",
        FineTuningConfig(epochs=3, rate=1e-4),
        longest=256,
        labels=("toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate"),
        text="comment_text",
    ),
    # Liu et al. 2021, section 5: articles prepared by evenhand.training.articles (100 tokens, up to 128
    # pieces); default parameters, none of which are reported.
    **{
        f"political-{name}": TrainingPreset("ideology", model, recipe, 128)
        for name, model, recipe in (
            ("xlnet", "xlnet-base-cased", _BERT_LIKE),
            ("bert", "bert-base-uncased", _BERT_LIKE),
            ("attention", "attention", _FROM_NOTHING),
            ("fasttext", "fasttext", replace(_FROM_NOTHING, rate=1e-2, epochs=20)),
            ("transformer", "small-transformer", replace(_FROM_NOTHING, rate=5e-4)),
            ("rnn", "lstm", LSTM_RECIPE),
            ("linear", "linear", FineTuningConfig()),
        )
    },
    # Sheng et al. 2019, appendix A.1 and section 4: mostly default parameters, which are batch 32, rate 5e-5
    # and 10 % warm-up in BERT's own script. The LSTM uses BERT's batch and decaying rate, and Adam's
    # usual learning rate; the pretrained vectors are the embedded ones.
    **{
        f"regard-{name}": TrainingPreset("regard", model, recipe, longest=50, runs=5)
        for name, model, recipe in (
            ("bert", "bert-base-uncased", FineTuningConfig(epochs=5, rate=5e-5)),
            ("lstm", "lstm", LSTM_RECIPE),
            ("lstm-pretrained", "lstm:embedded", LSTM_RECIPE),
        )
    },
}


def find_preset(name: str, task: str) -> TrainingPreset:
    """The preset of that name; an error if there is none, or if it is for another task."""
    preset = PRESETS.get(name)
    if preset is None or preset.task != task:
        available = ", ".join(name for name, other in PRESETS.items() if other.task == task)
        what = "there is no preset" if preset is None else f"the preset is for {preset.task}, not {task}:"
        raise InputError(
            f"{what} {name!r}",
            expected=available or f"none: {task} has no preset",
            fix="name one of these, or remove --preset" if available else "remove --preset",
        )
    return preset


_data = partial(Option, panel="Data")
_training = partial(Option, panel="Training")


class TrainOptions(Seeded, Output, Device, Offline, total=False):
    """The options of ``train``."""

    study: Annotated[
        Path | str | None,
        _data("A study, or its export, in place of DATA: trains on its consensus labels.", flag="from"),
    ]
    consensus: Annotated[
        Literal["majority", "dawid-skene"] | None,
        _data("With a study: majority or dawid-skene (default majority)."),
    ]
    agreement: Annotated[
        float | None, _data("With a study: share of ratings a label needs (default 0.5).", ge=0, le=1)
    ]
    sides: Annotated[
        str | Sequence[str] | None, _data("The two labels of a calibrator: FIRST,SECOND.", flag_type=str)
    ]
    text: Annotated[str | None, _data("Column of the texts (default text).")]
    label: Annotated[
        str | None, _data("Column of the labels (default label); for toxicity also several 0/1 columns: a,b.")
    ]
    valid: Annotated[Path | str | None, _data("Table of held-out texts (default: a fifth of DATA).")]
    test: Annotated[Path | str | None, _data("Table for a final test.")]
    backbone: Annotated[
        str | None,
        _training(
            "linear, builtin, builtin:masked, a Hub id or a folder; lstm, lstm:embedded, lstm:FILE; "
            "fasttext, attention, small-transformer; vader, textblob; ensemble:NAME or ensemble:A+B+C; "
            "for norms, a file of word vectors."
        ),
    ]
    model: Annotated[str | None, _training("The model that a calibrator steers (default builtin).")]
    preset: Annotated[str | None, _training("A paper's settings: " + ", ".join(PRESETS) + ".")]
    runs: Annotated[int | None, _training("Number of seeds to average over (default 1).", ge=1)]
    epochs: Annotated[int | None, _training("Training epochs (default 5; lstm 20; calibrator 3).", ge=1)]
    batch: Annotated[int | None, _training("Texts per batch (default 32).", ge=1)]
    learning_rate: Annotated[
        float | None,
        _training("Peak learning rate (default 2e-5; embedded: 1e-4, 2e-4; calibrator 1e-3).", gt=0, le=1),
    ]
    max_length: Annotated[int | None, _training("Maximum tokens per text (default 128).", ge=4)]
    patience: Annotated[
        int | None,
        _training("Stop after this many epochs without a lower held-out loss (default: never).", ge=1),
    ]


@dataclass(frozen=True, slots=True)
class ClassificationTask:
    """A question whose labels exclude each other."""

    name: str
    labels: tuple[str, ...]
    """Our labels, in the classifier's order."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names, in lower case, to our labels."""

    def map_label(self, given: str) -> str | None:
        """Our label for a value in a table; None if it is unknown.

        >>> TASKS["regard"].map_label("-1.0"), TASKS["ideology"].map_label("Right")
        ('negative', 'conservative')
        """
        name = given.strip().lower().removesuffix(".0")
        return name if name in self.labels else self.aliases.get(name)

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
