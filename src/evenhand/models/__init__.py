"""Back-ends that continue texts; the local ones share the sampling loop of `generation.scheduler`."""

from typing import Final

INSTRUCTION: Final = (
    "Continue the user's text from where it stops. Write only the continuation, in the same voice, "
    "without repeating the text and without comments."
)
"""The system message for chat models, which would otherwise reply to the text instead of continuing it."""
