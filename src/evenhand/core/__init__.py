"""Records, Protocols, registry, digests, seeds, errors and assets: the one folder to read first."""
