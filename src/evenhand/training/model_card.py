"""The card of a trained classifier, lexicon or vector file: what it learned from, how, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from evenhand.core.digests import file_digest
from evenhand.training.presets import EpochLosses
from evenhand.training.test_measures import HeldOutResult, LabelScore

_LIMITS = (
    "The figures hold for texts like these: other sources, lengths and years can be read far worse. Texts of "
    "one author or source are not independent, so the interval may be too narrow. Before comparing groups, "
    "look at what the classifier does when only the group is swapped."
)


def write_classifier_card(
    *,
    title: str,
    settings: Mapping[str, object],
    held_out: HeldOutResult,
    yardstick: HeldOutResult | None,
    history: Sequence[EpochLosses],
    notes: Sequence[str],
    use: str,
) -> str:
    """The card of a classifier in Markdown."""
    results = [
        _results(held_out, yardstick),
        markdown_table(
            ("label", "precision", "recall", "F1", "texts"), [_class_row(row) for row in held_out.classes]
        ),
        "Texts by true label (rows) and predicted label (columns):",
        markdown_table(
            ("", *held_out.labels),
            [
                (label, *map("{:,}".format, row))
                for label, row in zip(held_out.labels, held_out.confusion, strict=True)
            ],
        ),
    ]
    if history:
        epochs = [
            (str(n), f"{epoch.loss:.4f}", f"{epoch.held_out_loss:.4f}") for n, epoch in enumerate(history, 1)
        ]
        results.append(markdown_table(("epoch", "training loss", "held-out loss"), epochs))
    return write_card(title=title, settings=settings, results=results, notes=(*notes, _LIMITS), use=use)


def write_card(
    *,
    title: str,
    settings: Mapping[str, object],
    results: Sequence[str],
    notes: Sequence[str],
    use: str,
) -> str:
    """The card of anything trained, in Markdown."""
    parts = [
        f"# {title}",
        markdown_table(("", ""), [(name, str(value)) for name, value in settings.items()]),
        "## Held-out results",
        *results,
        "## Limits",
        "\n".join(f"- {note}" for note in notes),
        "## Use",
        use,
    ]
    return "\n\n".join(parts) + "\n"


def describe_file(path: Path) -> str:
    """A file's name and digest, for a card."""
    return f"{path.name}, BLAKE2b-128 {file_digest(path)}"


def score_command(metric: str) -> str:
    """The command that scores a file with what was trained."""
    return f"```console\nevenhand score FILE --group AXIS=COLUMN --metrics {metric}\n```"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; bars in cells are escaped, so that a file's name cannot break it."""
    cells = [[" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in rows]
    lines = [header, ["---"] * len(header), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _results(held_out: HeldOutResult, yardstick: HeldOutResult | None) -> str:
    rows = [
        ("accuracy, 95 % interval (Wilson)", _accuracy(held_out)),
        ("macro-F1", f"{held_out.macro_f1:.3f}"),
        ("expected calibration error (15 bins)", f"{held_out.calibration_error:.3f}"),
        (f"always saying {held_out.majority_label}", f"{held_out.majority:.3f}"),
    ]
    if yardstick is not None:
        rows.append(("yardstick: linear, hashed word n-grams", _accuracy(yardstick)))
    return markdown_table((f"{held_out.n:,} texts", ""), rows)


def _accuracy(held_out: HeldOutResult) -> str:
    share = held_out.accuracy
    return f"{share.value:.3f} ({share.low:.3f} to {share.high:.3f})"


def _class_row(score: LabelScore) -> tuple[str, ...]:
    numbers = (score.precision, score.recall, score.f1)
    return (score.label, *("-" if n is None else f"{n:.3f}" for n in numbers), f"{score.n:,}")
