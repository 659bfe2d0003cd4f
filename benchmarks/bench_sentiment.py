"""Texts a second of our VADER, of the vaderSentiment package and of nltk's copy, same texts, same run.

    python benchmarks/bench_sentiment.py [BOLD_FOLDER] [--out FILE.json]

First the gate: every score must be bit-identical to vaderSentiment's. nltk's copy is an older VADER and reads
the same lexicon by other rules: on how many texts it differs is counted, not refused. It is left out where
nltk is not installed. Without BOLD's JSONL files the bundled example texts are repeated.
"""

from __future__ import annotations

from pathlib import Path

import vaderSentiment
from harness import Way, bold_texts, gate, parser, result, take_turns, write
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from evenhand.core.records import Text
from evenhand.metrics.sentiment import Sentiment


def nltk_analyser():
    """nltk's analyser over the lexicon of vaderSentiment; None where nltk is not installed."""
    try:
        import nltk
        from nltk.sentiment.vader import SentimentIntensityAnalyzer as Analyser
    except ImportError:
        return None
    # nltk reads from its own folders alone.
    nltk.data.path.insert(0, str(Path(vaderSentiment.__file__).parent))
    return Analyser(lexicon_file="vader_lexicon.txt")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("folder", nargs="?", type=Path)
    args = options.parse_args()
    texts, data = bold_texts(args.folder)
    rendered = [Text(text) for text in texts]
    ours, package, copy = Sentiment(), SentimentIntensityAnalyzer(), nltk_analyser()
    got = [row["compound"].value for row in ours.score(rendered)]
    wanted = [package.polarity_scores(text)["compound"] for text in texts]
    gate(got == wanted, "the scores differ from vaderSentiment's")
    ways = {
        "evenhand": Way(lambda: ours.score(rendered), len(texts)),
        "vaderSentiment": Way(lambda: [package.polarity_scores(text) for text in texts], len(texts)),
    }
    facts = {"texts": len(texts)}
    if copy is not None:
        some = texts[::4]
        ways["nltk"] = Way(lambda: [copy.polarity_scores(text) for text in some], len(some))
        other = [copy.polarity_scores(text)["compound"] for text in some]
        facts["nltk_scores_differ"] = sum(a != b for a, b in zip(got[::4], other, strict=True)) / len(some)
    turns = take_turns(ways, rounds=args.rounds)
    said = f"bit-identical to vaderSentiment on {len(texts):,} texts"
    write(result(turns, ours="evenhand", unit="texts/s", gate=said, data=data, **facts), args.out)


if __name__ == "__main__":
    main()
