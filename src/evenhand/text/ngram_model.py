"""An n-gram language model: interpolated modified Kneser-Ney, in the ARPA format other tools read.

Chen and Goodman 1998, as Heafield et al. 2013 estimate it: the highest order counts how often an n-gram is,
lower orders count the different words before it; one begin mark a text; unknown words have the mass the
unigrams leave. ADR 23 says why it is ours.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from evenhand.core.errors import InputError
from evenhand.core.regular_files import open_regular

BEGIN: Final = "<s>"
END: Final = "</s>"
UNKNOWN: Final = "<unk>"
ORDER: Final = 5
FALLBACK: Final = (0.5, 1.0, 1.5)
"""Discounts where too few n-grams are seen once to four times to estimate them, as lmplz has them."""
_MOST_ORDERS: Final = 10
_LOWEST, _MOST_WEIGHT = 100.0, 20.0
"""Bounds of log-probabilities (-99 stands for never) and weights, so that no perplexity overflows."""
Gram: TypeAlias = tuple[str, ...]


class TextLikelihood(NamedTuple):
    """The log-probability of a text to base 10, and the words it was summed over, the end among them."""

    log10: float
    tokens: int


@dataclass(frozen=True, slots=True)
class NgramModel:
    """Log-probabilities and back-off weights to base 10, by order."""

    probabilities: tuple[Mapping[Gram, float], ...]
    backoffs: tuple[Mapping[Gram, float], ...]

    @property
    def order(self) -> int:
        """The longest n-gram."""
        return len(self.probabilities)

    def log_likelihood(self, pieces: Sequence[str]) -> TextLikelihood:
        """The log-probability of a text's pieces and of its end."""
        known = self.probabilities[0]
        row = (BEGIN, *(piece if (piece,) in known else UNKNOWN for piece in pieces), END)
        return TextLikelihood(math.fsum(self._next(row, at) for at in range(1, len(row))), len(row) - 1)

    def _next(self, row: Gram, at: int) -> float:
        """Of the piece at a place, after at most ``order - 1`` pieces before it."""
        start, weight = max(0, at - self.order + 1), 0.0
        for begin in range(start, at + 1):
            probability = self.probabilities[at - begin].get(row[begin : at + 1])
            if probability is not None:
                return weight + probability
            weight += self.backoffs[at - begin - 1].get(row[begin:at], 0.0)
        raise AssertionError("every piece is a unigram or unknown")

    def write(self, path: Path) -> None:
        """Write the model as an ARPA file."""
        with path.open("w", encoding="utf-8") as file:
            sizes = [f"ngram {n}={len(table)}" for n, table in enumerate(self.probabilities, start=1)]
            file.write("\n".join(("\\data\\", *sizes)) + "\n")
            levels = zip(self.probabilities, self.backoffs, strict=True)
            for n, (table, backoffs) in enumerate(levels, start=1):
                file.write(f"\n\\{n}-grams:\n")
                for gram, value in table.items():
                    weight = "" if n == self.order else f"\t{backoffs.get(gram, 0.0):.8g}"
                    file.write(f"{value:.8g}\t{' '.join(gram)}{weight}\n")
            file.write("\n\\end\\\n")


def train_ngram_model(texts: Iterable[Sequence[str]], *, order: int = ORDER) -> NgramModel:
    """The model of texts, each a list of pieces."""
    if order < 2:
        raise InputError(f"an n-gram model of order {order}", expected="2 or more", fix="use order 5")
    raw: list[Counter[Gram]] = [Counter() for _ in range(order)]
    for text in texts:
        row = (BEGIN, *text, END)
        for n, table in enumerate(raw, start=1):
            table.update(row[at : at + n] for at in range(len(row) - n + 1))
    if not raw[0]:
        raise InputError("there is no text to train an n-gram model on", expected="at least one text")
    counts = [_continuation_counts(raw, n) for n in range(1, order)] + [raw[order - 1]]
    (unigrams, unigram_mass), *levels = (_discount_counts(table) for table in counts)
    # Unknown words share what the unigrams leave; nothing ever predicts the begin mark.
    uniform = 1 / (len(counts[0]) + 1)
    left = unigram_mass.get((), 0.0) * uniform
    shares = [{gram: share + left for gram, share in unigrams.items()}]
    for own, mass in levels:
        shorter = shares[-1]
        shares.append({gram: share + mass[gram[:-1]] * shorter[gram[1:]] for gram, share in own.items()})
    first = {(UNKNOWN,): math.log10(left), (BEGIN,): -99.0}
    tables = [{gram: math.log10(value) for gram, value in table.items()} for table in shares]
    weights = [
        {gram: math.log10(value) if value > 0 else -99.0 for gram, value in mass.items()}
        for _, mass in levels
    ]
    return NgramModel((first | tables[0], *tables[1:]), (*weights, {}))


def read_arpa(path: Path) -> NgramModel:
    """The model of an ARPA file, whole and with the counts it declares."""
    sizes: list[int] = []
    probabilities: list[dict[Gram, float]] = []
    backoffs: list[dict[Gram, float]] = []
    ended = False
    try:
        with TextIOWrapper(open_regular(path), encoding="utf-8-sig") as file:
            for line in file:
                mark = line.strip()
                if mark.startswith("\\"):
                    ended = mark == "\\end\\"
                    if mark.endswith("-grams:"):
                        probabilities.append({})
                        backoffs.append({})
                elif probabilities and mark:
                    _add_line(line, len(probabilities), probabilities[-1], backoffs[-1])
                elif mark.startswith("ngram "):
                    sizes.append(int(mark.partition("=")[2]))
        counts = [len(table) for table in probabilities]
        if not ended or not counts or len(counts) > _MOST_ORDERS or counts != sizes:
            raise ValueError(f"it declares {sizes[:_MOST_ORDERS]} n-grams and has {counts[:_MOST_ORDERS]}")
        for word in (UNKNOWN, END):
            if (word,) not in probabilities[0]:
                raise ValueError(f"it has no {word}")
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} is no n-gram model: {error}",
            expected="a text file in the ARPA format",
            fix="check the path",
        ) from error
    return NgramModel(tuple(probabilities), tuple(backoffs))


def _add_line(line: str, order: int, numbers: dict[Gram, float], weights: dict[Gram, float]) -> None:
    """Add the log-probability of a line's n-gram, and its weight, which is often left out."""
    value, words, *weight = line.rstrip("\r\n").split("\t")
    gram, number, left = tuple(words.split(" ")), float(value), float(weight[0]) if weight else 0.0
    if len(gram) != order or not -_LOWEST <= number <= 0.0 or not abs(left) <= _MOST_WEIGHT:
        raise ValueError(f"a line of order {order} is {line.strip()[:80]!r}")
    numbers[gram] = number
    if left != 0.0:
        weights[gram] = left


def _continuation_counts(raw: Sequence[Counter[Gram]], n: int) -> Counter[Gram]:
    """How many different words come before each n-gram; one at the begin of a text keeps its count."""
    table = Counter(gram[1:] for gram in raw[n])
    table.update({gram: count for gram, count in raw[n - 1].items() if gram[0] == BEGIN and n > 1})
    return table


def _discount_counts(counts: Mapping[Gram, int]) -> tuple[dict[Gram, float], dict[Gram, float]]:
    """What each n-gram keeps of its context's mass, and what each context leaves."""
    discounts = _discounts(counts)
    totals: Counter[Gram] = Counter()
    left: dict[Gram, float] = defaultdict(float)
    for gram, count in counts.items():
        totals[gram[:-1]] += count
        left[gram[:-1]] += discounts[min(count, 3) - 1]
    shares = {
        gram: (count - discounts[min(count, 3) - 1]) / totals[gram[:-1]] for gram, count in counts.items()
    }
    return shares, {context: mass / totals[context] for context, mass in left.items()}


def _discounts(counts: Mapping[Gram, int]) -> tuple[float, ...]:
    """For n-grams seen once, twice, and more often; the fallback where one would be out of range."""
    seen = Counter(count for count in counts.values() if count <= 4)
    if any(seen[times] == 0 for times in (1, 2, 3)):
        return FALLBACK
    scale = seen[1] / (seen[1] + 2 * seen[2])
    discounts = tuple(k - (k + 1) * scale * seen[k + 1] / seen[k] for k in (1, 2, 3))
    return discounts if all(0 < value <= k for k, value in enumerate(discounts, start=1)) else FALLBACK
