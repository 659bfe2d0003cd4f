"""The answer of a gate for other tools: JUnit XML, annotations of GitHub Actions, and the terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.core.printable import escape_commands
from evenhand.report.wording import format_number, format_points, replace_minus, show_control_characters

if TYPE_CHECKING:
    from evenhand.audits.gate import GateCheck, GateVerdict

_SIGNS: Mapping[GateVerdict, str] = {"fails": "x", "inconclusive": "?", "passes": "+"}
"""The mark of each verdict, worst first."""
_VERBS: Mapping[GateVerdict, str] = {"passes": "pass", "fails": "fail", "inconclusive": "inconclusive"}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_junit(checks: Sequence[GateCheck], *, strict: bool, name: str) -> str:
    """The checks as one JUnit test suite: a failure where one fails, skipped where it is inconclusive.

    A strict gate counts an inconclusive check as a failure.
    """
    failed = [check for check in checks if _fails(check, strict)]
    skipped = [check for check in checks if check.verdict == "inconclusive" and not strict]
    suite = ElementTree.Element(
        "testsuite",
        name=_xml(f"evenhand gate {name}"),
        tests=str(len(checks)),
        failures=str(len(failed)),
        skipped=str(len(skipped)),
        errors="0",
    )
    for check in checks:
        case = ElementTree.SubElement(
            suite, "testcase", classname=_xml(f"{check.suite}.{check.axis}"), name=_xml(check.name)
        )
        if check.verdict != "passes":
            tag = "failure" if _fails(check, strict) else "skipped"
            message = _xml(f"{check.verdict}: {check.finding}")
            ElementTree.SubElement(case, tag, message=message).text = message
    text = ElementTree.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def to_annotations(checks: Sequence[GateCheck], *, strict: bool) -> list[str]:
    """The checks that do not pass as workflow commands: errors where one fails, else warnings.

    Those that fail come first: of each step GitHub shows ten errors and ten warnings, and drops the rest.
    """
    return [
        f"::{'error' if _fails(check, strict) else 'warning'} "
        f"title={_message(f'evenhand: {check.verdict}').replace(':', '%3A')}::"
        f"{_message(': '.join(_describe(check)))}"
        for check in sorted(checks, key=lambda check: list(_SIGNS).index(check.verdict))
        if check.verdict != "passes"
    ]


def to_terminal_table(checks: Sequence[GateCheck], *, limit: int = 40) -> RenderableType:
    """The checks for the terminal, those that do not pass first; the rest are counted below the table."""
    ordered = sorted(checks, key=lambda check: list(_SIGNS).index(check.verdict))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    table.add_column("Check", ratio=1, overflow="fold")
    table.add_column("Found", ratio=1, overflow="fold")
    for check in ordered[:limit]:
        cells = (_SIGNS[check.verdict], *_describe(check))
        table.add_row(*(Text(show_control_characters(cell)) for cell in cells))
    left = Counter(check.verdict for check in ordered[limit:])
    lines = [Text("x fails, ? is inconclusive, + passes", style="dim")]
    if left:
        said = ", ".join(f"{amount:,} {_VERBS[verdict]}" for verdict, amount in left.items())
        lines.append(Text(f"not listed: {said}", style="dim"))
    return Group(table, *lines)


def _describe(check: GateCheck) -> tuple[str, str]:
    """The check and its finding for people: gaps of shares in points, the limit also as it was written."""
    limit, unit = f"{check.rule.limit:g}", " points" if check.is_share else ""
    spelled = format_points if check.is_share else format_number
    if check.is_share:
        limit = f"{100 * check.rule.limit:g} points ({limit})"
    finding = check.format_finding(lambda size: replace_minus(spelled(size, signed=True)), unit=unit)
    return check.format_name(limit), finding


def _fails(check: GateCheck, strict: bool) -> bool:
    return check.verdict == "fails" or (strict and check.verdict == "inconclusive")


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _message(text: str) -> str:
    text = escape_commands(show_control_characters(text)).replace("%", "%25")
    return text.replace("\r", "%0D").replace("\n", "%0A")
