"""The report of a corpus and a classifier side by side."""
