"""evenhand measures social and political bias in language generation, and mitigates it while a model writes."""

from evenhand._version import __version__

__all__ = ["__version__"]
