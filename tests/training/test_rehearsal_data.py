"""The small copy of the data, and the make targets that rehearse the whole rebuilding on it."""

from __future__ import annotations

import csv
import lzma
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import save_file
from tools.assets import minilm
from tools.assets.labelled_corpora import emotion, hate, published_regard, toxicity
from tools.assets.rehearsal_data import cut, spread

from evenhand.training.corpus_text import read_documents
from evenhand.training.labelled_data import ideology

ROOT = Path(__file__).resolve().parents[2]
MAKE = shutil.which("make")


def test_rows_are_taken_at_even_distances() -> None:
    assert spread(list(range(10)), 4) == [0, 2, 4, 6]
    assert spread([1, 2], 5) == [1, 2]


def test_the_copy_is_read_like_the_original(data: Path, tmp_path: Path) -> None:
    cut(data.parent, tmp_path, documents=140, rows=20)
    for name in ("wiki", "news", "books"):
        found = list(read_documents(tmp_path / "corpus" / f"{name}.txt.xz"))
        assert len(found) <= 140
        assert sum(one.held_out for one in found) == 2  # documents 37 and 137
        assert max(len(one.text) for one in found) < 5_000  # 2,500, before folding
    small = tmp_path / "data"
    counts = [len(read(small)) for read in (toxicity, hate, published_regard)]
    assert counts[2] == 302
    assert all(15 <= count <= 20 for count in counts[:2])
    assert len(ideology(small)) <= 200
    assert {one.corpus for one in emotion(small)} == {"tweets", "forum"}
    with (small / "toxicity" / "davidson.csv").open(encoding="utf-8", newline="") as file:
        assert "hate_speech" in next(csv.reader(file))


needs_make = pytest.mark.skipif(
    MAKE is None or not (ROOT / "Makefile").is_file(), reason="no make, no checkout"
)


def run_make(folder: Path, *words: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """What make does with this environment, which is ready: nothing is set up."""
    ready = folder / "ready"
    ready.touch()
    os.utime(ready, (2**32, 2**32))
    given = [f"READY={ready}", f"BIN={Path(sys.executable).parent}"]
    return subprocess.run(
        [str(MAKE), *words, *given], cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False
    )


@needs_make
def test_a_rehearsal_never_writes_to_the_real_assets(tmp_path: Path) -> None:
    shown = run_make(tmp_path, "-n", "assets", "SCALE=rehearsal", f"WORK={tmp_path}", "MINILM=somewhere")
    assert shown.returncode == 0, shown.stderr
    assert "tools.assets.classifier_figures" in shown.stdout
    assert "src/evenhand/assets" not in shown.stdout
    refused = run_make(tmp_path, "-n", "assets-norms", "SCALE=rehearsal", "ASSETS=src/evenhand/assets")
    assert refused.returncode == 2
    assert "a rehearsal never writes to src/evenhand/assets" in refused.stderr


@needs_make
def test_the_real_rebuilding_writes_to_the_real_assets(tmp_path: Path) -> None:
    shown = run_make(tmp_path, "-n", "assets", "MINILM=somewhere")
    assert "--out src/evenhand/assets/classifiers" in shown.stdout
    assert "tools.assets.rehearsal_data" not in shown.stdout


def random_minilm(folder: Path) -> Path:
    """A folder like MiniLM's, of random weights and pieces that spell any word."""
    import string

    pieces = ["[PAD]", *(f"[unused{n}]" for n in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = string.ascii_lowercase + string.digits + string.punctuation
    pieces += [*letters, *(f"##{letter}" for letter in letters), "the", "of", "and", "xyz", "##ing", "##ed"]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    from transformers import BertConfig, BertModel

    shape = minilm.SHAPE
    config = BertConfig(len(pieces), shape.width, shape.layers, shape.heads, shape.inner)
    weights = {name: value.contiguous() for name, value in BertModel(config).state_dict().items()}
    save_file(weights, folder / "model.safetensors")
    return folder


@pytest.mark.slow
@needs_make
def test_the_whole_rebuilding_runs_in_one_piece(data: Path, tmp_path: Path) -> None:
    teacher = random_minilm(tmp_path / "minilm")
    work, assets = tmp_path / "work", tmp_path / "assets"
    words = [f"SHARED={data.parent}", f"WORK={work}", f"ASSETS={assets}", f"MINILM={teacher}"]
    done = run_make(tmp_path, "assets", "SCALE=rehearsal", *words, timeout=1500)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    made = {path.relative_to(assets).as_posix() for path in assets.rglob("*") if path.is_file()}
    assert made >= {
        *("builtin/model.safetensors", "builtin/tokenizer.json", "builtin-masked/model.safetensors"),
        *("embeddings/vectors.safetensors", "norms/lexicon.tsv.xz", "ideology/words.json"),
        *("classifiers/model.safetensors", "classifiers/config.json", "classifiers/vocab.txt"),
    }
    report = (work / "classifiers" / "figures.md").read_text(encoding="utf-8")
    assert "`builtin:masked` tuned" in report
    with lzma.open(assets / "norms" / "lexicon.tsv.xz", "rt", encoding="utf-8") as file:
        assert "valence" in file.readline()
