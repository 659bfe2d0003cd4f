"""``evenhand replicate`` as a user runs it."""

ANSWERS = """participant,mode,question,answer
1,baseline,bias,5
1,classifier,bias,3
2,baseline,bias,6
2,classifier,bias,4
3,baseline,bias,4
3,classifier,bias,4
"""


def test_where_the_files_are_is_said_in_a_pipe_too(evenhand, tmp_path):
    (tmp_path / "answers.csv").write_text(ANSWERS)
    done = evenhand("replicate", "political", "--tables", 6, "--human", "answers.csv", "--out", "there")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "4 files in there; read report.html first\n"
    assert (tmp_path / "there" / "report.html").is_file()


def test_a_dry_run_says_what_would_be_done_and_does_nothing(evenhand, tmp_path):
    (tmp_path / "answers.csv").write_text(ANSWERS)
    done = evenhand("replicate", "political", "--tables", 6, "--human", "answers.csv", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "writes  table_6" in done.stderr
    assert not (tmp_path / "runs").exists()
