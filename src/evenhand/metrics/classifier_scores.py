"""What the metrics behind a classifier share: empty texts are null, the rest is asked in one go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from evenhand.core.records import Text, Value

OutputRow = Mapping[str, Value]
EMPTY = Value(None, None, "empty")


def score_texts(
    texts: Sequence[Text],
    *,
    outputs: Sequence[str],
    read: Callable[[Sequence[str]], Sequence[Sequence[float]]],
    row: Callable[[Sequence[float]], OutputRow],
) -> list[OutputRow]:
    """For each text its row of values; null with the reason ``empty`` where there is nothing to read."""
    strings = [text.text for text in texts]
    full = [string for string in strings if string.strip()]
    rows = iter([row(answer) for answer in read(full)])
    nothing = dict.fromkeys(outputs, EMPTY)
    return [next(rows) if string.strip() else nothing for string in strings]
