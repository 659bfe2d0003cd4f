"""Counterfactual sentences: the same sentence once for each group of an axis."""
