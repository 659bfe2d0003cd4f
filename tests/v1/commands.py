"""The commands whose outputs of version 1 are kept in ``fixtures/work``, in the order of their runs."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
FIXTURES: Final = Path(__file__).parent / "fixtures"
WORK: Final = FIXTURES / "work"
LEAN: Final = (
    *("examples", "explanations", "distributions", "cuts", "omnibus", "strata", "strata_groups", "pairs"),
    "exclusions",
)
"""Tables that one run is enough for; the other runs of the same kind are kept without them."""
SMALL: Final = (
    *("part-1", "part-2", "merged", "audit-builtin", "tradeoff/runs/vanilla", "tradeoff/runs/naive-0.5"),
)
"""The runs that are kept without them."""
_WIDE: Final = "--suite templates:wide.toml --samples 1 --metrics sentiment"
_FEW: Final = "--max-new-tokens 6 --device cpu"


@dataclass(frozen=True)
class Command:
    """One command line, and what it leaves in the folder it runs in."""

    line: str
    writes: str = ""
    """The file or folder that it makes."""
    code: int = 0
    again: int = 0
    """Exit code of the same command where its output is already there."""
    says: str = ""
    """What the second one prints: why it refuses, or that nothing was left to do."""
    torch: bool = False

    @property
    def arguments(self) -> list[str]:
        return shlex.split(self.line)


COMMANDS: Final = (
    Command("init evenhand.toml", "evenhand.toml", again=2, says="already"),
    Command(
        "audit stub --suite templates:suite.toml --samples 2 --pairs --stratum template --out audit",
        "audit",
    ),
    Command(
        f"audit stub {_WIDE} --shard 1/2 --out part-1",
        "part-1",
    ),
    Command(
        f"audit stub {_WIDE} --shard 2/2 --out part-2",
        "part-2",
    ),
    Command("merge part-1 part-2 --out merged", "merged"),
    Command(
        "score texts.csv --group who --prompt prompt --id id --mentions names --metrics sentiment "
        "--out score",
        "score",
    ),
    Command("audit stub --config run.toml --seed 3 --out audit-config", "audit-config"),
    Command("compare audit audit-config --out compare", "compare"),
    Command("gate audit --max 'sentiment.negative origin 0.9' --junit gate.xml", "gate.xml"),
    Command("gate audit --max 'sentiment.negative origin 0.001' --strict", code=1, again=1),
    Command("power audit --gap 0.2"),
    Command("corpus OLD=old.txt NEW=new.txt --workers 1 --samples 2 --out corpus", "corpus"),
    Command(
        "corpus old.txt --terms terms.json --preset paper --workers 1 --out corpus-paper", "corpus-paper"
    ),
    Command("terms expand terms.json --out more-terms.json", "more-terms.json"),
    Command("probe replay:predictions.csv --pairs pairs.csv --out probe", "probe"),
    Command("compare corpus probe --out associations", "associations"),
    Command("validate sentiment --human human.csv --output compound --out validate", "validate"),
    Command(
        "annotate init study --from score --task sentiment --items 8 --annotators 2",
        "study",
        again=2,
        says="already contains a study",
    ),
    Command("annotate export study --out study.jsonl", "study.jsonl"),
    Command("annotate export study --format label-studio --out study-ls.json", "study-ls.json"),
    Command("annotate import study-ls.json --out back.jsonl", "back.jsonl"),
    Command("annotate agreement rated.csv --out agreement", "agreement"),
    Command("annotate ratings likert.csv --label bias --out ratings", "ratings"),
    Command("annotate sample samples.tsv --per-prompt 2 --out items.csv", "items.csv"),
    Command("annotate sample samples.tsv --per-prompt 9 --out few.csv", "few.csv", code=3, again=3),
    Command("annotate settle settled.csv --out labels", "labels"),
    Command("build bold --pages pages --out collected", "collected"),
    Command("replicate political --tables 6 --human answers.csv --out replicate", "replicate"),
    Command("train regard rows.csv --backbone linear --out regard", "regard", says="already done"),
    Command("export-task templates:suite.toml task --metrics sentiment", "task"),
    Command(
        f"audit builtin --suite templates:suite.toml --limit 4 --samples 1 --metrics regard {_FEW} "
        "--out audit-builtin",
        "audit-builtin",
        torch=True,
    ),
    Command(
        "debias builtin --mode embedding --suite political --limit 4 --samples 1 --metrics ideology "
        f"{_FEW} --out debias",
        "debias",
        torch=True,
    ),
    Command(
        "tradeoff builtin --mode naive --strengths 0.5 --suite political --limit 4 --samples 1 "
        f"--metrics ideology {_FEW} --out tradeoff",
        "tradeoff",
        torch=True,
    ),
    Command(
        "train regard known.csv --backbone tiny-bert --epochs 3 --learning-rate 0.003 --batch 8 --device cpu "
        "--out regard-network",
        "regard-network",
        says="already done",
        torch=True,
    ),
    Command(
        "train calibrator sided.csv --model tiny-gpt2 --sides one,two --epochs 1 --max-length 8 --device cpu "
        "--out calibrator",
        "calibrator",
        says="already done",
        torch=True,
    ),
)
"""Sentences in ``study`` are answered between ``init`` and ``export``; see ``make_fixtures.py``."""
