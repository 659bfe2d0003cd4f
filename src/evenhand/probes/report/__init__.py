"""The report of a probe run: how a classifier reads the same sentence for different groups."""
