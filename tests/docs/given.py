"""What a page says its reader has: texts, runs, a server, a study that people have answered.

``<!-- given: answers to the studies -->`` before a block calls ``answers_to_the_studies`` with its scene.
"""

from __future__ import annotations

import bz2
import json
import lzma
import shutil
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from tests.audits.texts import BAD, GOOD
from tests.models.host import Asked, Reply, chat_reply, serving, text_reply

import evenhand
from evenhand.annotate.study import read_study
from evenhand.core.files import asset_path
from evenhand.testing.synthetic_annotators import answer_study

JOBS = (
    "baker",
    "driver",
    "clerk",
    "nurse",
    "pilot",
    "cook",
    "poet",
    "judge",
    "guard",
    "tailor",
    "smith",
    "maid",
)
PEOPLE = {"careful": 0.95, "good": 0.85, "hasty": 0.7}


@dataclass(slots=True)
class Scene:
    """Where a page is followed: its folder, what ends with it, and addresses that are elsewhere here."""

    folder: Path
    ends: ExitStack
    elsewhere: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, text: str) -> None:
        """A file of the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def own_texts(scene: Scene) -> None:
    """A table of answers by two groups of people, as a reader would have it."""
    rows = [
        {"question": f"How was day {day}?", "answer": GOOD if (day + len(who)) % 3 else BAD, "who": who}
        for day in range(20)
        for who in ("women", "men")
    ]
    table = pl.DataFrame(rows)
    table.write_csv(scene.folder / "mine.csv")
    table.rename({"answer": "text", "question": "prompt", "who": "race"}).write_parquet(
        scene.folder / "texts.parquet"
    )


def pages_of_Wikipedia(scene: Scene) -> None:
    """The same two articles as a folder, as one packed text, and as a packed dump."""
    texts = {
        "Tailor": "A tailor is somebody who makes or mends the clothes of other people.",
        "Weaver": "A weaver is somebody who makes cloth of yarn on a loom for other people.",
    }
    for title, text in texts.items():
        scene.write(f"pages/{title}.txt", text)
    with lzma.open(scene.folder / "wiki.txt.xz", "wt") as file:
        file.write("\n\n".join(texts.values()))
    entries = "".join(
        f"<page>\n<title>{title}</title>\n<ns>0</ns>\n<revision><text>'''{title}'''. {text}\n"
        "[[Category:Sewing occupations]]</text></revision>\n</page>\n"
        for title, text in texts.items()
    )
    with bz2.open(scene.folder / "enwiki-latest-pages-articles.xml.bz2", "wt") as file:
        file.write(f"<mediawiki>\n{entries}</mediawiki>\n")


def runs_of_two_releases(scene: Scene) -> None:
    """The audit of a release, that of the one before, and one by its full name."""
    for name, seed in (("last", 0), ("new", 1)):
        evenhand.audit(
            "stub", limit=43, samples=2, seed=seed, metrics="sentiment", out=scene.folder / "runs" / name
        )
    evenhand.audit(
        "stub",
        limit=43,
        samples=2,
        metrics="sentiment,toxicity",
        out=scene.folder / "runs" / "audit-gpt2-1234",
    )


def runs_of_two_methods(scene: Scene) -> None:
    """Texts of the same prompts written in two ways."""
    for name, seed in (("plain", 0), ("calibrated", 1)):
        evenhand.audit(
            "stub", limit=43, samples=2, seed=seed, metrics="sentiment", out=scene.folder / "runs" / name
        )


def answers_to_the_studies(scene: Scene) -> None:
    """Three people have answered the study of the page, and studies of regard and of methods."""
    studies, runs = scene.folder / "studies", scene.folder / "runs"
    answer_study(read_study(studies / "sentiment"), "sentiment", PEOPLE)
    for number, name in enumerate(("regard", "other-regard")):
        study = evenhand.create_study(studies / name, runs / "plain", task="regard", items=60, seed=number)
        answer_study(study, "regard", PEOPLE, labels=("negative", "neutral", "positive"))
    likert = evenhand.create_study(
        studies / "likert", [runs / "plain", runs / "calibrated"], task="likert", items=8
    )
    for question in likert.task.questions:
        answer_study(likert, question.name, PEOPLE)


def an_export_of_Label_Studio(scene: Scene) -> None:
    """Answers as that program exports them."""
    evenhand.export_labels(
        scene.folder / "studies" / "sentiment",
        format="label-studio",
        out=scene.folder / "label-studio-export.json",
    )


def ratings_of_regard(scene: Scene) -> None:
    """Thirty texts that three people have rated."""
    labels = ("negative", "neutral", "positive")
    rows = [
        {
            "id": number,
            "text": f"XYZ of crew {number} met {JOBS[number % 12]} {number} in {1900 + number}.",
            "annotator": person,
        }
        | dict.fromkeys(("sentiment", "regard"), labels[number % 3])
        for number in range(60)
        for person in "abc"
    ]
    pl.DataFrame(rows).write_csv(scene.folder / "rated.csv")


def labelled_texts(scene: Scene) -> None:
    """Texts with labels of regard, and texts to score."""
    kinds = {"kind and generous": "positive", "cruel and dishonest": "negative"}
    places = ("north", "far south", "old town")
    rows = [
        {"text": f"XYZ, a {job} from the {place}, was {words}", "label": label, "who": place}
        for words, label in kinds.items()
        for job in JOBS
        for place in places
    ]
    pl.DataFrame(rows).write_csv(scene.folder / "labels.csv")
    pl.DataFrame(rows[::3] + rows[1::3]).drop("label").write_csv(scene.folder / "texts.csv")


def articles_of_two_sides(scene: Scene) -> None:
    """Articles with the side they are on."""
    sides = {"left": "tax wealth", "right": "close borders"}
    rows = [
        # Texts that are much alike would count as one: numbers set them apart.
        {"text": f"Town{number} on{number} day{number} of{number} vote{number}: {words}", "label_text": side}
        for number in range(30)
        for side, words in sides.items()
    ]
    scene.write("articles.jsonl", "\n".join(map(json.dumps, rows)) + "\n")


def two_lists_of_words(scene: Scene) -> None:
    """Words of two sides."""
    sides = {"young": ["teenager", "student", "youthful"], "old": ["pensioner", "elderly", "retired"]}
    scene.write("sides.json", json.dumps(sides) + "\n")


def the_sentences_of_regard(scene: Scene) -> None:
    """The labelled sentences that ship with the package."""
    (scene.folder / "regard.jsonl").symlink_to(asset_path("regard", "regard.jsonl"))


def a_text(scene: Scene) -> None:
    """Running text to learn vectors from."""
    lines = ("the nurse was kind and the pilot was calm", "rain fell on the old town while the nurse slept")
    told = [f"in year {number} {line}" for number in range(60) for line in lines]
    scene.write("texts.txt", "\n\n".join(told) + "\n")


def rated_words(scene: Scene) -> None:
    """Ratings of words in two tables, and vectors of words."""
    words = ["happy", "sad", "good", "bad", "love", "hate", "war", "peace", "sun", "rain", "friend", "enemy"]
    words += [
        "home",
        "night",
        "music",
        "money",
        "child",
        "death",
        "food",
        "road",
        "king",
        "sea",
        "fire",
        "snow",
    ]
    header = "word\tvalence\tarousal\tdominance\tjoy\tanger\tsadness\tfear\tdisgust"
    rated = [
        f"{word}\t{1 + at % 8}" + f"\t{1 + at % 8}" * 2 + f"\t{1 + at % 4}" * 5
        for at, word in enumerate(words)
    ]
    scene.write("ratings.tsv", "\n".join([header, *rated[:12]]) + "\n")
    scene.write("more.csv", "\n".join([header, *rated[12:]]).replace("\t", ",") + "\n")
    (scene.folder / "vectors.safetensors").symlink_to(asset_path("embeddings", "vectors.safetensors"))


def a_corpus_of_news_and_a_dump(scene: Scene) -> None:
    """A folder of plain text and a MediaWiki dump."""
    scene.write("data/news/one.txt", "She was happy. He was afraid.\n\nThe priest was furious.\n")
    text = "'''Tailor'''. The woman was happy. The man was sad."
    entry = f"<page>\n<title>Tailor</title>\n<ns>0</ns>\n<revision><text>{text}</text></revision>\n</page>\n"
    (scene.folder / "dumps").mkdir()
    with bz2.open(scene.folder / "dumps" / "enwiki.xml.bz2", "wt") as file:
        file.write(f"<mediawiki>\n{entry}</mediawiki>\n")


def predictions_of_pairs(scene: Scene) -> None:
    """A few pairs of sentences, and what a classifier said of them."""
    rows = ["set,axis,group,emotion,template,text"]
    for number, (word, emotion) in enumerate(
        {"furious": "anger", "delighted": "joy", "afraid": "fear"}.items()
    ):
        rows += [
            f"{number},age,{group},{emotion},t{number},The {group} tenant was {word}."
            for group in ("young", "old")
        ]
    scene.write("few.csv", "\n".join(rows) + "\n")
    said = [f"{row.split(',')[-1]},0.4,0.3,0.2,0.1" for row in rows[1:]]
    scene.write("predictions.csv", "\n".join(["text,anger,fear,joy,sadness", *said]) + "\n")


def a_server_of_emotions(scene: Scene) -> None:
    """A classifier behind an address."""
    host = scene.ends.enter_context(serving())
    labels = ["anger", "fear", "joy", "sadness"]

    def classify(asked: Asked) -> Reply:
        texts = asked.body["texts"]
        assert isinstance(texts, list)
        scores = [[0.4, 0.3, 0.2, len(text) / 1000] for text in texts]
        return Reply(body=json.dumps({"labels": labels, "scores": scores}).encode())

    host.answer = classify
    scene.elsewhere["http://localhost:9000/classify"] = host.url


def a_server_of_a_model(scene: Scene) -> None:
    """A model behind the addresses that pages name: completions and chat."""
    host = scene.ends.enter_context(serving())
    host.answer = lambda asked: (chat_reply if "chat" in asked.path else text_reply)(" sang all day.")
    for address in ("http://localhost:8000/v1", "http://server:8000/v1"):
        scene.elsewhere[address] = host.url


def logs_of_other_tools(scene: Scene) -> None:
    """Samples of lm-eval and a log of Inspect, as those tools wrote them."""
    files = Path(__file__).parents[1] / "logs" / "files"
    shutil.copy(files / "samples_generate.jsonl", scene.folder / "samples_jobs.jsonl")
    shutil.copy(files / "inspect-0.3.285.eval", scene.folder / "jobs.eval")


def prompts_of_ones_own(scene: Scene) -> None:
    """Prompts about two jobs, each with the sentence it was made from."""
    rows = [
        {"prompt": {"text": f"The {who} {verb}"}, "who": who, "kind": verb}
        for verb in ("said", "ran", "smiled", "wrote", "slept", "sang")
        for who in ("nurse", "pilot")
    ]
    scene.write("prompts.jsonl", "\n".join(json.dumps(row) for row in rows))
