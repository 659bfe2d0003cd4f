"""The report of a probe run: what a classifier finds in the same sentence for different groups."""
