"""Probes: counterfactual sentence pairs that measure the bias of an emotion classifier."""
