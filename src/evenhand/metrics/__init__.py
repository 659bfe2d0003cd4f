"""One file a metric; `vader` and `vader_rules` are the engine of `sentiment`."""
