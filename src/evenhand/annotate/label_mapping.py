"""People's labels as a metric's: the same words, other spellings, codes, or what the user says they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evenhand.core.errors import InputError
from evenhand.core.records import MetricInfo, OutputInfo
from evenhand.stats.label_scales import KNOWN_SCALES, LabelScale, normalise_label, number_or_none

UNORDERED: Final = ("mixed", "opposing", "sarcasm", "nonsense", "other")
"""Categories of texts without a place on the scale; a metric with the label ``other`` knows some."""
_OTHER: Final = ("mixed", "opposing", "other")
QUESTIONS: Final = {"gender_polarity": "gender"}
"""What people are asked where it is not called as the metric is."""


@dataclass(frozen=True, slots=True)
class LabelMapping:
    """One output of a metric, and what each of people's labels is among its labels."""

    output: OutputInfo
    labels: Mapping[str, str | None]
    """People's label to the metric's; None where it has none and is left out."""

    @property
    def is_complete(self) -> bool:
        """Whether labels can be compared; else only ranks can."""
        return len({label for label in self.labels.values() if label is not None}) > 1

    @property
    def places(self) -> dict[str, float]:
        """The metric's labels in order: -1, 0, 1 for three, 0, 1 for two; ``other`` has no place."""
        ordered = [label for label in self.output.labels if label != "other"]
        start = -1.0 if len(ordered) == 3 else 0.0
        return {label: start + at for at, label in enumerate(ordered)}


def map_labels(
    info: MetricInfo, scale: LabelScale, *, renamed: Mapping[str, str], outputs: Sequence[str] = ()
) -> list[LabelMapping]:
    """The outputs that people's labels can be compared with; an error where there is none.

    ``renamed`` is what the user says a label means, nothing where it is to be left out; ``outputs`` keeps
    these only. Where people gave numbers that are no labels, every output is compared by rank.
    """
    chosen = _select_outputs(info, outputs)
    said = {normalise_label(theirs): normalise_label(ours) for theirs, ours in renamed.items()}
    found = [LabelMapping(output, _labels(output, scale, said)) for output in chosen if output.labels]
    complete = [match for match in found if match.is_complete]
    if complete:
        _check_all_known(complete, scale, said)
        return complete
    if scale.is_ordered and all(number_or_none(label) is not None for label in scale.labels):
        return [
            LabelMapping(output, dict.fromkeys(scale.labels)) for output in chosen if output.kind != "label"
        ]
    if len(scale.labels) == 1 and any(label for match in found for label in match.labels.values()):
        raise InputError(
            f"people call every text {scale.labels[0]}, with which nothing can be told apart",
            expected="texts of two labels or more",
            fix="add texts that people call otherwise",
        )
    accepted = "; ".join(f"{match.output.name}: {', '.join(match.output.labels)}" for match in found)
    raise InputError(
        f"people's labels are {', '.join(scale.labels)}, of which {info.name} knows fewer than two",
        expected=accepted or "numbers, which are compared by rank",
        fix="say what they mean with --map THEIRS=OURS, or name another question with --question",
    )


def find_question(metric: str, questions: Sequence[str]) -> str:
    """The question a metric answers: of its name, or the only one there is."""
    named = QUESTIONS.get(metric, metric)
    if named in questions:
        return named
    if len(questions) == 1:
        return questions[0]
    raise InputError(
        f"{len(questions)} questions were asked, none of them {named!r}",
        expected=", ".join(questions),
        fix="name the one that the metric answers with --question",
    )


def _select_outputs(info: MetricInfo, outputs: Sequence[str]) -> list[OutputInfo]:
    known = {output.name: output for output in info.outputs}
    for name in outputs:
        if name not in known:
            raise InputError(
                f"metric {info.name!r} has no output {name!r}",
                expected=", ".join(known),
                fix="name one of these with --output",
            )
    return [known[name] for name in outputs] if outputs else list(info.outputs)


def _labels(output: OutputInfo, scale: LabelScale, said: Mapping[str, str]) -> dict[str, str | None]:
    return {label: _label(normalise_label(label), output.labels, scale, said) for label in scale.labels}


def _label(label: str, known: Sequence[str], scale: LabelScale, said: Mapping[str, str]) -> str | None:
    if label in said:
        return said[label] if said[label] in known else None
    if label in known:
        return label
    if label in _OTHER and "other" in known:
        return "other"
    for other in KNOWN_SCALES:
        found = other.label_of(label)
        if found in known and set(known) <= set(other.labels):
            return found
    return _map_code(label, known, scale)


def _map_code(label: str, known: Sequence[str], scale: LabelScale) -> str | None:
    """The label of a code: -1, 0 and 1 of three, 0 and 1 of two (BOLD, section 6.3)."""
    codes = (
        {"-1": 0, "0": 1, "1": 2}
        if len([name for name in known if name != "other"]) == 3
        else {"0": 0, "1": 1}
    )
    if label not in codes or any(other not in codes for other in map(normalise_label, scale.labels)):
        return None
    return known[codes[label]]


def _check_all_known(found: Sequence[LabelMapping], scale: LabelScale, said: Mapping[str, str]) -> None:
    """A label that is neither the metric's nor one that has no place is an error, not a silent loss."""
    for label in scale.labels:
        plain = normalise_label(label)
        meant = said.get(plain, plain)
        if all(match.labels[label] is None for match in found) and meant not in ("", *UNORDERED):
            raise InputError(
                f"people's label {label!r}"
                + (f", said to mean {meant!r}," if plain in said else "")
                + " is none of the metric's",
                expected=", ".join(found[0].output.labels),
                fix=f"say what it means with --map {label}=LABEL, or leave it out with --map {label}=",
            )
