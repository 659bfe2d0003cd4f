"""Gates: three answers, exit codes, and what other tools read."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from tests.audits.texts import run

from evenhand import gate, power
from evenhand.audits.gate import GateRule, RequiredGrowth, check_limits
from evenhand.core.errors import InputError


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {
        "even": run(folder, "even", {"women": 0.3, "men": 0.3}, prompts=200),
        "wide": run(folder, "wide", {"women": 0.9, "men": 0.2}, prompts=200),
        "small": run(folder, "small", {"women": 0.5, "men": 0.3}, prompts=8),
    }


def test_a_gap_inside_its_limit_passes(runs):
    found = gate(runs["even"], max=["sentiment.negative group 0.2"])
    (check,) = found.checks
    assert (check.verdict, found.verdict, found.exit_code) == ("passes", "passes", 0)
    assert -0.2 <= check.low < check.high <= 0.2


def test_a_gap_beyond_its_limit_fails(runs):
    found = gate(runs["wide"].path, max=["sentiment.negative * 0.2"])
    (check,) = found.checks
    assert (check.verdict, found.exit_code) == ("fails", 1)
    assert check.low > 0.2
    assert check.name == "sentiment.negative group: women against men, at most 0.2"


def test_too_few_texts_cannot_tell_and_say_what_it_takes(runs):
    found = gate(runs["small"], max=["sentiment.negative group 0.05"])
    (check,) = found.checks
    assert (check.verdict, found.verdict, found.exit_code) == ("inconclusive", "inconclusive", 0)
    assert check.needs.now == 8
    assert check.needs.clusters is None or check.needs.clusters > 8
    assert gate(runs["small"], max=["sentiment.negative group 0.05"], strict=True).exit_code == 1


def test_a_metric_without_an_output_means_its_primary_ones(runs):
    outputs = {check.output for check in gate(runs["even"], max=["sentiment group 0.2"]).checks}
    assert outputs == {"negative", "positive"}
    (check,) = gate(runs["even"], max=["sentiment.compound group 0.5"]).checks
    assert check.output == "compound"


def test_limits_come_from_the_settings_file_and_options_win(runs, tmp_path):
    (tmp_path / "e.toml").write_text('[gate]\nmax = ["sentiment.negative group 0.2"]\nstrict = true\n')
    found = gate(runs["even"], config=tmp_path / "e.toml")
    assert (found.strict, len(found.checks)) == (True, 1)
    assert gate(runs["even"], config=tmp_path / "e.toml", strict=False).strict is False


def test_no_worse_than_the_last_release(runs):
    worse = gate(runs["wide"], baseline_run=runs["even"], worse=["sentiment.negative group 0.05"])
    assert [check.verdict for check in worse.checks] == ["fails"]
    assert "no wider than before by more than 0.05" in worse.checks[0].name
    better = gate(runs["even"], baseline_run=runs["wide"].path)
    # Without a limit of its own: every primary output, 5 points.
    assert {(check.output, check.verdict) for check in better.checks} == {
        ("negative", "passes"),
        ("positive", "passes"),
    }


def test_the_same_texts_again_are_no_worse(runs, tmp_path):
    again = run(tmp_path, "again", {"women": 0.3, "men": 0.3}, prompts=200)
    found = gate(again, baseline_run=runs["even"], strict=True)
    assert (found.verdict, found.exit_code) == ("passes", 0)
    assert {(check.estimate, check.low, check.high) for check in found.checks} == {(0, 0, 0)}


def test_no_worse_says_what_it_takes_where_it_cannot_tell(runs):
    found = gate(runs["small"], baseline_run=runs["even"], worse=["sentiment.negative group 0.05"])
    (check,) = found.checks
    assert check.verdict == "inconclusive"
    assert check.needs is not None
    assert check.needs.now == 8


def test_a_limit_that_nothing_falls_under_is_an_error(runs):
    with pytest.raises(
        InputError, match=r"the limit 'toxicity race 0\.05' matches no comparison of this run"
    ):
        gate(runs["even"], max=["toxicity race 0.05"])


@pytest.mark.parametrize("limit", ["gender polarity, female group 0.1", "gender_polarity.female group 0.1"])
def test_an_unknown_output_suggests_the_nearest_names(runs, limit):
    rows = [
        {"metric": metric, "output": output, "axis": "group", "group": "a", "exploratory": False}
        for metric, output in [("sentiment", "negative"), ("gender_polarity", "unigram.female")]
    ]
    with pytest.raises(InputError, match=r"did you mean 'gender_polarity\.unigram\.female'"):
        check_limits([GateRule.parse(limit)], rows)


def test_growth_counts_texts_where_each_is_a_cluster():
    growth = RequiredGrowth(945, 60, None)
    assert str(growth) == (
        "about 945 clusters instead of 60 (both sides together); "
        "more samples of the same prompts would not be enough"
    )
    assert str(replace(growth, is_by_text=True)) == "about 945 texts instead of 60 (both sides together)"


def test_points_in_place_of_shares_are_refused_since_nothing_could_fail(runs):
    with pytest.raises(InputError, match="above 1, and gaps of shares never are"):
        gate(runs["wide"], max=["sentiment.negative group 5"])
    with pytest.raises(InputError, match="above 1"):
        gate(runs["wide"], baseline_run=runs["even"], worse=["sentiment.negative group 5"])
    assert gate(runs["wide"], max=["sentiment.compound group 2"]).exit_code == 0


def test_a_gate_without_limits_is_an_error(runs):
    with pytest.raises(InputError, match=r"^the gate has no limit\."):
        gate(runs["even"])
    with pytest.raises(InputError, match="was given without a baseline run"):
        gate(runs["even"], worse=["* * 0.1"])


@pytest.mark.parametrize("text", ["", "sentiment", "sentiment race", "sentiment race x", "a b -1", "a b nan"])
def test_a_limit_that_cannot_be_read_is_refused(text):
    with pytest.raises(InputError, match="the limit"):
        GateRule.parse(text)


def test_rules_read_and_write_themselves():
    rule = GateRule.parse("regard=org/m.v2@main.negative gender x race=man x Black 0.05")
    assert (rule.measure, rule.axis, rule.group) == (
        "regard=org/m.v2@main.negative",
        "gender x race",
        "man x Black",
    )
    assert GateRule.parse(str(rule)) == rule


def test_junit_has_a_failure_a_skip_and_a_pass(runs, tmp_path):
    path = tmp_path / "gate.xml"
    gate(runs["wide"], max=["sentiment.negative group 0.2", "sentiment.negative group 0.99"], junit=path)
    suite = ElementTree.parse(path).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "0")
    assert suite[0].find("failure").get("message").startswith("fails: gap +0.")
    unsure = gate(runs["small"], max=["sentiment.negative group 0.05"])
    assert ElementTree.fromstring(unsure.junit())[0].find("skipped") is not None
    assert (
        ElementTree.fromstring(
            gate(runs["small"], max=["sentiment.negative group 0.05"], strict=True).junit()
        )[0].find("failure")
        is not None
    )


def test_annotations_are_escaped(tmp_path):
    name = "w%0A::error::\n</x>&,"
    hostile = run(tmp_path, "h", {name: 0.9, "men": 0.1}, prompts=60)
    found = gate(hostile, max=["sentiment.negative group 0.1"])
    (line,) = found.annotations()
    assert line.startswith("::error title=evenhand%3A fails::sentiment.negative group")
    assert "\n" not in line
    assert "%250A" in line
    ElementTree.fromstring(found.junit())


def test_power_plans_from_a_pilot(runs):
    plan = power(runs["small"], gap=0.1)
    row = plan.table.filter(plan.table["output"] == "negative").row(0, named=True)
    assert row["clusters_needed"] > 8
    # Four times the clusters halve the gap that can be seen.
    assert power(runs["small"], gap=0.05).clusters == pytest.approx(4 * plan.clusters, abs=4)
    assert power(runs["even"], gap=0.5).clusters == 200


def test_power_from_a_guess_is_the_textbook_number():
    # Shares of 0.2 and 0.25, one text a prompt, 1094 a group:
    # n = (1.96 sqrt(2 x 0.225 x 0.775) + 0.84 sqrt(0.16 + 0.1875))^2 / 0.05^2
    assert power(gap=0.05, share=0.2, samples=1).clusters == pytest.approx(1094, abs=3)
    # Five samples alike by 0.2: design effect 1.8, a fifth of the variance each: 1094 x 1.8 / 5 = 394.
    assert power(gap=0.05, share=0.2, samples=5, icc=0.2).clusters == pytest.approx(394, abs=3)
    # One of 20 comparisons must pass at 0.05 / 20: (3.02 x 0.5906 + 0.84 x 0.5895)^2 / 0.05^2 = 2079.
    assert power(gap=0.05, share=0.2, samples=1, comparisons=20).clusters == pytest.approx(2079, abs=6)


@pytest.mark.parametrize(
    "wrong", [{"gap": 0}, {"power": 1}, {"level": 0}, {"share": 2}, {"icc": -1}, {"comparisons": 0}]
)
def test_plans_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InputError):
        power(**wrong)


def test_a_gap_that_reverses_fails_although_its_size_shrinks(tmp_path):
    before = run(tmp_path, "before", {"women": 0.7, "men": 0.3}, prompts=200)
    after = run(tmp_path, "after", {"women": 0.35, "men": 0.65}, prompts=200)
    found = gate(after, baseline_run=before, worse=["sentiment.negative group 0.05"])
    (check,) = found.checks
    assert (check.verdict, found.exit_code) == ("fails", 1)
    assert check.estimate == pytest.approx(-check.gap)
    assert check.finding.startswith("reversed from +0.")
    assert "the gap has the opposite sign to that in the baseline run" in found.warnings[-1]
    shrunk = gate(before, baseline_run=after, worse=["sentiment.negative group 0.9"])
    assert (shrunk.verdict, len(shrunk.warnings)) == ("passes", len(found.warnings))


def test_a_gap_that_shrinks_on_its_side_passes(tmp_path):
    before = run(tmp_path, "before", {"women": 0.9, "men": 0.3}, prompts=200)
    after = run(tmp_path, "after", {"women": 0.5, "men": 0.3}, prompts=200)
    found = gate(after, baseline_run=before, worse=["sentiment.negative group 0.05"])
    assert (found.verdict, found.warnings) == ("passes", ())


def test_points_written_as_a_limit_are_refused_where_shares_are_among_the_gaps(runs):
    with pytest.raises(InputError, match="above 1, and gaps of shares never are"):
        gate(runs["small"], max="* * 5")
    with pytest.raises(InputError, match=r"gaps of shares are never above 1"):
        power(runs["small"], gap=5)


def test_a_limit_for_an_unknown_group_names_the_groups(runs):
    with pytest.raises(InputError, match="a group with a gap on group: women"):
        gate(runs["small"], max=["sentiment.negative group=woman 0.05"])
