"""Corpus counts: term lists, readers, the scanning kernel, count tables and engines."""
