"""Former paths of version 0.1, importable for one release."""
