"""VADER by the package its authors ship."""

from __future__ import annotations

from collections.abc import Sequence

from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer


def compounds_slowly(texts: Sequence[str]) -> list[float]:
    analyzer = SentimentIntensityAnalyzer()
    return [analyzer.polarity_scores(text)["compound"] for text in texts]
