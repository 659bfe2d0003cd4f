"""Only regular files of a bearable size are read whole."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.adapters.lm_eval_task import LmEvalTask
from evenhand.annotate.label_formats import read_json
from evenhand.annotate.study import read_study, task_text
from evenhand.collection.build import read_groups
from evenhand.config import resolve_config
from evenhand.core.digests import file_digest
from evenhand.core.errors import EvenhandError
from evenhand.core.regular_files import UnfitFileError, open_regular, read_bytes, read_text
from evenhand.corpus.term_lists import load_terms
from evenhand.logs.inspect_logs import open_archive
from evenhand.mitigations.word_lists import read_word_lists
from evenhand.store import table_files
from evenhand.store.parquet import check_parquet
from evenhand.store.run import read_manifest
from evenhand.suites.pairs.pair_sets import read_bare_rows
from evenhand.suites.regard import RegardSuite
from evenhand.suites.templates import read_templates
from evenhand.tensors.checkpoints import read_config
from evenhand.tensors.model_files import locate_model
from evenhand.text.hard_debiasing import read_gender_words
from evenhand.text.lexicons import read_closed_class, read_lexicon
from evenhand.text.ngram_model import read_arpa as read_ngrams
from evenhand.text.word_vectors import read_vectors
from evenhand.training.ideology_words import read_articles
from evenhand.training.norm_prediction import read_word_ratings

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def test_regular_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\n")
    assert read_text(path, encoding="utf-8-sig") == path.read_text(encoding="utf-8-sig")
    (tmp_path / "link").symlink_to(path)
    assert read_bytes(tmp_path / "link") == path.read_bytes()
    with pytest.raises(FileNotFoundError):
        read_bytes(tmp_path / "none")


def test_a_file_is_measured_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # no disk is taken
    with pytest.raises(UnfitFileError, match=r"^it has more than 256 MiB$"):
        read_bytes(path)
    path.write_bytes(b"12345")
    assert read_bytes(path, most=5) == b"12345"
    with pytest.raises(UnfitFileError, match=r"^it has more than 4 bytes$"):
        read_bytes(path, most=4)


def test_a_file_that_says_it_is_empty_is_bounded_too() -> None:
    with pytest.raises(UnfitFileError, match=r"^it has more than 3 bytes$"):
        read_bytes("/proc/self/status", most=3)


@pytest.mark.parametrize(
    ("make", "kind"), [(pipe, "a named pipe"), (zero, "a device"), (Path.mkdir, "a folder")]
)
def test_anything_else_is_refused_without_being_waited_for(
    make: Callable[[Path], None], kind: str, tmp_path: Path
) -> None:
    make(tmp_path / "x")
    with pytest.raises(UnfitFileError, match=f"^it is {kind}$"):
        open_regular(tmp_path / "x")


def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("x")
        with pytest.raises(UnfitFileError, match=r"^it is a socket$"):
            open_regular(Path("x"))


def archive(path: Path) -> None:
    with open_archive(path):
        pass


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a model's config.json": ("config.json", lambda path: read_config(path.parent)),
    "a file of a model": ("special_tokens_map.json", lambda path: locate_model(str(path.parent))),
    "a table": ("a.jsonl", table_files.read_table),
    "a packed table": ("a.csv.gz", table_files.read_table),
    "lines": ("a.txt", table_files.read_lines),
    "lines, packed": ("a.txt.gz", table_files.read_lines),
    "a manifest": ("run.json", lambda path: read_manifest(path.parent)),
    "a study": ("study.toml", lambda path: read_study(path.parent)),
    "a task": ("task.toml", task_text),
    "settings": ("evenhand.toml", lambda path: resolve_config({"config": path})),
    "groups": ("groups.toml", read_groups),
    "labels": ("labels.json", read_json),
    "terms": ("terms.toml", lambda path: load_terms([path], needs_both=False)),
    "an archive": ("a.eval", archive),
    "a task of lm-eval": ("task.json", LmEvalTask),
    "word lists": ("sides.json", lambda path: read_word_lists(str(path))),
    "gender words": ("words.json", read_gender_words),
    "closed classes": ("words.txt", read_closed_class),
    "a lexicon": ("lexicon.tsv", read_lexicon),
    "a packed lexicon": ("lexicon.tsv.xz", read_lexicon),
    "an n-gram model": ("model.arpa", read_ngrams),
    "word vectors": ("a.vec", read_vectors),
    "pairs": ("pairs.csv", read_bare_rows),
    "regard's prompts": ("regard.toml", lambda path: RegardSuite(name=str(path))),
    "templates": ("templates.toml", read_templates),
    "articles": ("articles.jsonl", read_articles),
    "ratings": ("norms.csv", lambda path: read_word_ratings([path])),
    "a Parquet file": ("a.parquet", check_parquet),
    "a digest": ("a.bin", file_digest),
}


@pytest.mark.parametrize("make", [pipe, zero])
@pytest.mark.parametrize("name", READERS)
def test_no_reader_waits_for_a_pipe_or_reads_a_device(
    name: str, make: Callable[[Path], None], tmp_path: Path
) -> None:
    file, read = READERS[name]
    make(tmp_path / file)
    with pytest.raises((EvenhandError, UnfitFileError)):
        read(tmp_path / file)
