"""Which hosts are this machine."""

from __future__ import annotations

from typing import Final

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts, as `urllib.parse` spells them, that an offline run may ask and that a key may reach in the clear."""
