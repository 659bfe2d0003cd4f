"""Records, protocols, registry, digests, seeds, errors and assets: read this folder first."""
