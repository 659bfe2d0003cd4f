"""The report of a corpus run in all its forms."""

from evenhand.report.corpus.html import corpus_html
from evenhand.report.corpus.plain import corpus_json, corpus_markdown
from evenhand.report.corpus.terminal import corpus_summary
from evenhand.report.forms import Forms

FORMS = Forms(corpus_html, corpus_json, corpus_markdown, corpus_summary)
