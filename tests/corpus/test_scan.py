"""Whole scans: engines, shards, resuming after a kill, bad input, results."""

import gzip
import json
import lzma
import os
import signal
import subprocess
import sys
import time

import polars as pl
import pytest
from tests.oracles.corpus_counts import count
from tests.program import run as evenhand

from evenhand.core.errors import InputError, RunFolderError
from evenhand.corpus import shards as shards_module
from evenhand.corpus.scan import describe_speed, prepare, scan_corpus
from evenhand.corpus.shards import CorpusTotal
from evenhand.report.render_run import format_report, render
from evenhand.store.run import Run

TABLES = ("occurrence", "cooccurrence", "contrasts", "samples", "problems")
LINES = [
    "She was happy. He was afraid!",
    "The black man is sad, and her mother-in-law is angry?",
    "Nothing to see here",
    "Joy to the Muslim and the Christian women",
    "fear",
]


def corpus(folder, size=4000):
    path = folder / "text.txt"
    path.write_text("\n".join(f"{number} {LINES[number % 5]}" for number in range(size)))
    return path


def same(one, two):
    return all(one.table(name).equals(two.table(name)) for name in TABLES)


def test_workers_and_shards_change_nothing(tmp_path, monkeypatch):
    path = corpus(tmp_path)
    whole = scan_corpus(path, out=tmp_path / "whole", workers=1)
    monkeypatch.setattr(shards_module, "SHARD_BYTES", 7001)
    cut = scan_corpus(path, out=tmp_path / "cut", workers=3)
    assert len(cut.manifest["shards"]) == 20
    assert same(whole, cut)
    terms = prepare(path).task.terms
    expected = count([path.read_text()], terms)
    table = whole.table("cooccurrence")
    for row in table.filter(table["group"] != "(none)").iter_rows(named=True):
        assert row["count"] == expected["flag", row["emotion"], row["axis"], row["group"]]
    base = table.filter((table["group"] == "(none)") & (table["axis"] == "gender"))
    joy = expected["emotion", "joy"] - expected["axis", "joy", "gender"]
    assert base.filter(base["emotion"] == "joy")["count"].item() == joy


def test_a_finished_shard_is_not_counted_again(tmp_path, monkeypatch):
    monkeypatch.setattr(shards_module, "SHARD_BYTES", 20_000)
    path = corpus(tmp_path)
    clean = scan_corpus(path, out=tmp_path / "run")
    files = sorted((tmp_path / "run" / "shards" / "counts").iterdir())
    files[0].unlink()
    before = {file.name: file.stat().st_mtime_ns for file in files[1:]}
    again = scan_corpus(path, out=tmp_path / "run")
    assert same(clean, again)
    after = {file.name: file.stat().st_mtime_ns for file in files}
    assert before.items() <= after.items()
    with pytest.raises(RunFolderError, match="differs in unit"):
        scan_corpus(path, out=tmp_path / "run", unit="line")


@pytest.mark.parametrize("engine", ["local", pytest.param("ray", marks=pytest.mark.slow)])
def test_a_killed_run_goes_on(tmp_path, engine):
    if engine == "ray":
        pytest.importorskip("ray")
    files = tmp_path / "files"
    files.mkdir()
    for number in range(30):
        (files / f"{number:02}.txt.gz").write_bytes(gzip.compress("\n".join(LINES * 4000).encode(), 1))
    clean = scan_corpus(files, out=tmp_path / "clean")
    command = [sys.executable, "-m", "evenhand", "corpus", str(files), "--out", "killed", "--workers", "1"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    finished = tmp_path / "killed" / "shards" / "counts"
    while process.poll() is None and not (finished.is_dir() and len(list(finished.glob("*.parquet"))) >= 3):
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = {file.name: file.stat().st_mtime_ns for file in finished.glob("*.parquet")}
    assert 3 <= len(before) < 30
    resumed = scan_corpus(files, out=tmp_path / "killed", engine=engine)
    assert same(clean, resumed)
    assert before.items() <= {file.name: file.stat().st_mtime_ns for file in finished.iterdir()}.items()


def test_an_interrupted_run_stops_soon_and_says_that_work_is_kept(tmp_path):
    (tmp_path / "large.txt.gz").write_bytes(400 * gzip.compress(b"she is happy and he is sad\n" * 100_000, 1))
    command = [sys.executable, "-m", "evenhand", "corpus", "large.txt.gz", "--out", "run", "--workers", "1"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    manifest = tmp_path / "run" / "run.json"
    while process.poll() is None and not (manifest.exists() and '"count": {' in manifest.read_text()):
        time.sleep(0.01)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    # Where the signal comes while Numba loads its kernels, Python ends by it; a shell calls both 130.
    assert process.returncode in (130, -signal.SIGINT), errors
    assert "Finished shards are kept" in errors
    assert json.loads(manifest.read_text())["stages"]["count"]["state"] == "interrupted"


def test_bad_input_is_reported_and_the_rest_is_counted(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "good.txt").write_text("She is happy.\n")
    (folder / "binary.txt").write_bytes(b"\x7fELF\x00\x01")
    (folder / "latin.txt").write_bytes("He is happy, déjà vu".encode("latin-1"))
    packed = gzip.compress(b"".join(b"%d she is happy\n" % i for i in range(100_000)))
    (folder / "cut.txt.gz").write_bytes(packed[: len(packed) // 2])
    (folder / "rows.jsonl").write_text('{"text": "her fear"}\nnot json\n')
    done = evenhand("corpus", folder, "--out", "run", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    table = Run.open(tmp_path / "run").table("problems")
    found = {file.rsplit("/", 1)[1]: (byte, reason) for file, byte, reason in table.iter_rows()}
    assert found["binary.txt"] == (4, "is not text (a zero byte); not counted")
    assert found["latin.txt"] == (14, "2 bytes are not UTF-8; they separate words")
    assert found["cut.txt.gz"][0] == len(packed) // 2
    assert found["rows.jsonl"][0] == 21
    assert len(found) == 4
    occurrence = Run.open(tmp_path / "run").table("occurrence")
    counts = dict(zip(occurrence["emotion"], occurrence["count"], strict=True))
    assert counts["fear"] == 1
    assert counts["joy"] > 1000
    assert "byte 4: is not text" in " ".join(done.stderr.split())


def test_faulty_terms_are_partial_and_the_papers_are_not(tmp_path):
    (tmp_path / "text.txt").write_text("she is happy")
    terms = {"joy": ["happy", "happy"], "female": ["she"], "male": []}
    (tmp_path / "t.json").write_text(json.dumps(terms))
    done = evenhand("corpus", "text.txt", "--terms", "t.json", "--out", "run", cwd=tmp_path)
    assert done.returncode == 3
    assert "'happy' is in 'joy' twice" in " ".join(done.stderr.split())
    (tmp_path / "empty.json").write_text("{}")
    done = evenhand("corpus", "text.txt", "--terms", "empty.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "no emotion terms in empty.json" in done.stderr


def test_several_corpora_side_by_side(tmp_path):
    (tmp_path / "a.txt").write_text("she is happy. he is sad")
    (tmp_path / "b.txt").write_text("he is happy")
    run = scan_corpus([f"one={tmp_path / 'a.txt'}", f"two={tmp_path / 'b.txt'}"], out=tmp_path / "run")
    table = run.table("occurrence").filter(run.table("occurrence")["emotion"] == "joy")
    assert list(zip(table["corpus"], table["count"], table["sentences"], strict=True)) == [
        ("one", 1, 2),
        ("two", 1, 1),
    ]
    assert json.loads((tmp_path / "run" / "report.json").read_text())["occurrence"]


def test_an_array_is_never_cut_and_lines_are(tmp_path, monkeypatch):
    monkeypatch.setattr(shards_module, "SHARD_BYTES", 1000)
    rows = [{"text": f"{number} She is happy."} for number in range(100)]
    (tmp_path / "array.json").write_text(json.dumps(rows, indent=0))
    (tmp_path / "lines.json").write_text("\n".join(map(json.dumps, rows)))
    tables = []
    for name, cut in (("array", 1), ("lines", 3)):
        run = scan_corpus([f"x={tmp_path / f'{name}.json'}"], out=tmp_path / name, samples=0)
        assert len(run.manifest["shards"]) == cut
        assert run.table("problems").is_empty()
        tables.append(run.table("cooccurrence"))
    assert tables[0].equals(tables[1])


def read_at(path, row):
    """What stands in a file where a sample says that its text or its record begins."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    return data[row["byte"] :].decode()


@pytest.mark.parametrize("preset", [None, "paper"])
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.jsonl", "a.json", "a.csv", "a.xml"])
def test_samples_say_the_byte_they_begin_at(tmp_path, monkeypatch, name, preset):
    monkeypatch.setattr(shards_module, "SHARD_BYTES", 4000)
    texts = [f"Number {number} fell: it's 1/2 é!  She was happy {number}. Nothing." for number in range(200)]
    before = {
        "txt": lambda text: "\ufeff" * (text is texts[0]) + text,
        "jsonl": lambda text: json.dumps({"n": 1, "text": text}),
        "json": lambda text: f"{'[' if text is texts[0] else ','} {json.dumps({'text': text})}",
        "csv": lambda text: "text,n\n" * (text is texts[0]) + f'"{text}",2',
        "xml": lambda text: f"<page><text>{text}</text></page>",
    }[name.split(".")[1]]
    content = "\n".join(map(before, texts)) + ("]" if name == "a.json" else "")
    path = tmp_path / name
    path.write_bytes(gzip.compress(content.encode()) if name.endswith("gz") else content.encode())
    run = scan_corpus(path, out=tmp_path / "run", preset=preset, unit="sentence", samples=4)
    found = run.table("samples").filter(run.table("samples")["group"] == "female")
    assert found.height == 4
    for row in found.iter_rows(named=True):
        text = row["text"]
        assert row["row"] is None
        there = read_at(path, row)
        if preset == "paper" and ".txt" in name:
            # The digits of the sample are deleted, those of the file are not.
            assert there.startswith("She was happy ")
            continue
        if ".txt" in name:
            assert there.startswith(text)
        begins = {"jsonl": '{"n": 1', "json": '{"text', "csv": '"Number', "xml": "<page>"}
        assert there.startswith(begins.get(name.split(".")[1], ""))
        if preset is None:
            assert text in there.split("Nothing")[0]


def test_samples_of_parquet_say_the_row(tmp_path):
    texts = [None, "no", "She was happy 2", None, "She was happy 4"]
    pl.DataFrame({"text": texts}).write_parquet(tmp_path / "a.parquet")
    run = scan_corpus(tmp_path / "a.parquet", out=tmp_path / "run")
    found = run.table("samples").filter(run.table("samples")["group"] == "female")
    assert found["byte"].to_list() == [None, None]
    assert sorted(zip(found["row"], found["text"], strict=True)) == [(2, texts[2]), (4, texts[4])]
    html = (tmp_path / "run" / "report.html").read_text()
    assert "a.parquet, row 4" in html


def test_the_byte_of_bad_text_is_that_of_the_file_under_the_papers_rule_too(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"1, 2, 3. " * 50 + b"caf\xe9 happy\n")
    run = scan_corpus(tmp_path / "a.txt", preset="paper", out=tmp_path / "run")
    ((_, byte, reason),) = run.table("problems").rows()
    assert (byte, reason) == (9 * 50 + 3, "1 byte is not UTF-8; it separates words")


def test_the_limiting_stage_is_named(tmp_path):
    task = prepare(corpus(tmp_path)).task
    packed, plain = CorpusTotal(task), CorpusTotal(task)
    packed.values.update(
        {"clock.reading": 3_000_000, "clock.counting": 1_000_000, "clock.waiting": 2_500_000}
    )
    plain.values.update({"clock.reading": 500_000, "clock.counting": 2_000_000})
    assert describe_speed([packed], 4.0)["limited_by"] == "reading and unpacking"
    assert describe_speed([plain], 4.0)["limited_by"] == "counting"
    assert describe_speed([packed, plain], 4.0)["limited_by"] == "reading and unpacking"  # 3.5 s against 3 s
    # A real run names the stage that its own clock says, in the manifest, the report and the terminal.
    (tmp_path / "a.txt.xz").write_bytes(lzma.compress(corpus(tmp_path).read_bytes()))
    done = evenhand("corpus", "a.txt.xz", "--out", "run", cwd=tmp_path)
    stage = Run.open(tmp_path / "run").manifest["stages"]["count"]
    times = {"reading and unpacking": stage["reading_seconds"], "counting": stage["counting_seconds"]}
    # Equal where both are rounded to the same millisecond.
    assert times[stage["limited_by"]] == max(times.values())
    # Less than a second of work is too little to blame a stage for.
    assert "limited by" not in done.stdout
    run = Run.open(tmp_path / "run")
    run.manifest["stages"]["count"]["reading_seconds"] = 1.5
    assert f"{stage['limited_by']} (" in format_report(run, "html")


def test_an_empty_file_is_called_empty(tmp_path):
    (tmp_path / "empty.csv").touch()
    done = evenhand("corpus", "empty.csv", "--out", "run", cwd=tmp_path)
    assert "Nothing could be counted: empty.csv is empty." in done.stdout
    assert "Odds ratios" not in done.stdout


def test_the_plan_is_shown_and_options_are_checked(tmp_path):
    (tmp_path / "a.txt").write_text("she is happy")
    done = evenhand("corpus", "a.txt", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0
    assert "1 file, 12 B as stored, 1 shard" in done.stderr
    assert not (tmp_path / "runs").exists()
    with pytest.raises(InputError, match=r"--unit 'page'\. Expected: sentence, line, document"):
        scan_corpus(tmp_path / "a.txt", unit="page")


def test_terms_expand_shows_what_it_added(tmp_path):
    pytest.importorskip("lemminflect")
    lists = {"joy": ["smile", "glad"], "fear": ["smiles"], "female": ["woman", "young lady"]}
    (tmp_path / "t.json").write_text(json.dumps(lists))
    done = evenhand("terms", "expand", "t.json", "--out", "longer.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # "smiles" stands in another emotion already; of several words nothing is made.
    assert done.stdout.splitlines()[:3] == [
        "joy: +4  smiled, smiling, gladder, gladdest",
        "fear: +0  nothing",
        "female: +1  women",
    ]
    written = json.loads((tmp_path / "longer.json").read_text())
    assert "women" in written["groups"]["gender"]["female"]
    assert "young lady" in written["groups"]["gender"]["female"]


def test_the_report_of_a_corpus_run_is_written_again_as_it_was(tmp_path):
    text = tmp_path / "t.txt"
    text.write_text("The angry man left. The happy woman sang.\n")
    run = scan_corpus([text], out=tmp_path / "run")
    first = (run.path / "report.html").read_text()
    render(run, ("html",))
    assert (run.path / "report.html").read_text() == first


def test_a_file_that_was_changed_is_counted_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = tmp_path / "t.txt"
    text.write_text("she is happy")
    first = prepare(text)
    text.write_text("she is angry")  # as long as before
    os.utime(text, ns=(1, 1))
    second = prepare(text)
    assert first.folder != second.folder
    first.run()
    with pytest.raises(RunFolderError, match="differs in inputs"):
        scan_corpus(text, out=first.folder)
