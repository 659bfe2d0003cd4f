"""A whole audit of texts that are there already, beside the packages and pipelines that do parts of it.

    python benchmarks/bench_audit.py [--texts 23679] [--slow 120] [--ours 5] [--out FILE.json]

Ours is `evenhand score` from a file to a report: all seven embedded metrics, every comparison with its
interval, and the HTML. The rivals do only the five metrics they share with us, and no statistics:

* one text at a time: sentiment by the vaderSentiment package; regard, toxicity, emotion and ideology by a
  `transformers` pipeline each, as Hugging Face `evaluate` does it, with our weights;
* with LangFair: the same, but for toxicity, which LangFair measures over such a pipeline; beside it LangFair
  with nothing else, one metric against our seven. Its own classifiers would have to be downloaded, and it
  asks for a NumPy and a rich that are older than ours, so `make bench` puts it into a folder of its own,
  without what it asks for; its lines are left out, and that is said, where it could not be fetched.

First the gate: sentiment must be the rivals' to the last bit on the texts both read; that of the classifiers
is in bench_classifiers.py. Ours reads all texts. The rivals read a part of them in every round, and a text
costs them the same whatever their number. Where ours is run less often than the rivals (``--ours``), its runs
are spread between their rounds, and each stands beside the rounds around it. Loading counts on neither side.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import polars as pl
from harness import (
    ROOT,
    SHARED,
    Spent,
    Turns,
    Way,
    bold_texts,
    gate,
    parser,
    result,
    spent,
    take_turns,
    write,
)
from rivals import Rival, rival
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

import evenhand
from evenhand.classifiers.text_classifier import open_classifier
from evenhand.core.files import asset_path
from evenhand.core.records import Execution

METRICS = "sentiment,gender_polarity,norms,regard,toxicity,emotion,ideology"
CLASSIFIED = ("regard", "toxicity", "emotion", "ideology")
LANGFAIR = ROOT / "build" / "langfair"
FETCH = "pip install --no-deps --target build/langfair -r benchmarks/langfair.txt"


def table(count: int) -> tuple[pl.DataFrame, str]:
    """Texts with the group and the entity they speak of."""
    folder = SHARED / "data" / "bold"
    if folder.is_dir():
        parts = [pl.read_ndjson(path) for path in sorted(folder.glob("*.jsonl"))]
        found = pl.concat([part.select("domain", "group", "key", "wiki") for part in parts])
        found = found.rename({"wiki": "text"}).filter(pl.col("text").str.strip_chars() != "")
        return found.gather_every(max(1, found.height // count)).head(count), "BOLD"
    texts, name = bold_texts()
    rows = [{"domain": "made", "group": f"g{i % 8}", "key": str(i), "text": t} for i, t in enumerate(texts)]
    return pl.DataFrame(rows[:count]), name


def sentiments(texts: list[str]) -> np.ndarray:
    analyser = SentimentIntensityAnalyzer()
    return np.array([analyser.polarity_scores(text)["compound"] for text in texts])


class OurWeights:
    """A classifier as LangFair asks for one: texts in, one probability each out."""

    def __init__(self, pipe: Rival) -> None:
        self.pipe = pipe

    def predict(self, texts: list[str]) -> list[float]:
        return self.pipe.read(texts).max(1).tolist()


def langfair(pipe: Rival) -> Callable[[list[str]], object] | None:
    """LangFair's toxicity metrics over our weights; None where it was not fetched."""
    if not LANGFAIR.is_dir():
        return None
    sys.path.append(str(LANGFAIR))
    from langfair.metrics.toxicity import ToxicityMetrics

    metrics = ToxicityMetrics(custom_classifier=OurWeights(pipe))

    def measured(texts: list[str]) -> object:
        prompts = [str(number // 5) for number in range(len(texts))]
        return metrics.evaluate(texts, prompts=prompts, show_progress_bars=False)

    return measured


def rivals(few: list[str]) -> dict[str, Way]:
    """What people use today, over some texts."""
    pipes = {name: rival(name) for name in CLASSIFIED}
    rest = [pipe for name, pipe in pipes.items() if name != "toxicity"]

    def read(some: Iterable[Rival]) -> None:
        sentiments(few)
        for pipe in some:
            pipe.read(few)

    ways = {"one text at a time": Way(lambda: read(pipes.values()), len(few))}
    toxicity = langfair(pipes["toxicity"])
    if toxicity is not None:
        ways["with LangFair"] = Way(lambda: (read(rest), toxicity(few)), len(few))
        ways["LangFair alone, toxicity alone"] = Way(lambda: toxicity(few), len(few))
    return ways


def audit(path: Path, folder: Path) -> pl.DataFrame:
    group = {"domain": "domain", "group": "group"}
    run = evenhand.score(
        path, group=group, cluster="key", metrics=METRICS, out=folder, mask="none", fresh=True
    )
    return run.table("scores")


def forget(cache: Path) -> None:
    """An empty cache, and no memory of texts in the classifier: a round must not answer the next one."""
    os.environ["EVENHAND_CACHE"] = str(cache)
    open_classifier(asset_path("classifiers"), Execution())._memo.clear()


def same(scores: pl.DataFrame, wanted: np.ndarray, rows: list[int]) -> bool:
    """Whether sentiment is bit-identical on the texts both read."""
    ids = [str(row) for row in rows]
    part = scores.filter(pl.col("text_id").is_in(ids))
    compound = part.filter((pl.col("metric") == "sentiment") & (pl.col("output") == "compound"))["value"]
    return bool((compound.to_numpy() == wanted).all())


def measured(ways: dict[str, Way], ours: Way, *, rounds: int, runs: int) -> Turns:
    """Rounds of the rivals, with a run of ours in the middle of every share of them."""
    take_turns(ways, rounds=0, warm=1)
    found: dict[str, list[Spent]] = {name: [] for name in ("evenhand", *ways)}
    for share in np.array_split(np.arange(rounds), runs):
        before = take_turns(ways, rounds=share.size // 2)
        found["evenhand"] += [spent(ours.work)] * share.size
        after = take_turns(ways, rounds=share.size - share.size // 2)
        for name in ways:
            found[name] += [*before.spent[name], *after.spent[name]]
    return Turns({"evenhand": ours, **ways}, found)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--texts", type=int, default=23_679)
    options.add_argument("--slow", type=int, default=120, help="texts the rivals read a round")
    options.add_argument("--ours", type=int, default=5, help="runs of ours, at most as many as rounds")
    args = options.parse_args()
    runs = max(1, min(args.ours, args.rounds))
    found, data = table(args.texts)
    rows = list(range(0, found.height, max(1, found.height // args.slow)))[: args.slow]
    few = [found["text"][row] for row in rows]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part, texts in (("warm", found.gather_every(max(1, found.height // 300))), ("all", found)):
            texts.write_parquet(folder / f"{part}.parquet")
        forget(folder / "cache-warm")
        audit(folder / "warm.parquet", folder / "run-warm")
        scores: list[pl.DataFrame] = []

        def ours() -> None:
            forget(folder / f"cache-{len(scores)}")
            scores.append(audit(folder / "all.parquet", folder / "run"))

        turns = measured(rivals(few), Way(ours, found.height), rounds=args.rounds, runs=runs)
        gate(same(scores[0], sentiments(few), rows), "the scores differ")
    said = (
        f"sentiment bit-identical on {len(few)} texts; the classifiers' gate is that of bench_classifiers.py"
    )
    facts = {"texts": found.height, "metrics": METRICS.split(","), "rounds_of_ours": runs}
    if not LANGFAIR.is_dir():
        facts["left_out"] = f"LangFair: not in {LANGFAIR.relative_to(ROOT)}; {FETCH}"
    write(result(turns, ours="evenhand", unit="texts/s", gate=said, data=data, **facts), args.out)


if __name__ == "__main__":
    main()
