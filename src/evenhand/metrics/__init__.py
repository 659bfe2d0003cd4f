"""One file a metric."""
