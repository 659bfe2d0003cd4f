"""What came out in sentences, the mixtures, and the gaps of regard: small tables by hand."""

import json

import numpy as np
import polars as pl
import pytest

from evenhand.core.records import Execution
from evenhand.papers.political import judge
from evenhand.papers.political.tables import describe_findings
from evenhand.papers.replication_pages import Exhibit

ROW = {"source": "m", "indirect_change_low": -0.03, "perplexity_times": 1.5, "perplexity_model_times": None}


def test_modes_are_told_apart_by_their_intervals():
    own = {
        "mode": "baseline",
        "indirect_corrected": 0.034,
        "indirect_corrected_low": 0.029,
        "indirect_corrected_high": 0.039,
    }
    rows = [
        {**ROW, **own, "indirect_change": None, "indirect_change_high": None},
        {**ROW, "mode": "classifier", "indirect_change": -0.02, "indirect_change_high": -0.01},
        {**ROW, "mode": "naive", "indirect_change": -0.01, "indirect_change_high": 0.002},
    ]
    table = Exhibit("table_5", "Methods", pl.DataFrame(rows, infer_schema_length=None))
    told = describe_findings(table, ("m", "absent"))
    assert tuple(line.replace("\u2212", "-") for line in told) == (
        "m: indirect bias beyond chance 0.034 (0.029 to 0.039), the mean of the attributes' overall values.",
        "m, lowered, the interval below 0: classifier, -0.020 (-0.030 to -0.010), at 1.50 times "
        "the perplexity.",
        "m, not shown to be lowered: naive, -0.010 (-0.030 to 0.002), at 1.50 times the perplexity.",
    )


def test_how_much_was_planted(tmp_path, monkeypatch):
    lines = [{"lean": lean, "text": str(at)} for lean in (-0.5, 0.0) for at in range(3)]
    (tmp_path / "mixtures.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    files = judge.mixture_files({"planted": str(tmp_path), "other": "builtin"})
    assert list(files) == ["planted"]
    said = {-0.5: np.array([0.1, 0.2, 0.3]), 0.0: np.array([0.4, 0.5, 0.6])}
    monkeypatch.setattr(judge, "judge_mixtures", lambda path, execution: said)
    left, even = judge.mixtures_table(files, Execution()).frame.to_dicts()
    # Means 0.2 and 0.5; half-width t(2) = 4.303 times 0.1 / sqrt 3 = 0.2484.
    assert (left["conservative"], left["shift"], even["shift"]) == pytest.approx((0.2, -0.3, 0.0))
    assert left["conservative_high"] == pytest.approx(0.2 + 0.2484, abs=1e-4)
