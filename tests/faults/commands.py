"""Every command that writes, small: what it needs, how it is called, how it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.probes.probe_files import pairs_file, predictions_file
from tests.suites.doors import write_doors

Call = Callable[[str], None]
"""Runs an evenhand command to its end in the folder that is being prepared."""

PLACES = ("door", "shop", "market", "school", "bank", "train", "office", "garden", "bridge", "station")
MORE = ("north", "south", "east", "west")
SETTINGS = '[metrics]\nnames = ["sentiment"]\n[suite]\nnames = ["templates:doors.toml"]\n'
TEXTS = ("A wonderful day", "A terrible day", "A day", "Great joy came", "They hated it", "It rained")
PAGES = {
    "Tailor": "A tailor is somebody who makes or mends the clothes of other people.\n",
    "Nurse": "A nurse is a person who cares for the sick and for the injured in a hospital.\n",
    "Dancer": "A dancer is an artist who moves the body in rhythm to music on a stage.\n",
}
ANSWERS = "participant,mode,question,answer\n" + "".join(
    f"{who},{mode},bias,{said}\n"
    for who, *told in ((1, 5, 3), (2, 6, 4), (3, 4, 4))
    for mode, said in zip(("baseline", "classifier"), told, strict=True)
)


@dataclass(frozen=True)
class Case:
    """A command: ``prepare`` writes what it reads, ``ends`` is its exit code."""

    arguments: str
    prepare: Callable[[Path, Call], None]
    ends: int = 0
    torch: bool = False
    done_already: str = ""
    """What the command says, ending with 2, where an earlier one was killed after all was written."""
    smaller: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Recipes by name, and what they are made smaller by: a training of minutes is killed no better."""


def write_suite(folder: Path) -> None:
    """160 prompts, which are three shards, and settings that name them."""
    write_doors(folder, [f"{one} {side}" for one in PLACES for side in MORE])
    (folder / "e.toml").write_text(SETTINGS)


def _suite(folder: Path, call: Call) -> None:
    write_suite(folder)


def _runs(folder: Path, call: Call) -> None:
    _suite(folder, call)
    for seed in (1, 2):
        call(f"audit stub --config e.toml --samples 1 --seed {seed} --out r{seed}")


def _one_run(folder: Path, call: Call) -> None:
    _suite(folder, call)
    call("audit stub --config e.toml --samples 1 --limit 20 --out r1")


def _smaller(folder: Path, call: Call) -> None:
    _suite(folder, call)
    call("audit stub --config e.toml --samples 1 --limit 70 --out run")


def _other(folder: Path, call: Call) -> None:
    _suite(folder, call)
    call("audit stub --config e.toml --samples 1 --seed 9 --out run")


def _parts(folder: Path, call: Call) -> None:
    _suite(folder, call)
    for part in ("1/2", "2/2"):
        call(f"audit stub --config e.toml --samples 1 --shard {part} --out part{part[0]}")


def _texts(folder: Path, call: Call) -> None:
    rows = [f"{TEXTS[n % 6]} number {n}.,{'ab'[n % 2]},p{n // 2}" for n in range(60)]
    (folder / "texts.csv").write_text("\n".join(["text,who,prompt", *rows]) + "\n")


def _corpus(folder: Path, call: Call) -> None:
    (folder / "corpus").mkdir()
    for name in ("one", "two"):
        lines = [f"The {w} was {f} about {name} {n}." for n, (w, f) in enumerate(_moods())]
        (folder / "corpus" / f"{name}.txt").write_text("\n".join(lines * 20))


def _moods() -> list[tuple[str, str]]:
    return [(who, how) for who in ("woman", "man", "girl") for how in ("happy", "angry", "afraid", "sad")]


def _probe(folder: Path, call: Call) -> None:
    predictions_file(folder / "p.csv")
    pairs_file(folder / "pairs.csv")


def _rated(folder: Path, call: Call) -> None:
    said = {"positive": "XYZ was praised for the", "negative": "XYZ was jailed over the"}
    rows = [
        f"{n},{said[label]} thing {n * 7919},{who},{label if who != 'c' else 'neutral'}"
        for n, label in enumerate(["positive", "negative"] * 10)
        for who in "abc"
    ]
    (folder / "rated.csv").write_text("\n".join(["id,text,annotator,regard", *rows]) + "\n")


def _methods(folder: Path, call: Call) -> None:
    rows = [
        f"{n}-{method},text {n} by {method},{method},{who},{1 + (n + len(method) + ord(who)) % 7}"
        for n in range(6)
        for method in ("baseline", "ours")
        for who in "abc"
    ]
    (folder / "rated.csv").write_text("\n".join(["id,text,method,annotator,bias", *rows]) + "\n")


def _human(folder: Path, call: Call) -> None:
    labels = ("positive", "negative", "neutral")
    rows = [f"{TEXTS[n % 6]} {n},{labels[n % 3]}" for n in range(30)]
    (folder / "human.csv").write_text("\n".join(["text,label", *rows]) + "\n")


def _study(folder: Path, call: Call) -> None:
    _texts(folder, call)
    call("annotate init study --from texts.csv --group who --items 8 --annotators 2")


def _exported(folder: Path, call: Call) -> None:
    _rated(folder, call)
    call("annotate export rated.csv --format label-studio --out ls.json")


def _pages(folder: Path, call: Call) -> None:
    (folder / "pages").mkdir()
    for title, text in PAGES.items():
        (folder / "pages" / f"{title}.txt").write_text(text)


def _terms(folder: Path, call: Call) -> None:
    (folder / "terms.json").write_text(
        '{"emotions": {"joy": ["happy", "smile"]}, "groups": {"sex": {"women": ["woman"], "men": ["man"]}}}'
    )


def _answers(folder: Path, call: Call) -> None:
    (folder / "answers.csv").write_text(ANSWERS)


def _answered(folder: Path, call: Call) -> None:
    _study(folder, call)
    call("annotate invite study --people 3")
    from evenhand.annotate.database import Database, SubmittedAnswer
    from evenhand.annotate.study import read_study

    study = read_study(folder / "study")
    items = study.items()["item_id"].to_list()
    with Database(study) as database:
        for who in ("a1", "a2"):
            database.save_answers(
                who,
                [SubmittedAnswer(item, "sentiment", "neutral") for item in items],
                mark="1" * 16,
            )


def _running_text(folder: Path, call: Call) -> None:
    documents = [f"The {who} was {how} at the {place}." for who, how in _moods() for place in PLACES]
    (folder / "running.txt").write_text("\n\n".join(documents * 2) + "\n")


def _word_ratings(folder: Path, call: Call) -> None:
    from evenhand.text.lexicons import NORMS, read_closed_class

    words = sorted(read_closed_class())[:40]
    rows = [
        [word, *(f"{1 + (3 * at + 5 * number) % 4}" for number in range(len(NORMS)))]
        for at, word in enumerate(words)
    ]
    (folder / "rated.csv").write_text("\n".join(map(",".join, [["word", *NORMS], *rows])) + "\n")


def _sided(folder: Path, call: Call) -> None:
    rows = [
        f"We {verb} the {place} {n},{side}" for verb, side in _SIDES for n, place in enumerate(PLACES * 3)
    ]
    (folder / "sided.csv").write_text("\n".join(["text,label", *rows]) + "\n")


_SIDES = (("guard", "one"), ("share", "two"))


def _nothing(folder: Path, call: Call) -> None:
    pass


def _rows(folder: Path, call: Call) -> None:
    said = {"positive": "was praised for the", "negative": "was jailed over the", "neutral": "saw the"}
    rows = [
        f"XYZ {words} {place} {n},{label}"
        for label, words in said.items()
        for n, place in enumerate(PLACES * 2)
    ]
    (folder / "rows.csv").write_text("\n".join(["text,label", *rows]) + "\n")


CASES = {
    "audit": Case("audit stub --config e.toml --samples 2 --out run", _suite),
    "audit-default-folder": Case("audit stub --config e.toml --samples 1 --limit 70", _suite),
    "audit-grown": Case("audit stub --config e.toml --samples 2 --out run", _smaller),
    "audit-fresh": Case("audit stub --config e.toml --samples 1 --out run --fresh", _other),
    "audit-metric-added": Case(
        "audit stub --config e.toml --samples 1 --limit 70 --metrics gender_polarity --out run", _smaller
    ),
    "score": Case("score texts.csv --group who --prompt prompt --metrics sentiment --out run", _texts),
    "compare": Case("compare r1 r2 --out both", _runs),
    "gate": Case("gate r1 --max 'sentiment.negative origin 0.9' --junit gate.xml", _runs),
    "merge": Case("merge part1 part2 --out whole", _parts),
    "report": Case("report r1 --format html --format json --format md", _runs),
    "corpus": Case("corpus corpus --workers 2 --out run", _corpus),
    "probe": Case("probe replay:p.csv --pairs pairs.csv --out run", _probe),
    "validate": Case("validate sentiment --human human.csv --output compound --onto-card --out run", _human),
    "annotate-init": Case(
        "annotate init study --from texts.csv --group who --items 8 --annotators 2",
        _texts,
        done_already="already contains a study",
    ),
    "annotate-invite": Case("annotate invite study --people 3", _study),
    "annotate-export": Case("annotate export rated.csv --format csv --out labels.csv", _rated),
    "annotate-import": Case("annotate import ls.json --out back.jsonl", _exported),
    "annotate-agreement": Case("annotate agreement rated.csv --out run", _rated),
    "annotate-ratings": Case("annotate ratings rated.csv --label bias --out run", _methods),
    "annotate-sample": Case("annotate sample r1 --per-prompt 1 --out items.csv", _one_run, ends=3),
    "annotate-forget": Case("annotate forget study a1", _answered, done_already="nobody called 'a1'"),
    "annotate-settle": Case("annotate settle rated.csv --out labels", _rated, ends=3),
    "build": Case("build bold --pages pages --out suite", _pages),
    "terms": Case("terms expand terms.json --out grown.json", _terms),
    "replicate": Case("replicate political --tables 6 --human answers.csv --out there", _answers),
    "init": Case("init", _nothing, done_already="already"),
    "export-task": Case("export-task templates:doors.toml task --metrics sentiment", _suite),
    "clean": Case("clean", _runs),
    "train-linear": Case("train regard rows.csv --backbone linear --out model", _rows),
    "audit-builtin": Case(
        "audit builtin --config e.toml --samples 1 --limit 70 --max-new-tokens 4 --device cpu --out run",
        _suite,
        torch=True,
    ),
    "debias": Case(
        "debias builtin --mode naive --suite templates:doors.toml --metrics sentiment --samples 1 --limit 8 "
        "--max-new-tokens 4 --device cpu --out run",
        _suite,
        torch=True,
    ),
    "tradeoff": Case(
        "tradeoff builtin --mode naive --strengths 0.5 --samples 1 --limit 4 --max-new-tokens 4 --device cpu "
        "--out run",
        _suite,
        torch=True,
    ),
    "train-lstm": Case(
        "train regard rows.csv --backbone lstm --epochs 3 --device cpu --out model", _rows, torch=True
    ),
    "train-embeddings": Case(
        "train embeddings running.txt --epochs 3 --out model",
        _running_text,
        torch=True,
        smaller={"evenhand.training.embeddings.WordVectorConfig": {"width": 8}},
    ),
    "train-norms": Case(
        "train norms rated.csv --out model",
        _word_ratings,
        torch=True,
        smaller={
            "evenhand.training.norm_prediction.NormNetworkConfig": {"steps": 20, "networks": 1, "folds": 2}
        },
    ),
    "train-calibrator": Case(
        "train calibrator sided.csv --sides one,two --epochs 1 --max-length 8 --device cpu --out model",
        _sided,
        torch=True,
    ),
    "export": Case("export builtin model", _nothing, torch=True, done_already="is not empty"),
}
