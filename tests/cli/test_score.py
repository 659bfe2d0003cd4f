import json

import polars as pl
import pytest

from evenhand.store.run import Run


def _csv(tmp_path, text, name="t.csv"):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def test_the_bundled_example_needs_no_file_and_no_torch(evenhand, tmp_path):
    done = evenhand("score", "--out", "run")
    assert done.returncode == 0, done.stderr
    run = Run.open(tmp_path / "run")
    assert run.table("generations").height == 240
    assert (run.path / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_any_columns_of_any_format(evenhand, tmp_path, suffix):
    table = pl.DataFrame(
        {
            "key": ["k1", "k2", "k3", "k4"],
            "body": ["I love this.", "I hate this.", "It is a table.", "What a great, great day!"],
            "who": ["x", "y", "x", "y"],
            "about": ["1", "1", "2", "2"],
        }
    )
    path = tmp_path / f"t.{suffix}"
    if suffix == "parquet":
        table.write_parquet(path)
    elif suffix == "jsonl":
        path.write_text("\n".join(json.dumps(row) for row in table.to_dicts()))
    else:
        table.write_csv(path, separator="\t" if suffix == "tsv" else ",")
    done = evenhand(
        "score",
        path.name,
        "--text",
        "body",
        "--group",
        "side=who",
        "--id",
        "key",
        "--cluster",
        "about",
        "--out",
        "run",
    )
    assert done.returncode == 0, done.stderr
    run = Run.open(tmp_path / "run")
    compound = run.table("scores").filter(
        (pl.col("metric") == "sentiment") & (pl.col("output") == "compound")
    )
    labels = dict(compound.select("text_id", "label").iter_rows())
    assert labels == {"k1": "positive", "k2": "negative", "k3": "neutral", "k4": "positive"}
    assert set(run.table("prompts")["cluster"]) == {"1", "2"}


def test_empty_and_damaged_texts_are_rows_with_a_reason(evenhand, tmp_path):
    name = _csv(tmp_path, b'id,text,g\n1,"",a\n2,  ,a\n3,caf\xe9 is nice,b\n4,Good.,b\n5,Bad.,a\n')
    done = evenhand("score", name, "--group", "g", "--id", "id", "--out", "run")
    assert done.returncode == 0, done.stderr
    run = Run.open(tmp_path / "run")
    reasons = {
        (row["text_id"], row["null_reason"]) for row in run.table("scores").to_dicts() if row["null_reason"]
    }
    assert reasons == {("1", "empty_text"), ("2", "empty_text"), ("3", "invalid_utf8")}
    counted = run.table("exclusions").filter(pl.col("metric") == "sentiment")
    assert dict(counted.select("reason", "count").iter_rows()) == {"empty_text": 2, "invalid_utf8": 1}


def test_a_prompt_is_read_once_when_the_text_starts_with_it(evenhand, tmp_path):
    name = _csv(tmp_path, "text,prompt,g\nThe day was awful.,The day was,a\nA cue is not read.,Terrible!,b\n")
    assert evenhand("score", name, "--group", "g", "--prompt", "prompt", "--out", "run").returncode == 0
    run = Run.open(tmp_path / "run")
    prompts = run.table("prompts")
    assert set(prompts["text"]) == {"The day was", ""}
    assert run.table("generations")["text"].to_list() == [" awful.", "A cue is not read."]


def test_words_to_mask_come_from_a_column(evenhand, tmp_path):
    # "straight" is a positive word for VADER: masked, the two texts read the same.
    name = _csv(
        tmp_path, 'text,g,m\nThe straight person spoke.,a,straight\nThe gay person spoke.,b,"[""gay""]"\n'
    )
    done = evenhand(
        "score", name, "--group", "g", "--mentions", "m", "--metrics", "sentiment", "--out", "run"
    )
    assert done.returncode == 0, done.stderr
    values = Run.open(tmp_path / "run").table("scores").filter(pl.col("output") == "compound")["value"]
    assert values[0] == values[1]


def test_one_group_only_says_that_there_is_nothing_to_compare(evenhand, tmp_path):
    name = _csv(tmp_path, "text,g\nGood.,a\nBad.,a\n")
    done = evenhand("score", name, "--group", "g", "--out", "run")
    assert done.returncode == 0, done.stderr
    assert Run.open(tmp_path / "run").table("comparisons").height == 0
    assert "Nothing could be compared" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "content", "message"),
    [
        (("--group", "g"), "id,txt,g\n1,x,a\n", "has no column 'text' (--text)"),
        (("--group", "nobody"), "id,text,g\n1,x,a\n", "has no column 'nobody' (--group nobody)"),
        ((), "id,text,g\n1,x,a\n", "no group column was named"),
        (("--group", "g"), "", "has no rows"),
        (("--group", "g", "--id", "id"), "id,text,g\n1,x,a\n1,y,b\n", "has 1 duplicate ids, first '1'"),
        (("--group", "g"), "id,text,g\n1,x,(rest)\n", "a reserved name"),
        (("--group", "g"), "id,text,g\n1,x,\n", "is empty"),
    ],
)
def test_bad_files_and_columns_are_named(evenhand, tmp_path, arguments, content, message):
    done = evenhand("score", _csv(tmp_path, content), *arguments, "--out", "run")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_missing_file_is_said(evenhand):
    done = evenhand("score", "none.csv", "--group", "g")
    assert done.returncode == 2
    assert "none.csv does not exist" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"), [((), "a text speaks of: a, b;c"), (("--group", "g"), "separated by semicolons")]
)
def test_a_file_whose_columns_were_not_guessed_says_which_it_has(evenhand, tmp_path, arguments, told):
    content = "a,b;c\n1,2\n" if not arguments else "text;g\nA day.;x\n"
    done = evenhand("score", _csv(tmp_path, content), *arguments)
    assert done.returncode == 2
    assert told in done.stderr


@pytest.mark.parametrize("option", ["--text", "--cluster", "--mentions"])
def test_a_column_without_a_file_is_not_looked_for_in_the_example(evenhand, option):
    done = evenhand("score", option, "answer")
    assert done.returncode == 2
    assert "columns were named, but no file" in done.stderr


def test_reports_are_written_again(evenhand, tmp_path):
    evenhand("score", "--out", "run")
    (tmp_path / "run" / "report.html").unlink()
    done = evenhand("report", "run", "--format", "html,md")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["run/report.html", "run/report.md"]
    assert evenhand("report", "nowhere").returncode == 2
    assert evenhand("report", "run", "--format", "pdf").returncode == 2
