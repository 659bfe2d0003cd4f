"""Maps human labels to a metric's labels: by name, spelling, code, or the user's own mapping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evenhand.annotate.label_set import require_known
from evenhand.core.errors import InputError
from evenhand.core.records import MetricInfo, OutputInfo
from evenhand.stats.label_scales import KNOWN_SCALES, LabelScale, normalise_label, number_or_none

UNORDERED: Final = ("mixed", "opposing", "sarcasm", "nonsense", "other")
"""Categories without a place on the scale; a metric with the label ``other`` covers some of them."""
_OTHER: Final = ("mixed", "opposing", "other")
QUESTIONS: Final = {"gender_polarity": "gender"}
"""The question that corresponds to a metric, if its name differs."""


@dataclass(frozen=True, slots=True)
class LabelMapping:
    """One output of a metric, and the metric's label for each human label."""

    output: OutputInfo
    labels: Mapping[str, str | None]
    """Human label to the metric's label; None if there is none and the label is left out."""

    @property
    def is_complete(self) -> bool:
        """Whether labels can be compared; otherwise only ranks can."""
        return len(set(self.labels.values()) - {None}) > 1

    @property
    def has_score(self) -> bool:
        """Whether the output has its own score: another cut of the same score only repeats it."""
        return self.output.kind != "label"

    @property
    def places(self) -> dict[str, float]:
        """Codes of the metric's labels in order: -1, 0, 1 for three, 0, 1 for two; none for ``other``."""
        ordered = [label for label in self.output.labels if label != "other"]
        start = -1.0 if len(ordered) == 3 else 0.0
        return {label: start + at for at, label in enumerate(ordered)}


def map_labels(
    info: MetricInfo, scale: LabelScale, *, renamed: Mapping[str, str], outputs: Sequence[str] = ()
) -> list[LabelMapping]:
    """The outputs that human labels can be compared with; an error if there is none.

    ``renamed`` is the user's mapping of labels, empty for labels to leave out; ``outputs`` selects
    some. If people gave numbers that are not labels, every output is compared by rank.
    """
    known = {output.name: output for output in info.outputs}
    problem = f"metric {info.name!r} has no output"
    require_known(outputs, known, problem, fix="name one of these with --output")
    selected = [known[name] for name in outputs or known]
    own = {normalise_label(theirs): normalise_label(ours) for theirs, ours in renamed.items()}
    mappings = [
        LabelMapping(
            output,
            {label: _map_label(normalise_label(label), output.labels, scale, own) for label in scale.labels},
        )
        for output in selected
        if output.labels
    ]
    if complete := [mapping for mapping in mappings if mapping.is_complete]:
        _check_all_known(complete, scale, own)
        return complete
    if scale.is_ordered and all(number_or_none(label) is not None for label in scale.labels):
        return [
            LabelMapping(output, dict.fromkeys(scale.labels)) for output in selected if output.kind != "label"
        ]
    if len(scale.labels) == 1 and any(mapping.labels[scale.labels[0]] for mapping in mappings):
        raise InputError(
            f"every text has the human label {scale.labels[0]}: there is nothing to compare",
            expected="texts with at least two labels",
            fix="add texts with other labels",
        )
    accepted = "; ".join(f"{one.output.name}: {', '.join(one.output.labels)}" for one in mappings)
    raise InputError(
        f"the human labels are {', '.join(scale.labels)}, of which {info.name} has fewer than two",
        expected=accepted or "numbers, which are compared by rank",
        fix="map them with --map THEIRS=OURS, or name another question with --question",
    )


def find_question(metric: str, questions: Sequence[str]) -> str:
    """The question that corresponds to a metric: by name, or the only question."""
    question = QUESTIONS.get(metric, metric)
    if question in questions:
        return question
    if len(questions) == 1:
        return questions[0]
    raise InputError(
        f"there are {len(questions)} questions, none of them {question!r}",
        expected=", ".join(questions),
        fix="name the question that fits the metric with --question",
    )


def _map_label(label: str, known: Sequence[str], scale: LabelScale, own: Mapping[str, str]) -> str | None:
    if label in own:
        return own[label] if own[label] in known else None
    if label in known:
        return label
    if label in _OTHER and "other" in known:
        return "other"
    for other in KNOWN_SCALES:
        alias = other.label_of(label)
        if alias in known and set(known) <= set(other.labels):
            return alias
    # Codes: -1, 0 and 1 for three labels, 0 and 1 for two (BOLD, section 6.3).
    codes = ("-1", "0", "1") if len([name for name in known if name != "other"]) == 3 else ("0", "1")
    is_coded = label in codes and all(normalise_label(one) in codes for one in scale.labels)
    return known[codes.index(label)] if is_coded else None


def _check_all_known(mappings: Sequence[LabelMapping], scale: LabelScale, own: Mapping[str, str]) -> None:
    """Raise an error for a label unknown to the metric, instead of dropping it silently."""
    for label in scale.labels:
        plain = normalise_label(label)
        mapped = own.get(plain, plain)
        if all(mapping.labels[label] is None for mapping in mappings) and mapped not in ("", *UNORDERED):
            raise InputError(
                f"the human label {label!r}"
                + (f", mapped to {mapped!r}," if plain in own else "")
                + " is not a label of the metric",
                expected=", ".join(mappings[0].output.labels),
                fix=f"map it with --map {label}=LABEL, or leave it out with --map {label}=",
            )
