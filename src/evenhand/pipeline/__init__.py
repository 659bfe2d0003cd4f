"""Generate, score, compare: batching, caching, resume and progress live here once, for all plug-ins."""
