"""Arrays in, small frozen results out: intervals, gaps, tests, corrections, distances, agreement, power.

Every estimate accounts for clusters (dependent texts count as one observation), every random step takes
``rng``, and an unknown value is null with a reason. The caller drops rows without a value and passes their
number as ``n_null``.
"""
