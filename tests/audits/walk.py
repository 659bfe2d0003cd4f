"""The path of twelve texts through ``evenhand.audit``: every file and function of the package they pass.

``python -m tests.audits.walk`` puts the drawing into ``docs/architecture.md`` and prints the counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FrameType

CALL = 'evenhand.audit("stub", limit=12, samples=1, metrics="sentiment")'
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
_WIDTH = 100
_OPTIMIZED = 1
"""The flag of code objects of functions; those of modules and classes lack it."""

Step = tuple[str, str]
"""A file, relative to the package, and the qualified name of a function in it."""


def measure_walk() -> list[Step]:
    """The functions in the order they are first entered, measured in a process of its own.

    Comprehensions and lambdas belong to the function they are in. What only runs while a module is imported
    does not count.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "EVENHAND_CACHE": f"{folder}/cache", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "tests.audits.walk", "--measure", f"{folder}/run"]
        root = Path(__file__).parents[2]
        output = subprocess.run(command, env=environment, cwd=root, capture_output=True, check=True).stdout
    return [(file, function) for file, function in json.loads(output.splitlines()[-1])]


def draw_walk(steps: Sequence[Step]) -> str:
    """Rooms and files in the order they are first entered."""
    rooms: dict[str, dict[str, None]] = {}
    for file, _ in steps:
        room, _, rest = file.removesuffix(".py").partition("/")
        rooms.setdefault(room if rest else "evenhand", {})[rest or room] = None
    lines = [CALL]
    for number, (room, files) in enumerate(rooms.items(), 1):
        branch, below = ("└─", "  ") if number == len(rooms) else ("├─", "│ ")
        line = f"{branch} {room:12}"
        for place, file in enumerate(files):
            part = file if place == 0 else f" → {file}"
            if len(line + part) > _WIDTH:
                lines.append(line)
                line, part = f"{below} {'':12}", f"→ {file}"
            line += part
        lines.append(line)
    return "\n".join(lines)


class _Recorder:
    """Notes the functions of a package as they are entered; a profile function of ``sys.setprofile``."""

    def __init__(self, package: Path) -> None:
        self.steps: dict[Step, None] = {}
        self._root = f"{package}/"
        self._imports = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code: CodeType = frame.f_code
        if code.co_name == "<module>":
            self._imports += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not self._imports and code.co_flags & _OPTIMIZED:
            file = code.co_filename.removeprefix(self._root)
            # Generated code of dataclasses has no file; templates are not Python.
            if file != code.co_filename and file.endswith(".py"):
                self.steps[file, code.co_qualname.split(".<locals>.<")[0]] = None


def _measure(folder: str) -> list[Step]:
    import evenhand

    recorder = _Recorder(Path(evenhand.__file__).parent)
    audit = evenhand.audit
    sys.setprofile(recorder)
    try:
        audit("stub", limit=12, samples=1, metrics="sentiment", out=folder)
    finally:
        sys.setprofile(None)
    return list(recorder.steps)


if __name__ == "__main__":
    if "--measure" in sys.argv:
        print(json.dumps(_measure(sys.argv[-1])))
    else:
        walk = measure_walk()
        page = PAGE.read_text(encoding="utf-8")
        head, _, rest = page.partition(f"```text\n{CALL}\n")
        _, fence, tail = rest.partition("\n```\n")
        assert fence, f"{PAGE} has no drawing to replace"
        PAGE.write_text(f"{head}```text\n{draw_walk(walk)}{fence}{tail}", encoding="utf-8")
        print(f"{len({file for file, _ in walk})} files, {len(walk)} functions")
