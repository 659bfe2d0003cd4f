"""Types what a page says into a real shell, in an empty folder, as somebody who has installed evenhand would.

``python scripts/type_page.py docs/tutorial.md [--offline PROGRAM]``. The test suite runs the same blocks in
one process (`tests/docs`); this is the proof that the installed program, a shell and a user's PATH do it.
Comments before a block mean what they mean there (`tests/docs/pages.py`); nothing is shortened. Commands of
`make` are left to the caller, those of `pip` go into an environment of their own, with the network.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.docs.pages import Block, blocks  # noqa: E402 - the repository is no package of its own


def typed(block: Block) -> str:
    """The commands of a block as a script; where lines begin with a dollar sign, the others are output."""
    lines = block.text.splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    text = "\n".join(lines)
    for change in filter(str.strip, block.said.get("with", "").split(";")):
        old, _, new = (part.strip() for part in change.partition(" = "))
        text = re.sub(rf"(?<!\S){re.escape(old)}(?!\S)", new, text)
    return text


def kind(block: Block) -> str:
    """Who carries a block out: the caller (``make``), ``pip``, ``python``, the shell, a file, or nobody."""
    if "file" in block.said:
        return "file"
    if block.language == "python" and "not run" not in block.said:
        return "python"
    if block.language != "console":
        return "nobody"
    first = block.text.split()[0] if block.text.split() else ""
    if first in ("make", "pip"):
        return first
    return "nobody" if "not run" in block.said else "shell"


class Typist:
    """Somebody at a terminal, in a folder."""

    def __init__(self, folder: Path, offline: list[str]) -> None:
        self.folder, self.offline = folder, offline
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "MPLBACKEND": "agg"}
        self.python = ""

    def follow(self, block: Block) -> bool:
        """Do what a block says; False where there is nothing to do here."""
        who = kind(block)
        if who in ("nobody", "make") or not self._has_data(block):
            return False
        if "given" in block.said:
            raise SystemExit(
                f"{block.place} gives its reader {block.said['given']}, which the suite alone makes"
            )
        if who == "file":
            path = self.folder / block.said["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif who == "pip":
            self._install(block)
        elif who == "python":
            # What earlier blocks of a page have defined is there for later ones, as in one session.
            self.python += block.text
            self._call([sys.executable, "-c", self.python], block)
        else:
            self._call(["bash", "-eo", "pipefail", "-c", typed(block)], block)
        return True

    def _has_data(self, block: Block) -> bool:
        if not (data := block.said.get("needs")):
            return True
        source = ROOT.parent / "shared" / "data" / data
        if source.is_dir() and not (self.folder / data).exists():
            (self.folder / data).symlink_to(source)
        return source.is_dir()

    def _install(self, block: Block) -> None:
        """Each line in the repository, with the ``pip`` of a new environment; then a first report with it."""
        made = self.folder / "environment"
        venv.create(made, with_pip=True)
        path = f"{made / 'bin'}{os.pathsep}{os.environ['PATH']}"
        for line in typed(block).splitlines():
            subprocess.run(["bash", "-ec", line], cwd=ROOT, env={**os.environ, "PATH": path}, check=True)
            command = [
                *self.offline,
                str(made / "bin" / "evenhand"),
                "score",
                "--out",
                self.folder / "installed",
            ]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def _call(self, command: list[str], block: Block) -> None:
        done = subprocess.run(
            [*self.offline, *command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        wanted = int(block.said.get("exits with", 0))
        if done.returncode != wanted:
            raise SystemExit(f"{block.place}: ended with {done.returncode}, not {wanted}:\n{block.text}")


def type_all(page: Path, typist: Typist) -> int:
    """How many blocks were carried out; each is told as it ends, with its seconds."""
    number = 0
    for block in blocks(page):
        began = time.monotonic()
        if typist.follow(block):
            print(f"{block.place}: done in {time.monotonic() - began:.1f} s", flush=True)
            number += 1
    return number


def main() -> None:
    """Type a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--offline", type=Path, help="a program that runs its arguments without a network")
    given_to = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        typist = Typist(Path(folder), [str(given_to.offline.resolve())] if given_to.offline else [])
        if not type_all(ROOT / given_to.page, typist):
            sys.exit(f"{given_to.page}: nothing to type")


if __name__ == "__main__":
    main()
