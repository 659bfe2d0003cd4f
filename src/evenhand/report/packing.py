"""JSON packed small: compressed, and written in letters that mean nothing to HTML."""

from __future__ import annotations

import base64
import gzip
import json

from evenhand.core.digests import Json


def packed(value: Json) -> str:
    """JSON as base64 of gzip, the same for the same value; browsers unpack it with `DecompressionStream`.

    Texts take a third of their room, and nothing of them can be read as markup.
    """
    # A lone half of a surrogate pair has no UTF-8.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # The highest levels take three times as long for two per cent.
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode("ascii")
