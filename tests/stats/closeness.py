"""Equality up to rounding, where null equals only null."""

from __future__ import annotations

import pytest


def same(here: float | None, there: float | None, *, rel: float = 1e-6, absolute: float = 1e-9) -> bool:
    if here is None or there is None:
        return here is there
    return bool(here == pytest.approx(there, rel=rel, abs=absolute))
