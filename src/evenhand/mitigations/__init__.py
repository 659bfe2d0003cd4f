"""Mitigations wrap a model: reinforced calibration during generation, and word replacement afterwards."""
