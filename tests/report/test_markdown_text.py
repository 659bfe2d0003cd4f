"""Markdown that names and texts cannot break out of."""

from __future__ import annotations

from evenhand.report.markdown_text import bullets, escaped, grid


def test_markup_in_a_name_is_made_plain() -> None:
    assert escaped("<b>|x|</b> [a](b)\n# c &lt;") == r"\<b\>\|x\|\</b\> \[a\]\(b\) \# c &amp;lt;"


def test_a_list_has_a_line_a_sentence() -> None:
    assert bullets(["one\nline", "a|b"]) == "- one line\n- a\\|b"


def test_a_table_keeps_its_columns_whatever_is_in_a_cell() -> None:
    assert grid(("group", "n|m"), [("a|b", "1"), ("c\nd", "2")]) == (
        "| group | n\\|m |\n| --- | --- |\n| a\\|b | 1 |\n| c d | 2 |"
    )


def test_a_table_without_rows_is_its_head() -> None:
    assert grid(("a", "b"), []) == "| a | b |\n| --- | --- |"
