"""What a replication says it will write is what it can write."""

from evenhand.papers.replicate import prepare


def test_exhibits_that_nothing_is_there_for_are_not_promised(tmp_path):
    lines = prepare("political", model="stub", out=tmp_path / "out").plan().lines
    # A stub has no hidden states to steer, so that no strength, gamma or sigma can be varied.
    assert "writes  table_2, table_5, figure_2" in lines
    without = "table_3, gamma, sigma, mixtures, regard"
    assert f"without {without}: no model here has the required mode, head or texts" in lines
