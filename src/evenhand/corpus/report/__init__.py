"""The report of a corpus run."""
