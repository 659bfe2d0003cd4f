"""Print lines per folder, and the change since the last release; fail above the line budget.

    python tools/size.py

The budget is set by docs/adr/0032-the-house.md and stands in ``[tool.evenhand.lines]`` of pyproject.toml.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = "src/evenhand/"


def main() -> int:
    """Print the table; 1 where a budget is exceeded, else 0."""
    lines, files = count_lines(_tracked_files())
    release = _git("describe", "--tags", "--abbrev=0", "--match", "v*").strip()
    before = count_lines(_released_files(release))[0] if release else Counter()
    heading = f"since {release}" if release else ""
    print(f"{'folder':<24} {'files':>6} {'lines':>7} {heading:>14}")
    for folder, count in lines.most_common():
        change = f"{count - before[folder]:+,}" if release else ""
        print(f"{folder:<24} {files[folder]:>6} {count:>7,} {change:>14}")
    source = sum(count for folder, count in lines.items() if folder != "tools")
    totals = {"src": source, "src-and-tools": source + lines["tools"]}
    budget = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["evenhand"]["lines"]
    for name, total in totals.items():
        verdict = "within" if total <= budget[name] else "ABOVE"
        print(f"{name:<24} {'':>6} {total:>7,} {verdict} the budget of {budget[name]:,}")
    return int(any(total > budget[name] for name, total in totals.items()))


def count_lines(texts: dict[str, str]) -> tuple[Counter[str], Counter[str]]:
    """Lines and files per folder: a package of ``src/evenhand``, its top level, or ``tools``."""
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for path, text in texts.items():
        parts = path.removeprefix(SOURCE).split("/")
        folder = "tools" if path.startswith("tools/") else parts[0] if len(parts) > 1 else "evenhand"
        lines[folder] += text.count("\n")
        files[folder] += 1
    return lines, files


def _tracked_files() -> dict[str, str]:
    paths = [path for path in _git("ls-files", "src", "tools").split("\n") if path.endswith(".py")]
    return {path: (ROOT / path).read_text(encoding="utf-8") for path in paths if (ROOT / path).is_file()}


def _released_files(release: str) -> dict[str, str]:
    paths = _git("ls-tree", "-r", "--name-only", release, "src", "tools").split("\n")
    return {path: _git("show", f"{release}:{path}") for path in paths if path.endswith(".py")}


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout


if __name__ == "__main__":
    sys.exit(main())
