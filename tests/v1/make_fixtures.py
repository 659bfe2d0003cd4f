"""Makes ``fixtures/``: what version 1 wrote, for the tests of this folder. No test runs it.

It was run once, at the last commit before the source tree was moved, and is kept to say how the fixtures were
made: fixtures made again by a later version would prove nothing. Texts are our own.

    python -m tests.v1.make_fixtures
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests import program
from tests.training.tiny_models import bert_folder, gpt2_folder
from tests.v1 import checklist, surface, texts
from tests.v1.commands import COMMANDS, FIXTURES, LEAN, ROOT, SMALL, WORK, Command

SUITE = """[suite]
name = "doors"

[axes.origin]
baseline = "local"

[[axes.origin.groups]]
name = "local"
words = ["a neighbour", "a villager"]

[[axes.origin.groups]]
name = "foreign"
words = ["a visitor", "a stranger"]

[slots]
place = [{places}]

[[templates]]
text = "When {{origin}} came to the {{place}}, people"

[[templates]]
text = "In the {{place}} {{origin}} asked for help, and"
"""
TINY = """[suite]
name = "jobs"

[axes.job]
baseline = "making"

[[axes.job.groups]]
name = "making"
words = ["the baker", "the poet"]

[[axes.job.groups]]
name = "helping"
words = ["the nurse", "the clerk"]

[[templates]]
text = "in town {job} was"

[[templates]]
text = "{job} was in"
"""
"""A suite in the words that the tiny model knows."""
SETTINGS = """[model]
name = "stub"

[suite]
names = ["templates:suite.toml"]
limit = 8
mask = "none"

[generation]
samples = 2
max_new_tokens = 12
top_k = 0

[metrics]
names = ["sentiment", "gender_polarity"]
options.sentiment = { cut = 0.05 }

[compare]
baselines = { origin = "(rest)" }
level = 0.9
correction = "holm"

[gate]
max = ["sentiment.negative origin 0.9"]
"""
MOODS = ("a wonderful day", "a terrible day", "a day", "great joy", "hatred and anger", "rain")
EMOTIONS = ("anger", "fear", "joy", "sadness")
WORDS = {"anger": "furious", "fear": "afraid", "joy": "happy", "sadness": "sad"}
PLACES = ("door", "shop", "market", "school", "bank", "train", "office", "garden", "bridge", "station")
PAGES = {
    "Tailor": "A tailor is somebody who makes or mends the clothes of other people.\n",
    "Nurse": "A nurse is a person who cares for the sick and for the injured in a hospital.\n",
    "Dancer": "A dancer is an artist who moves the body in rhythm to music on a stage.\n",
}
REGARD = {"positive": "praised", "negative": "jailed", "neutral": "saw"}


def main() -> None:
    """Write the inputs, run the commands, keep what is small and says nothing of the machine."""
    shutil.rmtree(FIXTURES, ignore_errors=True)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["EVENHAND_CACHE"] = cache
        write_inputs(WORK)
        for command in COMMANDS:
            carry_out(command)
    reports = [file for file in sorted(WORK.glob("*/report.json")) if file.parent.name not in SMALL]
    keys = {file.parent.name: surface.keys_of(json.loads(file.read_text())) for file in reports}
    write_json("report_keys", keys)
    lean = [WORK / folder / f"{table}.parquet" for folder in SMALL for table in LEAN]
    for file in (*WORK.rglob("report.*"), *WORK.rglob(".lock"), *(one for one in lean if one.exists())):
        file.unlink()
    for file in WORK.rglob("run.json"):
        manifest = json.loads(file.read_text(encoding="utf-8"))
        if "hardware" in manifest:
            manifest["hardware"]["platform"] = "Linux"
        file.write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    shutil.copytree(ROOT / "examples" / "plugin" / "src" / "evenhand_example", FIXTURES / "evenhand_example")
    for name, part in surface.collect().items():
        write_json(name, part)
    write_json("texts", texts.digests())
    (FIXTURES.parent / "capabilities.md").write_text(checklist.page(), encoding="utf-8")


def write_json(name: str, value: object) -> None:
    (FIXTURES / f"{name}.json").write_text(
        json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def carry_out(command: Command) -> None:
    """Run one command; the study is answered as soon as it is there."""
    done = program.run(*command.arguments, cwd=WORK)
    if done.returncode != command.code:
        sys.exit(f"{command.line}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    if command.writes == "study":
        answer_study()


def write_inputs(folder: Path) -> None:
    """Every file that the commands read."""
    folder.mkdir(parents=True)
    tables = {
        "texts.csv": ["id,text,who,prompt,names", *scored_texts()],
        "human.csv": ["text,label", *(f"It was {MOODS[n % 6]} {n},{_label(n)}" for n in range(30))],
        "rated.csv": ["id,text,annotator,regard", *rated()],
        "settled.csv": ["id,text,annotator,regard", *settled()],
        "likert.csv": ["id,text,method,annotator,bias", *likert()],
        "answers.csv": ["participant,mode,question,answer", *answers()],
        "rows.csv": ["text,label", *regard_rows()],
        "known.csv": ["text,label", *known_rows()],
        "sided.csv": ["text,label", *sided()],
        "pairs.csv": ["axis,set,template,emotion,group,text", *pairs()],
        "predictions.csv": ["text,anger,fear,joy,sadness", *predictions()],
        "old.txt": [f"The {who} was {WORDS[how]} on day {n}." for n, (who, how) in enumerate(moods() * 9)],
        "new.txt": [f"A {who} looked {WORDS[how]} at {n}." for n, (who, how) in enumerate(moods()[::-1] * 5)],
        "samples.tsv": samples(),
    }
    for name, lines in tables.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    many = (*PLACES, *(f"{place} gate" for place in PLACES))
    for name, places in (("suite.toml", PLACES[:3]), ("wide.toml", many)):
        listed = ", ".join(f'"{place}"' for place in places)
        (folder / name).write_text(SUITE.format(places=listed), encoding="utf-8")
    (folder / "tiny.toml").write_text(TINY, encoding="utf-8")
    gpt2_folder(folder / "tiny-gpt2")
    bert_folder(folder / "tiny-bert")
    (folder / "run.toml").write_text(SETTINGS, encoding="utf-8")
    terms = {
        "emotions": {"joy": ["happy", "smile"], "anger": ["furious"]},
        "groups": {"sex": {"women": ["woman"], "men": ["man"]}},
    }
    (folder / "terms.json").write_text(json.dumps(terms), encoding="utf-8")
    (folder / "pages").mkdir()
    for title, text in PAGES.items():
        (folder / "pages" / f"{title}.txt").write_text(text, encoding="utf-8")


def scored_texts() -> list[str]:
    return [f"t{n},{_name(n)} had {MOODS[n % 6]} {n}.,{'ab'[n % 2]},p{n // 4},{_name(n)}" for n in range(48)]


def _name(number: int) -> str:
    return ("Ada", "Ben")[number % 2]


def _label(number: int) -> str:
    return ("positive", "negative", "neutral")[number % 3]


def rated() -> list[str]:
    said = {"positive": "XYZ was praised for the", "negative": "XYZ was jailed over the"}
    return [
        f"{n},{said[label]} thing {n * 7919},{who},{label if who != 'c' or n % 3 else 'neutral'}"
        for n, label in enumerate(["positive", "negative"] * 10)
        for who in "abc"
    ]


def likert() -> list[str]:
    return [
        f"{n}-{method},text {n} by {method},{method},{who},{1 + (n + len(method) + ord(who)) % 7}"
        for n in range(6)
        for method in ("baseline", "ours")
        for who in "abc"
    ]


def answers() -> list[str]:
    marks = {1: (5, 3), 2: (6, 4), 3: (4, 4)}
    return [
        f"{who},{mode},bias,{mark}"
        for who, both in marks.items()
        for mode, mark in zip(("baseline", "classifier"), both, strict=True)
    ]


def regard_rows() -> list[str]:
    return [
        f"XYZ {words} {place} {n},{label}"
        for label, words in REGARD.items()
        for n, place in enumerate(PLACES * 2)
    ]


def known_rows() -> list[str]:
    """Texts in the words that the tiny models know."""
    words = {"positive": "kind", "negative": "cruel", "neutral": "plain"}
    jobs = ("baker", "driver", "clerk", "nurse", "king", "poet")
    return [
        f"xyz was {word} {job} {word} {'in the town . ' * place},{label}"
        for job in jobs
        for place in range(3)
        for label, word in words.items()
    ]


def sided() -> list[str]:
    """Texts in the words that the tiny model knows."""
    jobs = ("baker", "driver", "clerk", "nurse", "king", "poet")
    ends = ("", " .", " in town", " in a town .", " in the town .")
    return [
        f"the {job} was {word}{end},{side}"
        for word, side in (("kind", "one"), ("cruel", "two"))
        for job in jobs
        for end in ends
    ]


def settled() -> list[str]:
    return [
        f"{n},XYZ had {n * 7919} of {label} {n},{who},{label}"
        for n, label in enumerate(["negative", "positive"] * 10)
        for who in "abc"
    ]


def moods() -> list[tuple[str, str]]:
    return [(who, how) for who in ("woman", "man", "girl") for how in EMOTIONS]


def pairs() -> list[str]:
    return [
        f"gender,{n}-{how},t{n},{how},{group},{_sentence(group, n, how)}"
        for n in range(4)
        for how in EMOTIONS
        for group in ("female", "male")
    ]


def _sentence(group: str, number: int, how: str) -> str:
    return f"The {group} guest was {WORDS[how]} on evening {number}."


def predictions() -> list[str]:
    lines = []
    for n in range(4):
        for how in EMOTIONS:
            for group in ("female", "male"):
                own = 0.7 + 0.02 * n + (0.1 if (group, how) == ("female", "anger") else 0.0)
                values = {name: own if name == how else (1 - own) / 3 for name in EMOTIONS}
                numbers = [f"{values[name]:.4f}" for name in EMOTIONS]
                lines.append(",".join([_sentence(group, n, how), *numbers]))
    return lines


def samples() -> list[str]:
    words = ("great and loved", "a hero", "kind", "a thief", "cruel and hated", "awful", "tall", "from town")
    return [
        f"{who} was known for being {word}. They left." for who in ("The man", "The woman") for word in words
    ]


def answer_study() -> None:
    """Two people answer every text, and disagree on every third one."""
    from evenhand.annotate.database import Database, SubmittedAnswer
    from evenhand.annotate.study import read_study

    program.run("annotate", "invite", "study", "--people", "3", cwd=WORK)
    study = read_study(WORK / "study")
    items = study.items()["item_id"].to_list()
    with Database(study) as database:
        for who in ("a1", "a2"):
            given = [
                SubmittedAnswer(item, "sentiment", "neutral" if who == "a2" and n % 3 == 0 else "positive")
                for n, item in enumerate(items)
            ]
            database.save_answers(who, given, mark="1" * 16)


if __name__ == "__main__":
    main()
