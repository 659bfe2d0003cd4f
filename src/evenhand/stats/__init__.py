"""Arrays in, small frozen results out: intervals, gaps, tests, corrections, distances, agreement, power.

Every estimate respects clusters (texts that belong together count as one witness), every random step takes
``rng``, and what cannot be known is null with a reason. Rows without a value are dropped by the caller, who
passes their number as ``n_null``.
"""
