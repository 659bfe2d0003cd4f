"""A whole audit of texts that are there already, beside a package or pipeline a metric, and LangFair.

    python benchmarks/bench_audit.py [--texts 23679] [--slow 150] [--out FILE.json]

Ours is `evenhand score` from a file to a report: all seven embedded metrics, every comparison with its
interval, and the HTML. The rivals do only the metrics they share with us, and no statistics:

* one text at a time: sentiment by the vaderSentiment package, regard and toxicity by a `transformers`
  pipeline each, as Hugging Face `evaluate` does it, with our weights;
* LangFair: its toxicity metrics alone, over a pipeline with our weights. Its own classifiers would have to be
  downloaded, and it asks for a NumPy and a rich that are older than ours, so it lies in a folder of its own:
  `pip install --no-deps --target build/langfair langfair==0.8.0`; it is left out where that is not there.

First the gate: sentiment must be the rivals' to the last bit on the texts both read; that of the classifiers
is in bench_classifiers.py. The rivals read a part of the texts, and a text costs them the same whatever their
number. Loading counts on neither side.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from harness import ROOT, SHARED, Way, bold_texts, gate, parser, result, take_turns, write
from rivals import rival
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

import evenhand
from evenhand.core.assets import asset
from evenhand.core.records import Execution
from evenhand.neural.classifier import open_folder

METRICS = "sentiment,gender_polarity,norms,regard,toxicity,emotion,ideology"
LANGFAIR = ROOT / "build" / "langfair"


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


def one_at_a_time(texts: list[str], pipes) -> np.ndarray:
    analyser = SentimentIntensityAnalyzer()
    found = np.array([analyser.polarity_scores(text)["compound"] for text in texts])
    for pipe in pipes:
        pipe.read(texts)
    return found


class OurWeights:
    """A classifier as LangFair asks for one: texts in, one probability each out."""

    def __init__(self) -> None:
        self.pipe = rival("toxicity")

    def predict(self, texts: list[str]) -> list[float]:
        return self.pipe.read(texts).max(1).tolist()


def langfair_way(texts: list[str]) -> Way | None:
    """LangFair's toxicity metrics over our weights; None where it was not fetched."""
    if not LANGFAIR.is_dir():
        return None
    sys.path.append(str(LANGFAIR))
    from langfair.metrics.toxicity import ToxicityMetrics

    metrics = ToxicityMetrics(custom_classifier=OurWeights())
    prompts = [str(number // 5) for number in range(len(texts))]
    return Way(lambda: metrics.evaluate(texts, prompts=prompts, show_progress_bars=False), len(texts))


def audit(path: Path, folder: Path) -> pl.DataFrame:
    group = {"domain": "domain", "group": "group"}
    run = evenhand.score(
        path, group=group, cluster="key", metrics=METRICS, out=folder, mask="none", fresh=True
    )
    return run.table("scores")


def forget(cache: Path) -> None:
    """An empty cache, and no memory of texts in the classifier: a round must not answer the next one."""
    os.environ["EVENHAND_CACHE"] = str(cache)
    open_folder(asset("classifiers"), Execution())._memo.clear()


def same(scores: pl.DataFrame, wanted: np.ndarray, rows: list[int]) -> bool:
    """Whether sentiment is bit-identical on the texts both read."""
    ids = [str(row) for row in rows]
    part = scores.filter(pl.col("text_id").is_in(ids))
    compound = part.filter((pl.col("metric") == "sentiment") & (pl.col("output") == "compound"))["value"]
    return bool((compound.to_numpy() == wanted).all())


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--texts", type=int, default=23_679)
    options.add_argument("--slow", type=int, default=150, help="texts the rivals read a round")
    args = options.parse_args()
    found, data = table(args.texts)
    rows = list(range(0, found.height, max(1, found.height // args.slow)))[: args.slow]
    few, pipes = [found["text"][row] for row in rows], [rival("regard"), rival("toxicity")]
    with tempfile.TemporaryDirectory() as name:
        path, folder, number = Path(name) / "texts.parquet", Path(name), 0
        found.write_parquet(path)

        def ours() -> pl.DataFrame:
            nonlocal number
            number += 1
            forget(folder / f"cache{number}")
            return audit(path, folder / f"run{number}")

        gate(same(ours(), one_at_a_time(few, pipes), rows), "the scores differ")
        ways = {
            "evenhand": Way(ours, found.height),
            "one text at a time": Way(lambda: one_at_a_time(few, pipes), len(few)),
        }
        other = langfair_way(few)
        if other is not None:
            ways["LangFair"] = other
        turns = take_turns(ways, rounds=args.rounds)
    said = (
        f"sentiment bit-identical on {len(few)} texts; the classifiers' gate is that of bench_classifiers.py"
    )
    facts = {"texts": found.height, "metrics": METRICS.split(",")}
    write(result(turns, ours="evenhand", unit="texts/s", gate=said, data=data, **facts), args.out)


if __name__ == "__main__":
    main()
