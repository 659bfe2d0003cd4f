"""The run folder: manifest, Parquet tables with schemas, content-addressed cache, resume, lock."""
