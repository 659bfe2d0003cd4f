"""Inputs guided by coverage, for one reader of the registry: ``python -m tests.fuzz.guided NAME SECONDS``.

Needs atheris, which no extra installs. A crash ends the run, and its input is left in the folder.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import mkdtemp

import atheris

with atheris.instrument_imports(include=["evenhand"]):
    from tests.fuzz.harness import try_input
    from tests.fuzz.registry import READERS


def main() -> None:
    """Try inputs until the time is over; they begin with the reader's examples."""
    name, seconds = sys.argv[1:]
    reader = next(reader for reader in READERS if reader.name == name)
    folder, examples = Path(mkdtemp()), Path(mkdtemp())
    reader.prepare(folder)
    for number, example in enumerate(reader.examples()):
        (examples / str(number)).write_bytes(example)
    options = [f"-max_total_time={seconds}", "-max_len=4096", "-print_final_stats=1", str(examples)]

    def try_one(data: bytes) -> None:
        try_input(reader, folder, data)

    atheris.Setup([sys.argv[0], *options], try_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
