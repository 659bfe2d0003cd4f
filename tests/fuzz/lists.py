"""Readers of suites, settings, word lists and word vectors."""

from __future__ import annotations

import gzip
import lzma
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
from tests.fuzz.contents import (
    as_csv,
    as_json,
    as_json_lines,
    as_lines,
    as_parquet,
    as_safetensors,
    as_tab_lines,
    as_toml,
)
from tests.fuzz.harness import Reader, Tree, of_trees

from evenhand.annotate.study import parse_task, task_text
from evenhand.audits.gate import GateRule
from evenhand.collection.build import match_groups, read_groups
from evenhand.config import resolve_config
from evenhand.core.files import asset_path
from evenhand.mitigations.word_lists import read_word_lists
from evenhand.store.metric_evidence import read_evidence
from evenhand.suites.bold import subset
from evenhand.suites.pairs.bits import BitsSuite
from evenhand.suites.pairs.crows import CrowsSuite
from evenhand.suites.pairs.eec import EecSuite
from evenhand.suites.pairs.own_pairs import load as load_pairs
from evenhand.suites.regard import RegardSuite
from evenhand.suites.templates import TemplateSuite
from evenhand.text import ngram_model
from evenhand.text.hard_debiasing import read_gender_words
from evenhand.text.lexicons import NORMS, read_closed_class, read_lexicon
from evenhand.text.word_vectors import read_vectors, save_vectors

PAIRS_TOML: Tree = {
    "pairs": {"name": "clinic", "summary": "Patients."},
    "slots": {"feeling": {"anger": ["furious"], "fear": ["afraid"]}},
    "templates": [{"id": "wait", "text": "{Person} was {feeling} after the wait."}],
    "axes": [
        {
            "name": "age",
            "groups": [{"name": "young", "words": ["the boy"]}, {"name": "old", "words": ["the man"]}],
        }
    ],
}
WIDE: Tree = [
    ["text_a", "text_b", "group_a", "group_b", "axis", "emotion"],
    ["He is.", "She is.", "m", "f", "g", "joy"],
]
LONG: Tree = [
    {"set": "1", "group": "m", "text": "He is.", "template": "t"},
    {"set": "1", "group": "f", "text": "She is.", "template": "t"},
]
TEMPLATES: Tree = {
    "suite": {"name": "jobs", "summary": "Jobs."},
    "axes": {
        "gender": {
            "baseline": "men",
            "groups": [
                {"name": "men", "words": ["man"], "with": {"they": "he"}},
                {"name": "women", "words": ["woman"], "with": {"they": "she"}},
            ],
        }
    },
    "slots": {"job": ["nurse", "pilot"]},
    "templates": [{"id": "a", "text": "The {gender} was a {job} and {they}"}],
}
TEMPLATES_CSV: Tree = [
    ["kind", "axis", "name", "value"],
    ["group", "gender", "men", "man"],
    ["group", "gender", "women", "woman"],
    ["baseline", "gender", "", "men"],
    ["slot", "", "job", "nurse"],
    ["template", "", "a", "The {gender} was a {job}"],
]
REGARD: Tree = {
    "suite": {"published": "none"},
    "contexts": [{"name": "leadership", "templates": ["XYZ led the team by"]}],
    "axes": [
        {
            "name": "religion",
            "baseline": "A",
            "groups": [{"name": "A", "surface": "The A"}, {"name": "B", "surface": "The B"}],
        }
    ],
}
SETTINGS: Tree = {
    "model": {"name": "builtin", "options": {"dtype": "float32"}},
    "suite": {"names": ["starter"], "limit": 5, "mask": "paper"},
    "generation": {"samples": 2, "temperature": 1.0, "top_p": 0.9, "seed": 1, "preset": "regard"},
    "metrics": {"names": ["sentiment"], "options": {"sentiment": {"cut": 0.5}}},
    "compare": {"baselines": {"gender": "men"}, "level": 0.95, "correction": "bh", "strata": ["context"]},
    "gate": {"max": ["sentiment.negative race 0.05"], "strict": True},
    "execution": {"device": "auto", "batch": 4, "workers": 1, "max_failures": 0.2},
}
GROUPS: Tree = {
    "groups": [
        {
            "domain": "gender",
            "name": "A",
            "person": True,
            "titles": ["Ada"],
            "openings": ["she was"],
            "title_words": ["x"],
        }
    ]
}
GENDER_WORDS: Tree = {
    "definitional_pairs": [["she", "he"]],
    "equalise_pairs": [["aunt", "uncle"]],
    "gender_specific": ["queen"],
    "female_first": True,
}
SIDES: Tree = {"liberal": ["climate", "equality"], "conservative": ["border", "faith"]}
EVIDENCE: Tree = [{"identity": "a", "human": "b", "measures": {"rho": 0.5}}]
LEXICON: list[list[Tree]] = [
    ["word", *NORMS],
    ["calm", *["4.5"] * len(NORMS)],
    ["storm", *["2"] * len(NORMS)],
]
VECTORS: Tree = [["3", "2"], ["he", "0.5", "-1"], ["she", "1e-3", "2"], ["it", "0", "0"]]
GLOVE: Tree = [["he", "0.5", "-1", "3"], ["she", "1e-3", "2", "1"]]
EEC: Tree = [
    ["ID", "Sentence", "Template", "Person", "Gender", "Race", "Emotion", "Emotion word"],
    ["1", "He feels angry.", "t", "he", "male", "", "anger", "angry"],
    ["2", "She feels angry.", "t", "she", "female", "", "anger", "angry"],
]
BITS: Tree = [
    ["Template", "Sentence", "Gender", "Sentiment"],
    ["t", "He feels angry.", "Male", "anger"],
    ["t", "She feels angry.", "Female", "anger"],
]
CROWS: Tree = [
    ["", "sent_more", "sent_less", "stereo_antistereo", "bias_type"],
    ["0", "He was a good boss.", "She was a good boss.", "stereo", "gender"],
]
BOLD_LINES: Tree = [
    {
        "domain": "gender",
        "group": "American_actors",
        "key": "Ada",
        "idx": 0,
        "prompt": "Ada was",
        "wiki": "Ada was kind.",
    }
]
BOLD_NESTED: Tree = {"American_actors": {"Ada": ["Ada was "]}, "American_actresses": {"Eva": ["Eva was "]}}


def _vectors(path: Path) -> object:
    return read_vectors(path).normalise()


def _binary() -> bytes:
    rows = b"".join(word + b" " + np.array([0.5, -1], "<f4").tobytes() for word in (b"he", b"she", b"it\xff"))
    return b"3 2\n" + rows


def _own_vectors() -> bytes:
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"evenhand-fuzz-{os.getpid()}.safetensors"
    save_vectors(["he", "she"], np.array([[1, 2], [3, 4]], np.float32), path)
    data = path.read_bytes()
    path.unlink()
    return data


def _vector_header() -> Tree:
    return [
        {
            "__metadata__": {"format": "evenhand-vectors-1"},
            "vectors": {"dtype": "I8", "shape": [2, 2], "data_offsets": [0, 4]},
            "scale": {"dtype": "F16", "shape": [2, 1], "data_offsets": [4, 8]},
            "words": {"dtype": "U8", "shape": [3], "data_offsets": [8, 11]},
        },
        11,
    ]


def _arpa() -> bytes:
    model = ngram_model.train_ngram_model([["a", "b"], ["b", "a", "c"]], order=2)
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"evenhand-fuzz-{os.getpid()}.arpa"
    model.write(path)
    data = path.read_bytes()
    path.unlink()
    return data


def _arpa_tree() -> Tree:
    return [line.split("\t") for line in _arpa().decode().splitlines()]


def _fitted(path: Path) -> object:
    model = ngram_model.read_arpa(path)
    return [model.log_likelihood(["a", "b", "zebra"]), model.log_likelihood([])]


def _prompts(suite: TemplateSuite | RegardSuite) -> Iterator[object]:
    yield suite.info
    yield from suite.prompts()


def _bold(path: Path) -> Iterator[object]:
    suite = subset(name=str(path.parent))
    yield suite.info
    yield from suite.prompts()


def _bold_folder(path: Path) -> Iterator[object]:
    suite = subset(name=str(path.parent.parent))
    yield from suite.prompts()


def _beside_bold(folder: Path) -> None:
    for name in ("prompts", "wikipedia"):
        (folder / name).mkdir(exist_ok=True)
    for domain in ("gender", "race"):
        (folder / "prompts" / f"{domain}_prompt.json").write_bytes(as_json(BOLD_NESTED))
        (folder / "wikipedia" / f"{domain}_wiki.json").write_bytes(as_json(BOLD_NESTED))


def _evidence(path: Path) -> object:
    with mock.patch.dict(os.environ, {"XDG_DATA_HOME": str(path.parents[2])}):
        return read_evidence("regard")


def _beside_evidence(folder: Path) -> None:
    (folder / "evenhand" / "cards").mkdir(parents=True, exist_ok=True)


def _task(path: Path) -> object:
    return parse_task(task_text(path), where=path.name)


def _gate_lines(path: Path) -> Iterator[object]:
    """Each line of a file as a limit; the first refusal is the file's."""
    for line in path.read_bytes().decode("utf-8", "replace").split("\n"):
        yield str(GateRule.parse(line))


def _shipped_task(name: str) -> Tree:
    return tomllib.loads(task_text(name))


def _long_columns() -> Tree:
    return {"set": ["1", "1"], "group": ["m", "f"], "text": ["He is.", "She is."]}


def _bold_columns() -> Tree:
    names = {
        "domain": ["gender"] * 2,
        "name": ["Ada", "Eva"],
        "category": ["American_actors", "American_actresses"],
    }
    return {**names, "prompts": [["Ada was "], ["Eva was "]], "wikipedia": [["Ada was kind."], ["Eva was."]]}


READERS: tuple[Reader, ...] = (
    Reader(
        "settings",
        "evenhand.toml",
        lambda path: resolve_config({"config": path}),
        lambda: [as_toml(SETTINGS), asset_path("settings", "evenhand.toml").read_bytes()],
        lambda: [SETTINGS],
        as_toml,
    ),
    Reader(
        "limits of a gate",
        "gate.txt",
        _gate_lines,
        lambda: [b"sentiment.negative race 0.05", b"* *=a b 1e-3"],
    ),
    of_trees(
        "template suite .toml",
        "jobs.toml",
        lambda path: _prompts(TemplateSuite(name=str(path))),
        as_toml,
        TEMPLATES,
    ),
    of_trees(
        "template suite .csv",
        "jobs.csv",
        lambda path: _prompts(TemplateSuite(name=str(path))),
        as_csv,
        TEMPLATES_CSV,
    ),
    of_trees("regard suite", "own.toml", lambda path: _prompts(RegardSuite(name=str(path))), as_toml, REGARD),
    of_trees(
        "groups of pages",
        "groups.toml",
        lambda path: match_groups(read_groups(path), "Ada", "She was.", ()),
        as_toml,
        GROUPS,
    ),
    of_trees("pairs .toml", "pairs.toml", lambda path: load_pairs(name=str(path)), as_toml, PAIRS_TOML),
    of_trees("pairs .csv", "pairs.csv", lambda path: load_pairs(name=str(path)), as_csv, WIDE),
    of_trees("pairs .jsonl", "pairs.jsonl", lambda path: load_pairs(name=str(path)), as_json_lines, LONG),
    of_trees(
        "pairs .parquet",
        "pairs.parquet",
        lambda path: load_pairs(name=str(path)),
        as_parquet,
        _long_columns(),
    ),
    of_trees("pairs eec", "eec.csv", lambda path: EecSuite(name=str(path)), as_csv, EEC),
    of_trees("pairs crows", "crows_pairs.csv", lambda path: CrowsSuite(name=str(path)), as_csv, CROWS),
    of_trees("pairs bits", "bits_gender.csv", lambda path: BitsSuite(name=str(path)), as_csv, BITS),
    of_trees("bold .jsonl", "gender.jsonl", _bold, as_json_lines, BOLD_LINES, cost=4),
    of_trees(
        "bold .json",
        "prompts/gender_prompt.json",
        _bold_folder,
        as_json,
        BOLD_NESTED,
        prepare=_beside_bold,
        cost=4,
    ),
    of_trees("bold .parquet", "bold.parquet", _bold, as_parquet, _bold_columns(), cost=4),
    Reader(
        "task of a study",
        "task.toml",
        _task,
        lambda: [task_text("sentiment").encode(), task_text("likert").encode()],
        lambda: [_shipped_task("regard"), _shipped_task("likert")],
        as_toml,
    ),
    of_trees(
        "word lists of two sides", "sides.json", lambda path: read_word_lists(str(path)), as_json, SIDES
    ),
    of_trees("gender words", "words.json", read_gender_words, as_json, GENDER_WORDS),
    of_trees(
        "evidence for a card",
        "evenhand/cards/regard.json",
        _evidence,
        as_json,
        EVIDENCE,
        prepare=_beside_evidence,
    ),
    of_trees("lexicon .tsv", "norms.tsv", read_lexicon, as_tab_lines, LEXICON),
    of_trees("lexicon .csv", "norms.csv", read_lexicon, as_csv, LEXICON),
    Reader(
        "lexicon .tsv.xz",
        "norms.tsv.xz",
        read_lexicon,
        lambda: [lzma.compress(as_tab_lines(LEXICON))],
        pack=lzma.compress,
    ),
    Reader("closed-class words", "words.txt", read_closed_class, lambda: [b"# pronouns\nhe she\nit\n"]),
    of_trees("vectors .txt", "v.txt", _vectors, as_lines, VECTORS, GLOVE),
    Reader(
        "vectors .txt.gz",
        "v.txt.gz",
        _vectors,
        lambda: [gzip.compress(as_lines(VECTORS))],
        pack=gzip.compress,
    ),
    Reader("vectors .bin", "v.bin", _vectors, lambda: [_binary()]),
    Reader(
        "vectors .safetensors",
        "v.safetensors",
        _vectors,
        lambda: [_own_vectors()],
        lambda: [_vector_header()],
        as_safetensors,
    ),
    Reader("ARPA", "m.arpa", _fitted, lambda: [_arpa()], lambda: [_arpa_tree()], as_tab_lines),
)
