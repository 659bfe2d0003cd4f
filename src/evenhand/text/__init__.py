"""Normalise, tokenise, split sentences, match terms, mask group mentions, render what a metric reads."""
