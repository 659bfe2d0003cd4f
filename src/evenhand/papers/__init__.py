"""``replicate``: the tables and figures of the papers, one folder a paper, on any model."""
