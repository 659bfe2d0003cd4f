"""Counting in corpora: term lists, readers, the scanning kernel, count tables and engines."""
