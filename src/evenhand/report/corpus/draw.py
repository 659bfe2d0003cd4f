"""The report of a corpus run as HTML, Markdown, JSON, and on the terminal."""

from evenhand.report.corpus.html import corpus_html
from evenhand.report.corpus.plain import corpus_json, corpus_markdown
from evenhand.report.corpus.terminal import corpus_summary

__all__ = ["corpus_html", "corpus_json", "corpus_markdown", "corpus_summary"]
