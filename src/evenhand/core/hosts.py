"""Other hosts: which are this machine, the key they are sent, and what of their words is shown."""

from __future__ import annotations

import json
import os
from typing import Final
from urllib.parse import quote

from evenhand.core.errors import InputError

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts, as `urllib.parse` spells them, that an offline run may ask and that a key may reach in the clear."""
_LONGEST_MESSAGE: Final = 300
_SHORTEST_KEY: Final = 8
"""Shorter ones are stand-ins for hosts that ask for none (``EMPTY``), and words that a text may hold."""


def read_api_key(variable: str) -> str:
    """The key an environment variable holds, fit for a header; empty where it is unset."""
    key = os.environ.get(variable, "").strip()
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise InputError(
            f"the environment variable {variable} holds a space or a character beyond ASCII",
            expected="a key of printable ASCII characters",
            fix="copy the key again",
        )
    return key


def describe_plain_http(variable: str, url: str) -> str:
    """The warning for a key that is sent to another machine over plain HTTP."""
    return (
        f"the key in {variable} goes to {url} unencrypted: anyone on the way can read it; use https, or "
        "unset the variable"
    )


def redact_key(text: str, *, secret: str) -> str:
    """An answer fit to be stored: ``[key]`` where the host repeats the key it was sent.

    A key of fewer than 8 characters stays: it keeps nothing secret, and a word of every text may be like it.
    """
    return _redact(text, secret) if len(secret) >= _SHORTEST_KEY else text


def sanitize_message(text: str, *, secret: str) -> str:
    """What a host said, fit to be shown: at most 300 characters on one line, the secret as ``[key]``.

    Control characters would move the cursor or hide words.
    """
    words = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
    # Before the cut, which could leave a part of the secret.
    return _redact(words, secret).strip()[:_LONGEST_MESSAGE]


def _redact(text: str, secret: str) -> str:
    """The text without the secret: as it is, escaped for JSON, or percent-encoded, as hosts repeat it."""
    as_json = json.dumps(secret)[1:-1]
    forms = {secret, as_json, as_json.replace("/", "\\/"), quote(secret, safe="")} - {""}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, "[key]")
    return text
