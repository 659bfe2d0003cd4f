"""A model in, a model out: reinforced calibration while a model writes, and word replacement after it."""
