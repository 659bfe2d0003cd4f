"""Builds wheel and sdist, looks inside both, installs the wheel without extras and scores texts offline.

``python scripts/check_package.py [--offline PROGRAM] [--keep FOLDER]``; needs ``build``. The wheel is built
twice, from the tree and from the sdist, and the two must hold the same files.
"""

from __future__ import annotations

import argparse
import email
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
NEEDED: Final = (
    "evenhand/py.typed",
    "evenhand/assets/builtin/model.safetensors",
    "evenhand/assets/builtin-masked/model.safetensors",
    "evenhand/assets/embeddings/vectors.safetensors",
    "evenhand/assets/norms/lexicon.tsv.xz",
    "evenhand/report/static/report.css",
)
"""Without one of these the package is installed and then fails."""
ADDED_BY_THE_BUILD: Final = ("PKG-INFO", ".gitignore")
BYTES: Final = 64 << 20
"""More than a wheel may have: PyPI refuses 100 MB, and ours ships models of 48."""


def digests(wheel: Path) -> dict[str, str]:
    """The files of a wheel with their digests; its own list of them is left out."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: blake2b(archive.read(name)).hexdigest()
            for name in archive.namelist()
            if not name.endswith("/RECORD")
        }


def wheel_complaints(names: Iterable[str], size: int) -> list[str]:
    """What is missing in a wheel, and what has no place there."""
    names = set(names)
    found = [f"the wheel lacks {name}" for name in NEEDED if name not in names]
    found += [f"the wheel holds {name}" for name in sorted(names) if not _belongs(name)]
    return found + ([f"the wheel has {size:,} bytes"] if size > BYTES else [])


def _belongs(name: str) -> bool:
    folder, _, rest = name.partition("/")
    is_ours = (
        folder == "evenhand" and "__pycache__" not in rest and not rest.endswith((".nbc", ".nbi", ".pyc"))
    )
    return is_ours or (folder.startswith("evenhand-") and folder.endswith(".dist-info"))


def sdist_complaints(names: Iterable[str], tracked: Iterable[str]) -> list[str]:
    """Files of an sdist that are not in the repository: nothing of a machine may travel."""
    known = {*tracked, *ADDED_BY_THE_BUILD}
    return [f"the sdist holds {name}, which git does not" for name in sorted(set(names) - known)]


def metadata_complaints(text: str) -> list[str]:
    """What an index would refuse, or show wrongly."""
    fields = email.message_from_string(text)
    wanted = {"Name": "evenhand", "License-Expression": "Apache-2.0", "Requires-Python": ">=3.11"}
    found = [
        f"{key} is {fields[key]!r}, not {value!r}" for key, value in wanted.items() if fields[key] != value
    ]
    if fields["Description-Content-Type"] != "text/markdown" or not fields.get_payload():
        found.append("the description is missing, or is no Markdown")
    if not fields["Summary"] or "\n" in fields["Summary"]:
        found.append("the summary is missing, or has several lines")
    core = [line for line in fields.get_all("Requires-Dist", []) if "extra ==" not in line]
    return found + [f"the core needs {line}" for line in core if line.startswith(("torch", "transformers"))]


def build(folder: Path, *kinds: str, source: Path = ROOT) -> Path:
    """The one archive that ``python -m build`` writes into the folder."""
    command = [sys.executable, "-m", "build", *kinds, "--outdir", str(folder), str(source)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (made,) = folder.iterdir()
    return made


def inspect(wheel: Path, again: Path, sdist: Path) -> list[str]:
    """Every complaint about the three archives."""
    files = digests(wheel)
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(next(name for name in files if name.endswith(".dist-info/METADATA"))).decode()
    with tarfile.open(sdist) as archive:
        names = [member.name.partition("/")[2] for member in archive if member.isfile()]
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    rebuilt = digests(again)
    differing = sorted(name for name in {*files, *rebuilt} if files.get(name) != rebuilt.get(name))
    return [
        *wheel_complaints(files, wheel.stat().st_size),
        *sdist_complaints(names, tracked.splitlines()),
        *metadata_complaints(metadata),
        *(f"{name} differs between the wheel of the tree and that of the sdist" for name in differing),
    ]


def use(wheel: Path, folder: Path, offline: list[str]) -> None:
    """Install the wheel into an empty environment, without extras, and score the bundled texts."""
    venv.create(folder / "environment", with_pip=True)
    tools = folder / "environment" / "bin"
    subprocess.run([tools / "pip", "install", "--quiet", wheel], check=True)
    absent = subprocess.run([tools / "python", "-c", "import torch"], capture_output=True, check=False)
    if absent.returncode == 0:
        raise SystemExit("the core installs torch")
    for command in (
        ["--version"],
        ["score", "--out", folder / "run"],
        ["report", folder / "run", "--format", "md"],
    ):
        subprocess.run([*offline, tools / "evenhand", *command], cwd=folder, check=True)
    if not (folder / "run" / "report.html").stat().st_size:
        raise SystemExit("no report was written")


def main() -> int:
    """Build, look, install; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--offline", type=Path, help="a program that runs its arguments without a network")
    parser.add_argument("--keep", type=Path, help="where wheel and sdist are left")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sdist = build(folder / "sdist", "--sdist")
        wheel = build(folder / "wheel", "--wheel")
        with tarfile.open(sdist) as archive:
            archive.extractall(folder / "source", filter="data")
        (source,) = (folder / "source").iterdir()
        again = build(folder / "again", "--wheel", source=source)
        for made in (sdist, wheel):
            print(f"{made.name}: {made.stat().st_size:,} bytes")
        complaints = inspect(wheel, again, sdist)
        print("\n".join(complaints) or "contents and metadata are as they should be")
        if not complaints:
            use(wheel, folder, [str(given.offline.resolve())] if given.offline else [])
        if given.keep:
            given.keep.mkdir(parents=True, exist_ok=True)
            for made in (sdist, wheel):
                made.rename(given.keep / made.name)
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main())
