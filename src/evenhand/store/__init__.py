"""The run folder: manifest, Parquet tables with schemas, content-addressed cache, resuming and locking."""
