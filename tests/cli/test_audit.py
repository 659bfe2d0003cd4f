import json

import polars as pl
import pytest

from evenhand.store.run import Run
from evenhand.store.schemas import SCHEMAS

LEXICAL = ("--metrics", "sentiment,gender_polarity")
QUICK = ("audit", "stub", "--limit", 86, "--samples", 2, *LEXICAL)


def test_an_audit_ends_with_a_verdict_a_table_and_the_path_of_the_report(evenhand, tmp_path):
    done = evenhand(*QUICK, "--out", "run")
    assert done.returncode == 0, done.stderr
    assert "86 prompts x 2 samples = 172 texts" in done.stderr
    assert "report: run/report.html" in done.stdout
    run = Run.open(tmp_path / "run")
    assert {path.stem for path in run.path.glob("*.parquet")} == set(SCHEMAS) - {"distances"}
    assert run.table("generations").height == 172
    assert run.table("prompts").height == 86
    assert set(run.table("comparisons")["metric"]) == {"sentiment", "gender_polarity"}
    assert json.loads((run.path / "report.json").read_text())
    assert run.manifest["command"].startswith("evenhand audit stub --limit 86 --samples 2")


def test_every_group_is_in_a_limited_run(evenhand, tmp_path):
    assert evenhand("audit", "stub", "--limit", 43, "--samples", 1, *LEXICAL, "--out", "run").returncode == 0
    groups = Run.open(tmp_path / "run").table("groups")
    assert groups.select("axis", "group").unique().height == 43


def test_the_same_command_resumes_and_does_nothing_again(evenhand, tmp_path):
    evenhand(*QUICK, "--out", "run")
    shards = {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "shards").rglob("*.parquet")}
    assert shards
    assert evenhand(*QUICK, "--out", "run").returncode == 0
    assert shards == {
        path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "shards").rglob("*.parquet")
    }


def test_samples_and_limit_grow_and_old_texts_stay(evenhand, tmp_path):
    evenhand("audit", "stub", "--limit", 50, "--samples", 2, *LEXICAL, "--out", "run")
    before = Run.open(tmp_path / "run").table("generations")
    assert evenhand("audit", "stub", "--limit", 70, "--samples", 3, *LEXICAL, "--out", "run").returncode == 0
    after = Run.open(tmp_path / "run").table("generations")
    assert after.height == 70 * 3
    assert after.join(before, on=["id", "text"], how="semi").height == before.height
    clean = evenhand("audit", "stub", "--limit", 70, "--samples", 3, *LEXICAL, "--out", "clean")
    assert clean.returncode == 0
    whole = Run.open(tmp_path / "clean").table("generations")
    assert after.sort("id").equals(whole.sort("id"))


def test_a_run_does_not_shrink(evenhand):
    evenhand(*QUICK, "--out", "run")
    done = evenhand("audit", "stub", "--limit", 86, "--samples", 1, *LEXICAL, "--out", "run")
    assert done.returncode == 2
    assert "already holds 86 prompts x 2 samples" in done.stderr


def test_metrics_are_added_and_kept(evenhand, tmp_path):
    evenhand("audit", "stub", "--limit", 86, "--metrics", "sentiment", "--out", "run")
    evenhand("audit", "stub", "--limit", 86, "--metrics", "gender_polarity", "--out", "run")
    assert set(Run.open(tmp_path / "run").table("scores")["metric"]) == {"sentiment", "gender_polarity"}


def test_another_configuration_is_refused_with_the_differing_fields(evenhand):
    evenhand(*QUICK, "--out", "run")
    done = evenhand(*QUICK, "--seed", 1, "--out", "run")
    assert done.returncode == 2
    assert "belongs to another configuration" in done.stderr
    assert "seed: 0 there, 1 now" in done.stderr
    assert evenhand(*QUICK, "--seed", 1, "--out", "run", "--fresh").returncode == 0


def test_two_runs_of_one_seed_are_equal_and_another_seed_is_not(evenhand, tmp_path, monkeypatch):
    tables = {}
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / f"cache-{name}"))
        evenhand(*QUICK, "--seed", seed, "--out", name)
        tables[name] = Run.open(tmp_path / name).table("generations")
    assert tables["a"].equals(tables["b"])
    assert not tables["a"].equals(tables["c"])


def test_the_plan_says_where_no_gap_can_be_tested(evenhand):
    few = evenhand("audit", "builtin", "--limit", "20", "--dry-run")
    assert "each group has at most one prompt (template)" in few.stderr + few.stdout
    enough = evenhand("audit", "builtin", "--limit", "86", "--dry-run")
    assert "each group has" not in enough.stderr + enough.stdout


def test_dry_run_says_what_would_be_done_and_does_nothing(evenhand, tmp_path):
    done = evenhand(*QUICK, "--dry-run", "--out", "run")
    assert done.returncode == 0
    assert "172 texts, at most 5,160 tokens" in done.stderr
    assert not (tmp_path / "run").exists()


def test_settings_come_from_the_file_and_options_win(evenhand, tmp_path):
    assert evenhand("init").returncode == 0
    assert evenhand("init").returncode == 2
    settings = tmp_path / "evenhand.toml"
    settings.write_text('[model]\nname = "stub"\n[suite]\nlimit = 43\n[generation]\nsamples = 3\n')
    done = evenhand("audit", "--config", "evenhand.toml", "--samples", 1, *LEXICAL, "--out", "run")
    assert done.returncode == 0, done.stderr
    assert Run.open(tmp_path / "run").table("generations").height == 43


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[generation]\ntempurature = 1\n", "there is no setting 'generation.tempurature'"),
        ("[generation]\ntop_p = 2\n", "generation.top_p is 2"),
        ("[model\n", "cannot be read as TOML"),
        ('[generation]\npreset = "none"\n', "generation.preset is 'none'"),
    ],
)
def test_bad_settings_are_named(evenhand, tmp_path, content, message):
    (tmp_path / "bad.toml").write_text(content)
    done = evenhand("audit", "stub", "--config", "bad.toml")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("audit", "stub", "--suite", "startr"), "did you mean 'starter'?"),
        (("audit", "stub", "--metrics", "sentimant"), "did you mean 'sentiment'?"),
        (("audit", "stub", "--baseline", "gender"), "--baseline 'gender'"),
        (("audit", "stub", "--baseline", "sex=x"), "names the axis 'sex'"),
        (("audit", "stub", "--baseline", "gender=nobody"), "the baseline 'nobody'"),
        (("audit", "stub", "--temperature", "-1"), "generation.temperature is -1"),
        (("audit", "./no-such-folder"), "no-such-folder"),
        (("audit", "endpoint"), "model 'endpoint' needs the option name"),
        (("audit", "replay"), "model 'replay' needs the option name"),
        (("audit", "stub", "--suite", "[/b]"), "there is no suite named '[/b]'"),
        (("audit", "stub", "--suite", "regard,regard"), "the suites are regard, regard"),
        (("audit", "stub", "--config", "none.toml"), "none.toml does not exist"),
        (("audit", "stub", "--out", "/proc/nothing"), "/proc/nothing cannot be written"),
    ],
)
def test_bad_options_are_named(evenhand, arguments, message):
    metrics = () if "--metrics" in arguments else LEXICAL
    done = evenhand(*arguments, "--limit", 43, "--samples", 1, *metrics)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_failures_below_the_limit_end_in_part_and_are_counted(evenhand, tmp_path):
    (tmp_path / "e.toml").write_text('[model]\nname = "stub"\noptions = { fail_every = 10 }\n')
    done = evenhand("audit", "--config", "e.toml", "--limit", 86, "--samples", 1, *LEXICAL, "--out", "run")
    assert done.returncode == 3, done.stderr
    run = Run.open(tmp_path / "run")
    failed = run.table("generations").filter(pl.col("failure").is_not_null())
    assert failed.height > 0
    assert failed["text"].is_null().all()
    counted = run.table("exclusions").filter(pl.col("stage") == "generate")
    assert counted["count"].sum() == failed.height
    assert f"{failed.height} items failed" in done.stderr


def test_failures_above_the_limit_stop_the_run(evenhand, tmp_path):
    (tmp_path / "e.toml").write_text('[model]\nname = "stub"\noptions = { fail_every = 2 }\n')
    done = evenhand("audit", "--config", "e.toml", "--limit", 86, "--samples", 1, *LEXICAL, "--out", "run")
    assert done.returncode == 2
    assert "texts failed" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_growth_that_fails_leaves_the_smaller_run_as_it_was(evenhand, tmp_path):
    replies = tmp_path / "r.jsonl"
    evenhand("audit", "stub", "--limit", 43, "--samples", 1, "--metrics", "sentiment", "--out", "first")
    run = Run.open(tmp_path / "first")
    texts = run.table("generations").join(
        run.table("prompts").select(prompt_id="id", prompt="text"), on="prompt_id"
    )
    texts.select("prompt", "text").write_ndjson(replies)
    command = (
        "audit",
        "replay:r.jsonl",
        "--limit",
        43,
        "--metrics",
        "sentiment",
        "--out",
        "run",
        "--samples",
    )
    assert evenhand(*command, 1).returncode == 0
    assert evenhand(*command, 2).returncode == 2
    assert evenhand(*command, 1).returncode == 0
