"""Reports on human labels: agreement, validation of a metric, ratings of methods."""
