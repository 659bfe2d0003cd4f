"""What docs/performance.md says of one GPU: sampling and classifiers at growing batch, and where memory ends.

Figures are taken from the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from bars import read

Result = Mapping[str, object]
Part = Mapping[str, object]
Parts = Mapping[str, Part]
Lengths = Mapping[int, Mapping[int, Part]]
"""Parts by tokens a row, then by rows."""

SAMPLING, CLASSIFIERS, MEMORY = FILES = ("sampling-gpu-medium", "classifiers-gpu", "memory-gpu")
HALF, FULL = "mitigation-gpu-bf16", "mitigation-gpu"
_MODES = ("embedding", "classifier")
_WAYS = ("vanilla", *_MODES, "plain calls")
_SHARES = {
    "bandwidth": "shares_of_bandwidth",
    "matrix rate": "shares_of_matrix_rate",
    "limit": "shares_of_limit",
}

_SAMPLING = """\
### Sampling at growing batch

Tokens per second of a model with GPT-2-medium's sizes that generates four texts per slot (two if they are long),
in bfloat16 with top-k 40, after prompts of three tokens; prefill time is included. Every text has its full length,
so sequences end together: the cost of replacing them one by one is not included. "Plain calls" is vanilla sampling
without CUDA graphs ([decision 31](adr/0031-recorded-steps.md)). The other columns are shares for vanilla sampling:

- **bandwidth**: the bytes that all steps must move, divided by what one large copy moves in the same time. A step
  reads all weights once, and the keys and values of each sequence.
- **matrix rate**: the operations of all matrix products and of attention, divided by those of one large product in
  the same time.
- **limit**: the minimum time that this device needs for both, divided by the time taken. Small batches are limited
  by bandwidth alone. In large ones, products are limited by the matrix rate and attention by bandwidth, one after
  the other: a perfectly used device then has 100 % here and less in the two columns before.
- **device time**: the share of the time in which any kernel or copy runs. In the rest, the device waits for the CPU.
  It is profiled in a separate run, which is not timed, because profiling slows the CPU.
"""
_FOUND = """\
The difference to 100 % of the limit is time in which the device waits, kernels below their limit, and work that is
not counted: norms, sums, sampling and the prompts.
"""
_CALIBRATED = """\
The time that calibration adds to a step with word lists (embedding) and with a head (classifier), its cost relative
to vanilla sampling, and its share of the limit, which counts the model's own work only.
"""
_BARS = """\
The bars of calibration apply to float32 with 32 sequences. Over the 24 tokens of the table above, its cost factor is
{half} in bfloat16, where prefill, which all variants share, is a larger part; with one sequence in
float32 it is {alone}: the 15 optimisation steps are sequential, and few sequences do not fill a GPU.
"""
_READING = """\
### Classifiers at growing batch

Texts per second of the embedded encoder with its four heads on BOLD's sentences, including the tokenizer, in
float32; the share of the device's matrix rate in float32, and the share of time in which any kernel runs.
"""


def gpu_parts(results: Path) -> Iterator[str]:
    """Sampling and classifiers at growing batch, and what happens where memory ends."""
    sampled, read_, little = (read(results, name) for name in FILES)
    if sampled is not None:
        yield _SAMPLING
        for tokens, parts in by_length(sampled).items():
            yield f"{tokens} tokens a row:\n\n" + _sampled_table(parts)
        yield _FOUND + "\n" + "\n".join(f"- {one}" for one in _findings(by_length(sampled)))
        yield _CALIBRATED + "\n" + _calibrated_table(by_length(sampled))
        yield from _bars(results)
    if read_ is not None:
        yield from _reading(read_)
    if little is not None:
        yield "### Where memory ends\n\n" + _little_memory(little)


def by_length(sampled: Result) -> dict[int, dict[int, Part]]:
    """The parts of a result, named ROWSxTOKENS, by tokens and then by rows."""
    found: dict[int, dict[int, Part]] = {}
    for name, part in cast("Parts", sampled["parts"]).items():
        rows, tokens = map(int, name.split("x"))
        found.setdefault(tokens, {})[rows] = part
    return found


def _sampled_table(parts: Mapping[int, Part]) -> str:
    ways = [way for way in _WAYS if any(way in cast("Part", part["rates"]) for part in parts.values())]
    rows = [
        [
            f"{count:,}",
            *(f"{_at(part, 'rates', way, 'wall'):,.0f}" for way in ways),
            *(_percent(_at(part, key, "vanilla")) for key in _SHARES.values()),
            _device_time(part),
        ]
        for count, part in parts.items()
    ]
    return _table(["rows", *ways, *_SHARES, "device time"], rows)


def _reading(found: Result) -> Iterator[str]:
    parts = cast("Parts", found["parts"])
    rows = [
        [
            f"{int(name):,}",
            f"{_at(part, 'rates', 'evenhand', 'wall'):,.0f}",
            _percent(_at(part, "share_of_matrix_rate")),
            _device_time(part),
        ]
        for name, part in parts.items()
    ]
    yield _READING + "\n" + _table(["rows", "texts a second", "matrix rate", "device time"], rows)
    yield _nearest_reading(parts)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _findings(lengths: Lengths) -> Iterator[str]:
    """What the tables show."""
    parts = {(rows, tokens): part for tokens, some in lengths.items() for rows, part in some.items()}
    (rows, tokens), best = max(parts.items(), key=lambda one: _at(one[1], "shares_of_limit", "vanilla"))
    yield (
        f"*Nearest to the limit* is vanilla sampling with {_counted(rows, 'row')} of {tokens} tokens: "
        f"{_percent(_at(best, 'shares_of_limit', 'vanilla'))}, which is "
        f"{_percent(_at(best, 'shares_of_bandwidth', 'vanilla'))} of the bandwidth and "
        f"{_percent(_at(best, 'shares_of_matrix_rate', 'vanilla'))} of the matrix rate."
        + _worked(best, _at(best, "shares_of_limit", "vanilla"), "limit")
    )
    yield _replaying(next(iter(lengths.values())))
    for (rows, tokens), part in parts.items():
        if part.get("told"):
            said = "; ".join(cast("Sequence[str]", part["told"]))
            yield f"*{_counted(rows, 'row')} of {tokens} tokens*: the library warned: {said}."


def _worked(part: Part, share: float, of: str) -> str:
    """How a share comes about, where it was measured: how long the device works, and how well."""
    device = cast("float | None", part.get("device_time_share"))
    if device is None:
        return ""
    worked, reached = _percent(device), _percent(share / device)
    return f" The device works {worked} of the time, and then at {reached} of the {of}."


def _replaying(parts: Mapping[int, Part]) -> str:
    """What recorded steps bring, at the fewest and at the most rows."""
    gains = {rows: _at(part, "ratios", "plain calls", "wall") for rows, part in parts.items()}
    few, many = min(gains), max(gains)
    kernels = parts[few].get("kernels_a_token")
    told = "" if kernels is None else f"some {cast(float, kernels):.0f} "
    return (
        f"*Few rows.* A step is a chain of {told}short kernels. Replaying starts them without the "
        f"processor's help: {gains[few]:.1f} times the tokens of plain calls at {_counted(few, 'row')}, "
        f"{gains[many]:.1f} times at {_counted(many, 'row')}, where kernels are long."
    )


def _calibrated_table(lengths: Lengths) -> str:
    """What both modes add, cost and reach at 32 rows and at the most."""
    chosen = [
        (rows, tokens, parts[rows])
        for tokens, parts in lengths.items()
        for rows in dict.fromkeys((32, max(parts)))
        if rows in parts
    ]
    rows = [
        [
            f"{rows:,}",
            str(tokens),
            *(f"{_added(part, mode):.2f} ms" for mode in _MODES),
            *(f"{_at(part, 'ratios', mode, 'wall'):.2f}x" for mode in _MODES),
            *(_percent(_at(part, "shares_of_limit", mode)) for mode in _MODES),
        ]
        for rows, tokens, part in chosen
    ]
    heads = [f"{what}, {mode}" for what in ("added", "cost", "limit") for mode in ("words", "head")]
    return _table(["rows", "tokens", *heads], rows)


def _added(part: Part, mode: str) -> float:
    """Milliseconds a step that a mode takes more than vanilla sampling."""
    return 1000 * (_at(part, "seconds", mode) - _at(part, "seconds", "vanilla")) / _at(part, "steps")


def _bars(results: Path) -> Iterator[str]:
    half, alone = (_part_of(results, *place) for place in ((HALF, "32"), (FULL, "1")))
    if half is not None and alone is not None:
        yield _BARS.format(half=_costs(half), alone=_costs(alone))


def _part_of(results: Path, name: str, rows: str) -> Part | None:
    found = read(results, name)
    return None if found is None else cast("Parts", found["parts"]).get(rows)


def _costs(part: Part) -> str:
    """What the two modes cost against vanilla sampling."""
    return " and ".join(f"{_at(part, 'cost', mode, 'wall'):.2f}x" for mode in _MODES)


def _nearest_reading(parts: Parts) -> str:
    """The batch at which classifiers come nearest to the matrix rate."""
    rows, best = max(parts.items(), key=lambda one: _at(one[1], "share_of_matrix_rate"))
    reached = _at(best, "share_of_matrix_rate")
    return (
        f"{_percent(reached)} of the matrix rate is the most, at {_counted(int(rows), 'row')}."
        f"{_worked(best, reached, 'matrix rate')} The rest is waiting for tokens, and norms, sums and "
        "products that are too small to fill the device."
    )


def _little_memory(found: Result) -> str:
    parts = cast("Parts", found["parts"])
    grown, asked = parts["automatic"], parts["all at once"]
    fits = cast("Mapping[str, int]", grown["rows_found_to_fit"])
    told = len(cast("Sequence[str]", asked["told"]))
    return (
        f"With {found['gib_allowed']:g} GiB beside the weights of GPT-2-small's sizes, rows grew to "
        f"{max(fits.values())} for {grown['texts']:,} texts; asked for all at once, the loop ran out of "
        f"memory {told} times, went on with half the rows each time, and lost none. "
        f"{grown['as_with_32_rows']:,} and {asked['as_with_32_rows']:,} of them are, to the last token, "
        "those of 32 rows at a time; the others differ where rounding decided between two tokens."
    )


def _device_time(part: Part) -> str:
    found = part.get("device_time_share")
    return "not measured" if found is None else _percent(cast(float, found))


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def _at(part: object, *keys: str) -> float:
    """The figure in a result at the end of these keys."""
    for key in keys:
        part = cast("Mapping[str, object]", part)[key]
    return cast(float, part)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
