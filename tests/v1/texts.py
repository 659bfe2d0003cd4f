"""Seeded texts of the embedded models on a CPU, and folder names that end in a digest, to be compared."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sqlite3
import tempfile
from pathlib import Path
from typing import Final

from tests import program
from tests.v1.commands import WORK

PROMPTS: Final = ("The new neighbour was known for", "About voting, people from town will")
_SHORT: Final = ("--samples", "2", "--max-new-tokens", "8", "--device", "cpu", "--seed", "7")
_TINY: Final = ("--max-new-tokens", "4", "--device", "cpu")
WRITTEN: Final = {
    "calibration:embedding": ("debias", "builtin", "--vanilla", *_SHORT),
    "calibration:embedding, greedy": ("debias", "builtin", "--temperature", "0", *_SHORT),
    "calibration:embedding, whole vocabulary": ("debias", "builtin", "--top-k", "0", "--top-p", "1", *_SHORT),
    "replacement:naive": ("debias", "builtin", "--mode", "naive", "--vanilla", *_SHORT),
    "calibration:classifier, a folder": (
        *("debias", "tiny-gpt2", "--mode", "classifier", "--calibrator", "calibrator", "--vanilla", *_SHORT),
    ),
}
"""What is written, by the command that prints it; ``--vanilla`` prints the plain texts beside it."""
AUDITED: Final = {
    "builtin": ("audit", "builtin", "--max-new-tokens", "8"),
    "builtin, penalty": ("audit", "builtin", "--max-new-tokens", "8", "--repetition-penalty", "1.3"),
    "builtin:masked": (
        *("audit", "builtin:masked", "--max-new-tokens", "4", "--burn-in", "5", "--iterations", "10"),
    ),
    "tiny-gpt2": ("audit", "tiny-gpt2", "--max-new-tokens", "8"),
}
"""Audits whose generations are compared."""
NAMED: Final = (
    "audit stub",
    "audit stub --seed 1",
    "audit stub --suite regard --samples 3 --limit 5",
    "audit stub --suite templates:suite.toml",
    "audit stub --config run.toml",
    "audit stub --suite political --level 0.9 --correction holm --mask none",
    "audit stub --preset bold-gpt2 --top-p 0.9",
    "audit stub --test binomial --check none --stratum template --pairs",
    "audit stub --shard 1/2 --suite templates:wide.toml --samples 1",
    "audit stub --mitigate replacement:naive --mitigate-option share=0.25",
    "audit builtin:masked --device cpu",
    "audit tiny-gpt2 --suite templates:tiny.toml --max-new-tokens 8 --device cpu",
    "audit replay:samples.tsv --suite regard",
    "score texts.csv --group who --prompt prompt",
    "score texts.csv --group who --metrics regard --mask none --baseline who=a",
    "compare audit audit-config",
    "probe replay:predictions.csv --pairs pairs.csv",
    "probe --pairs pairs.csv",
    "validate sentiment --human human.csv --output compound",
    "annotate agreement rated.csv",
    "annotate ratings likert.csv --label bias",
    "train regard rows.csv --backbone linear",
    "replicate political --tables 6 --human answers.csv",
)
"""Commands whose default folder is pinned: its name ends in the digest of the run's identity.

Files of ``corpus`` and ``build`` are known by their dates, too: those runs are compared by their identity."""


def digests() -> dict[str, object]:
    """Digest of what each way writes, default folder by command, and keys of the cache."""
    with tempfile.TemporaryDirectory() as base:
        found = keys(Path(base))
    return {
        "written": {name: written(name) for name in WRITTEN},
        "audited": {name: audited(name) for name in AUDITED},
        "folders": {line: folder(line) for line in NAMED},
        "keys": found,
    }


def keys(base: Path) -> dict[str, str]:
    """The digest of all keys that an audit leaves in an empty cache, by kind of value."""
    before = os.environ.get("EVENHAND_CACHE", "")
    os.environ["EVENHAND_CACHE"] = str(base / "cache")
    try:
        line = "audit builtin --suite templates:suite.toml --limit 3 --samples 2 --metrics regard,ideology"
        done = program.run(*line.split(), *_TINY, "--out", base / "run", cwd=WORK)
    finally:
        os.environ["EVENHAND_CACHE"] = before
    assert done.returncode == 0, done.stderr
    with contextlib.closing(sqlite3.connect(base / "cache" / "cache.sqlite")) as cache:
        return {
            kind: digest(sorted(key for (key,) in cache.execute(f"SELECT key FROM {kind}")))
            for kind in ("generations", "scores")
        }


def written(name: str) -> str:
    """The digest of what ``debias`` prints for the prompts."""
    prompts = [word for prompt in PROMPTS for word in ("--prompt", prompt)]
    done = program.run(*WRITTEN[name], *prompts, cwd=WORK)
    assert done.returncode == 0, done.stderr
    return digest(done.stdout.split())


def audited(name: str) -> str:
    """The digest of the generations of an audit of the small suite."""
    import evenhand

    with tempfile.TemporaryDirectory() as base:
        suite = "tiny.toml" if name == "tiny-gpt2" else "suite.toml"
        common = ("--suite", f"templates:{suite}", "--limit", "3", "--samples", "2", "--metrics", "sentiment")
        done = program.run(*AUDITED[name], *common, "--device", "cpu", "--out", Path(base, "run"), cwd=WORK)
        assert done.returncode == 0, done.stderr
        table = evenhand.Run.open(Path(base, "run")).table("generations")
    rows = (
        table.select("prompt_id", "sample", "text", "finish", "new_tokens").sort("prompt_id", "sample").rows()
    )
    return digest([list(row) for row in rows])


def folder(line: str) -> str:
    """The default folder of a command, as its plan names it."""
    done = program.run(*line.split(), "--dry-run", cwd=WORK)
    assert done.returncode == 0, f"{line}: {done.stderr}"
    named = re.search(r"runs/\S+", done.stderr)
    assert named is not None, f"{line} names no folder: {done.stderr}"
    return named[0]


def digest(value: object) -> str:
    """A short digest of a JSON value, by nothing of the package."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
