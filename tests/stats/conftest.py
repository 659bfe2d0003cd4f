"""Property tests of statistics take the time they take: a busy machine is no failure."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
