import pytest


def test_list_and_show(evenhand):
    listed = evenhand("list")
    assert listed.returncode == 0
    for name in (
        "starter",
        "regard",
        "political",
        "templates",
        "builtin",
        "stub",
        "sentiment",
        "gender_polarity",
    ):
        assert name in listed.stdout
    assert (
        "\n  toxicity         The probability, in [0, 1], that people would call a text toxic.\n"
        in listed.stdout
    )
    assert evenhand("list", "things").returncode == 2
    shown = evenhand("show", "sentiment")
    assert shown.returncode == 0
    assert "larger means" in shown.stdout
    assert "cut = 0.5" in shown.stdout
    assert ".," not in shown.stdout
    unknown = evenhand("show", "nothing")
    assert unknown.returncode == 2
    assert "nothing is named 'nothing'" in unknown.stderr


CARDS = ("starter", "regard", "political", "templates", "gender_polarity", "norms", "toxicity", "emotion")
CARDS += ("ideology", "builtin", "builtin:masked", "endpoint", "embeddings", "classifiers")


@pytest.mark.parametrize("name", CARDS)
def test_every_card_is_rendered(evenhand, name):
    done = evenhand("show", name)
    assert done.returncode == 0, done.stderr
    assert name in done.stdout


def test_doctor_says_what_there_is(evenhand):
    done = evenhand("doctor")
    assert done.returncode == 0
    for word in ("evenhand", "machine", "accelerator", "cache", "metrics"):
        assert word in done.stdout


def test_clean_frees_the_cache(evenhand):
    evenhand("audit", "stub", "--limit", 43, "--samples", 1, "--metrics", "sentiment")
    assert evenhand("clean").stdout.startswith("0.")
    assert evenhand("clean").stdout.startswith("0.0 MB")


def test_help_and_version(evenhand):
    assert "Usage" in evenhand("--help").stdout
    assert evenhand("--version").stdout.startswith("evenhand 0.")
    for command in ("audit", "score", "report", "list", "show", "doctor", "init", "clean"):
        assert evenhand(command, "--help").returncode == 0
