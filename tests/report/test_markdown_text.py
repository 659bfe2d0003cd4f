"""Markdown that names and texts cannot break out of."""

from __future__ import annotations

from evenhand.report.wording import bullet_list, escape_markdown, markdown_table


def test_markup_in_a_name_is_made_plain() -> None:
    assert escape_markdown("<b>|x|</b> [a](b)\n# c &lt;") == r"\<b\>\|x\|\</b\> \[a\]\(b\) \# c &amp;lt;"


def test_a_list_has_a_line_a_sentence() -> None:
    assert bullet_list(["one\nline", "a|b"]) == "- one line\n- a\\|b"


def test_a_table_keeps_its_columns_whatever_is_in_a_cell() -> None:
    assert markdown_table(("group", "n|m"), [("a|b", "1"), ("c\nd", "2")]) == (
        "| group | n\\|m |\n| --- | --- |\n| a\\|b | 1 |\n| c d | 2 |"
    )


def test_a_table_without_rows_is_its_head() -> None:
    assert markdown_table(("a", "b"), []) == "| a | b |\n| --- | --- |"
