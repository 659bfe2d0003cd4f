"""What a classifier can be trained to say: each task, its labels, and other names for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from evenhand.core.errors import InputError


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

        >>> TASKS["regard"].label_of("-1.0"), TASKS["ideology"].label_of("Right")
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


def find_task(name: str) -> ClassificationTask:
    """The task of a name."""
    if name not in TASKS:
        raise InputError(
            f"there is no classifier {name!r} to train", expected=", ".join(TASKS), fix="name one of these"
        )
    return TASKS[name]
