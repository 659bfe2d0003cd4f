"""One file a metric; `vader` is the engine of `sentiment`."""
